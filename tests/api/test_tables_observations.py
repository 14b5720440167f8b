"""Observations: data, missing data, and standard deviations."""

import numpy as np
import pytest

from afterslip.errors import SpecError
from afterslip.frame import Frame
from afterslip.readers.kinds import kind_of
from afterslip.readers.observations import read_observations
from afterslip.schemas.observation import Sigma
from afterslip.units import DAY, YEAR

GEO = Frame("geographic", 142.4, 38.3)
HEAD = "station,lon,lat,east,north,up,sigma_e,sigma_n,sigma_u,type"
SIGMA = Sigma(horizontal=0.01, vertical=0.03)


def read(lines: str, head: str = HEAD, **more):
    return read_observations(f"{head}\n{lines}".encode(), GEO, label="d", **more)


def problems(lines: str, head: str = HEAD, **more) -> str:
    with pytest.raises(SpecError) as caught:
        read(lines, head, **more)
    return str(caught.value)


def test_rows_are_the_data_that_are_there() -> None:
    found = read(
        "A,142,38,1,-2,3,.1,.2,.3,gnss\nB,142,39,,,5,,,.4,obp\nC,143,39,7,,,.5,,,gnssa"
    )
    rows = found.rows()
    assert rows.value.tolist() == [1, -2, 3, 5, 7]
    assert rows.sigma.tolist() == [0.1, 0.2, 0.3, 0.4, 0.5]
    assert rows.station.tolist() == [0, 0, 0, 1, 2]
    assert rows.component.tolist() == [0, 1, 2, 2, 0]
    assert rows.direction[3].tolist() == [0, 0, 1]
    assert rows.line.tolist() == [2, 2, 2, 3, 4]
    assert rows.kind.tolist() == ["gnss", "gnss", "gnss", "obp", "gnssa"]


def test_sigma_of_the_spec_fills_only_what_the_file_leaves_empty() -> None:
    found = read("A,142,38,1,-2,3,.1,,,gnss", sigma=SIGMA)
    assert found.sigma[0].tolist() == [0.1, 0.01, 0.03]


def test_there_is_no_silent_sigma() -> None:
    text = problems("A,142,38,1,,,.1,,,gnss\nB,142,38,1,2,,.1,,,gnss")
    assert "d line 3, column sigma_n: has no standard deviation" in text
    assert "sigma: {horizontal: ...}" in text
    assert "sigma: {vertical" in problems(
        "A,142,38,1,2,3,,,,gnss", sigma=Sigma(horizontal=0.1)
    )


@pytest.mark.parametrize("value", ["0", "-0.1"])
def test_a_sigma_of_zero_or_less_is_refused_by_line(value: str) -> None:
    text = problems(f"A,142,38,1,2,3,.1,.1,.1,gnss\nB,142,38,1,2,3,.1,{value},.1,gnss")
    assert text.startswith(
        f"d line 3, column sigma_n = {value}: must be more than zero"
    )


def test_millimetres_are_noticed() -> None:
    text = problems("A,142,38,5098,1,2,.1,.1,.1,gnss")
    assert "line 2, column east = 5098" in text
    assert "millimetres: write metres" in text


def test_pressure_gauges_feel_only_the_vertical() -> None:
    found = read("P,142,38,0,0,5,,,0.2,obp")
    assert len(found.rows()) == 1


def test_a_station_has_one_place_and_may_have_many_epochs() -> None:
    head = HEAD + ",time"
    found = read("A,142,38,1,,,.1,,,gnss,0.5\nA,142,38,2,,,.1,,,gnss,1.5", head)
    assert found.time.tolist() == [0.5 * YEAR, 1.5 * YEAR]
    assert "line 3, column station = A: is at another place than in line 2" in problems(
        "A,142,38,1,,,.1,,,gnss,0.5\nA,142.1,38,2,,,.1,,,gnss,1.5", head
    )


def test_times_may_carry_units_and_default_to_the_epoch() -> None:
    head = HEAD + ",time"
    found = read(
        "A,142,38,1,,,.1,,,gnss,30 d\nB,142,38,1,,,.1,,,gnss,", head, epoch=7.0
    )
    assert found.time.tolist() == [30 * DAY, 7.0]
    found = read("A,142,38,1,,,.1,,,gnss,3", HEAD + ",time_d")
    assert found.time.tolist() == [3 * DAY]
    assert "before the event" in problems("A,142,38,1,,,.1,,,gnss,-1", head)
    assert "not a time" in problems("A,142,38,1,,,.1,,,gnss,soon", head)


@pytest.mark.parametrize(
    "column",
    ["epoch", "Date", "days", "years", "yr", "decimal_year", "decyr", "mjd", "t",
     "t_yr", "time_days", "time(yr)"],
)  # fmt: skip
def test_a_column_of_times_under_another_name_is_refused(column: str) -> None:
    lines = "A,142,38,1,,,.1,,,gnss,0.5\nA,142,38,2,,,.1,,,gnss,1.5"
    text = problems(lines, f"{HEAD},{column}")
    assert f"d line 2, column {column.lower()} = 0.5: looks like a time" in text
    assert "name the column time_yr (years), time_d (days), time_s (seconds)" in text
    # beside a column that is read, or without a single time, it changes nothing
    read(lines.replace("5\n", "5,1\n") + ",2", f"{HEAD},{column},time")
    read("A,142,38,1,,,.1,,,gnss,", f"{HEAD},{column}")


def test_columns_whose_names_only_begin_like_a_time_are_left_out() -> None:
    head = f"{HEAD},theta,timing,dataset"
    assert len(read("A,142,38,1,,,.1,,,gnss,0.5,x,y", head)) == 1


@pytest.mark.parametrize(
    ("rule", "odd", "hint"),
    [
        ("0.5", "30 d", "write a number of years, without a unit"),
        ("30 d", "0.5", 'other lines have one: write e.g. "30 d"'),
    ],
)
def test_one_time_written_otherwise_is_one_problem(rule, odd, hint) -> None:
    times = [rule] * 20
    times[7] = odd
    lines = [f"S{k},142,38,1,,,.1,,,gnss,{time}" for k, time in enumerate(times)]
    text = problems("\n".join(lines), HEAD + ",time")
    assert text.startswith(f"d line 9, column time = {odd}: ")
    assert hint in text


def test_times_without_units_among_others_are_counted() -> None:
    lines = [f"S{k},142,38,1,,,.1,,,gnss,{'30 d' if k > 4 else k}" for k in range(20)]
    text = problems("\n".join(lines), HEAD + ",time")
    assert text.startswith("d line 2, column time and 4 more lines = 0: is not a time")


def test_a_sigma_that_is_no_number_is_one_problem() -> None:
    text = problems("A,142,38,1,2,3,nan,.1,.1,gnss")
    assert text.startswith("d line 2, column sigma_e = nan: is not a finite number")


def test_repeated_solutions_of_a_station_need_no_time() -> None:
    found = read("A,142,38,1,,,.1,,,gnss\nA,142,38,1.1,,,.2,,,gnss", epoch=7.0)
    assert found.rows().value.tolist() == [1, 1.1]
    assert found.time.tolist() == [7.0, 7.0]


def test_times_are_in_the_unit_of_their_column() -> None:
    for column, unit in {"time_yr": YEAR, "time_d": DAY, "time_s": 1.0}.items():
        found = read("A,142,38,1,,,.1,,,gnss,3", f"{HEAD},{column}")
        assert found.time.tolist() == [3 * unit]


def test_kinds_have_the_names_that_files_use() -> None:
    for text, kind in {
        "gnss": "gnss",
        "GPS": "gnss",
        "gnss_geonet": "gnss",
        "gnss_other": "gnss",
        "gnss_a_seafloor": "gnssa",
        "GNSS-A": "gnssa",
        "gnssa": "gnssa",
        "obp": "obp",
        "insar_alos": "insar",
        "gravity": None,
    }.items():
        assert kind_of(text) == kind
    assert "did you mean insar?" in problems("A,142,38,1,1,1,1,1,1,inzar")


INSAR = "station,lon,lat,los,sigma_los,los_e,los_n,los_u,type"


def test_insar_is_one_number_along_its_direction() -> None:
    found = read("p1,142,38,-0.2,0.01,0.6,0,0.8,insar", INSAR).rows()
    assert found.component.tolist() == [3]
    np.testing.assert_allclose(found.direction, [[0.6, 0, 0.8]])
    assert found.value.tolist() == [-0.2]
    assert "unit vector" in problems("p1,142,38,-0.2,0.01,0.6,0,0.9,insar", INSAR)
    assert "has no column los_e" in problems("A,142,38,1,2,3,.1,.1,.1,insar")
    assert "sigma: {los" in problems("p1,142,38,-0.2,,0.6,0,0.8,insar", INSAR)


def test_a_table_without_data_is_refused() -> None:
    assert "has no displacements" in problems("A,142,38,,,,,,,gnss")


def test_pixels_need_neither_name_nor_type() -> None:
    text = b"lon,lat,los,sigma_los,los_e,los_n,los_u\n142,38,-0.5,0.02,0.6,0,0.8\n"
    data = read_observations(text, GEO)
    assert data.name == ("pixel 2",)
    assert data.rows("ascending").stations == ("ascending pixel 2",)
    assert data.rows().kind.tolist() == ["insar"]
    assert data.rows().direction.tolist() == [[0.6, 0.0, 0.8]]
    assert data.rows().value.tolist() == [-0.5]


def test_a_quadtree_of_kite_is_read_with_its_commented_header() -> None:
    # a header is looked for in comments where the first line has only numbers
    text = (
        b"# node_id, lon, lat, theta, phi, unitE, unitN, unitU, mean_displacement, "
        b"median_displacement, absolute_weight\n"
        b"1, 142.0, 38.0, 0.9, 3.1, -0.6, 0.0, 0.8, 0.25, 0.24, 12.0\n"
        b"2, 142.1, 38.0, 0.9, 3.1, -0.6, 0.0, 0.8, 0.35, 0.33, 12.0\n"
    )
    data = read_observations(text, GEO, Sigma(los=0.01))
    assert data.name == ("1", "2")
    assert data.rows().value.tolist() == [0.25, 0.35]
    assert data.rows().sigma.tolist() == [0.01, 0.01]
    assert data.look[0].tolist() == [-0.6, 0.0, 0.8]


def test_daily_series_are_refused_with_how_to_convert_them() -> None:
    text = b"site YYMMMDD yyyy.yyyy __MJD week d reflon\nJ550 11MAR01 2011.1 55600 1 1"
    with pytest.raises(SpecError, match=r"make offsets of it with afterslip\.readers"):
        read_observations(text, GEO)
