"""Quantities with units."""

import pytest

from afterslip.units import (
    YEAR,
    UnitError,
    parse_number,
    parse_time,
    readable_time,
)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0 d", 0.0),
        ("30 d", 2592000.0),
        ("10 yr", 10 * YEAR),
        ("1.5h", 5400.0),
        ("2 min", 120.0),
        ("1e3 s", 1000.0),
        ("2 weeks", 1209600.0),
        (" 1  year ", YEAR),
    ],
)
def test_times_become_seconds(text: str, seconds: float) -> None:
    assert parse_time(text) == seconds


@pytest.mark.parametrize(
    ("one", "other"),
    [("0.1 yr", "36.525 d"), ("10 yr", "3652.5 d"), ("0.7 d", "16.8 h")],
)
def test_equal_times_are_equal_floats_whatever_their_unit(one: str, other: str) -> None:
    assert parse_time(one) == parse_time(other)


@pytest.mark.parametrize(
    "text", ["10", "", "yr", "ten yr", "1 month", "1,5 d", "nan s"]
)
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(UnitError):
        parse_time(text)


def test_a_time_without_a_unit_is_shown_with_one() -> None:
    with pytest.raises(UnitError) as caught:
        parse_time(" 30 ")
    assert caught.value.hint == 'write "30 d" or "30 yr"'


def test_numbers_may_carry_a_unit_of_their_kind() -> None:
    assert parse_number("35000 m", "km") == 35.0
    assert parse_number("6400 m/s", "km/s") == 6.4
    assert parse_number("2.8 g/cm³", "kg/m3") == 2800.0
    assert parse_number("1e19 Pa·s", "Pa s") == 1e19
    with pytest.raises(UnitError, match="must be in km"):
        parse_number("35 s", "km")
    with pytest.raises(UnitError, match="without a unit"):
        parse_number("1e-8 m")


@pytest.mark.parametrize(
    ("text", "readable"),
    [
        ("157788000.0 s", "5 yr"),
        ("2592000.0 s", "30 d"),
        ("5400.0 s", "90 min"),
        ("0.0 s", "0 yr"),
        ("0.25 s", "0.25 s"),
        ("1e+16 s", "10000000000000000 s"),
    ],
)
def test_times_are_written_in_the_largest_unit_that_is_exact(text, readable) -> None:
    assert readable_time(text) == readable
    assert parse_time(readable) == parse_time(text)
