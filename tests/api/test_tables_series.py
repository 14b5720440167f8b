"""Daily positions of GNSS stations, and what an earthquake did to them."""

import csv
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from afterslip.errors import SpecError
from afterslip.frame import Frame
from afterslip.readers.observations import read_observations
from afterslip.readers.series import (
    coseismic_offset,
    decimal_year,
    read_neu,
    read_pos,
    read_tenv3,
    write_offsets,
)
from afterslip.readers.series_format import is_series

DATA = Path(
    os.environ.get(
        "AFTERSLIP_DATA", Path(__file__).parents[2].parent / "shared" / "data"
    )
)
GEO = Frame("geographic", 142.4, 38.3)
EVENT = "2011-03-11T05:46:18"
EVENT_MJD = 55631
SIGMA = (0.001, 0.002, 0.004)

TENV3 = (
    "site YYMMMDD yyyy.yyyy __MJD week d reflon _e0(m) __east(m) ____n0(m) _north(m) "
    "u0(m) ____up(m) _ant(m) sig_e(m) sig_n(m) sig_u(m) __corr_en __corr_eu __corr_nu "
    "_latitude(deg) _longitude(deg) __height(m)"
)
POS = """PBO Station Position Time Series. Reference Frame : IGS14
Format Version: 1.1.0
4-character ID: P158
Station name  : P158
First Epoch   : 20110306 120000
Last Epoch    : 20110316 120000
Release Date  : 20120101 000000
XYZ Reference position :  -2684612.11440 -4316034.05040  3842133.28600 (IGS14)
NEU Reference position :    38.3011860000  218.5006870000   80.95660 (IGS14/WGS84)
Start Field Description
YYYYMMDD      Year, month, day for the given position epoch
End Field Description
*YYYYMMDD HHMMSS JJJJJ.JJJJ X Y Z Sx Sy Sz Rxy Rxz Ryz NLat Elong Height dN dE dU \
Sn Se Su Rne Rnu Reu Soln"""


def motion(mjd):
    """East, north, up on a day: slow motion, and a jump on the day of the event."""
    jump = np.array([5.0, -1.5, -1.1]) * (mjd >= EVENT_MJD)
    return np.array([0.3, 0.2, 0.1]) + jump


def days():
    return range(EVENT_MJD - 5, EVENT_MJD + 6)


def tenv3(site="J550", days=None):
    lines = [TENV3]
    for mjd in days or range(EVENT_MJD - 5, EVENT_MJD + 6):
        e, n, u = motion(mjd)
        # metres before the point may change from day to day
        lines.append(
            f"{site} 11MAR01 {2000 + (mjd + 0.5 - 51544.5) / 365.25:.4f} {mjd} 1626 5 "
            f"141.5 {100 + int(e)} {e - int(e):.6f} 4238000 {n:.6f} 80 {u:.6f} 0.0000 "
            "0.001000 0.002000 0.004000 0.01 0.02 0.03 "
            "38.3011860000 -218.4993130000 80.95660"
        )
    return "\n".join(lines).encode()


def pos():
    lines = [POS]
    for mjd in days():
        e, n, u = motion(mjd)
        lines.append(
            f" 20110301 120000 {mjd}.5000 -1.0 -2.0 3.0 0.1 0.1 0.1 0.1 0.1 0.1 "
            f"38.3011860000 218.5006870000 80.95660 {n:.5f} {e:.5f} {u:.5f} "
            "0.00200 0.00100 0.00400 0.012 0.013 0.014 final"
        )
    return "\n".join(lines).encode()


def neu(fields):
    lines = ["# north east up"]
    for mjd in days():
        doy = mjd - 55562 + 1  # 2011-01-01 is day 55562
        e, n, u = motion(mjd)
        when = f"{2011 + (doy - 0.5) / 365:.6f}"
        when += f" 2011 {doy:03d}" if fields == 9 else ""
        lines.append(f"{when} {n:.5f} {e:.5f} {u:.5f} 0.002 0.001 0.004")
    return "\n".join(lines).encode()


READERS = {
    "tenv3": lambda: read_tenv3(tenv3()),
    "pos": lambda: read_pos(pos()),
    "neu 7": lambda: read_neu(neu(7), "J550", 141.5, 38.3),
    "neu 9": lambda: read_neu(neu(9), "J550", 141.5, 38.3),
}


@pytest.mark.parametrize("kind", READERS)
def test_the_offset_of_a_step_is_the_step_in_every_format(kind):
    series = READERS[kind]()
    assert series.sizes == {"time": 11, "component": 3}
    noon = np.datetime64("2011-03-11T12:00", "ns")
    assert abs(series.time.values[5] - noon) < np.timedelta64(1, "m")
    found = coseismic_offset(series, EVENT, "4 d", "3 d")
    np.testing.assert_allclose(found.offset, [5.0, -1.5, -1.1], atol=1e-9)
    assert (found.attrs["days_before"], found.attrs["days_after"]) == (4, 2)
    # independent days: variances of the two means add
    expected = np.array(SIGMA) * np.sqrt(1 / 4 + 1 / 2)
    np.testing.assert_allclose(found.sigma, expected, rtol=1e-12)


def test_an_event_may_be_a_decimal_year():
    assert decimal_year(2012.5) == np.datetime64("2012-07-02T00:00")
    found = coseismic_offset(READERS["pos"](), 2011 + 69.24 / 365, "4 d", "4 d")
    assert found.attrs["event"].startswith("2011-03-11T05:45")
    assert float(found.offset[0]) == pytest.approx(5.0)


def test_longitudes_are_counted_from_minus_180():
    assert read_tenv3(tenv3()).attrs["lon"] == pytest.approx(141.500687)
    assert read_pos(pos()).attrs["lon"] == pytest.approx(-141.499313)


def test_offsets_are_written_as_a_data_set_of_a_spec(tmp_path):
    found = coseismic_offset(read_tenv3(tenv3()), EVENT, "4 d", "3 d")
    path = write_offsets([found], tmp_path / "offsets.csv")
    data = read_observations(path.read_bytes(), GEO)
    np.testing.assert_allclose(data.displacement, [[5.0, -1.5, -1.1]], atol=1e-6)
    np.testing.assert_allclose(data.sigma, [found.sigma.values], atol=1e-6)
    assert data.name == ("J550",)
    assert data.lon[0] == pytest.approx(141.500687)


def test_old_lines_without_a_place_need_one():
    short = b"\n".join(b" ".join(x.split()[:20]) for x in tenv3().split(b"\n"))
    assert read_tenv3(short, lon=141.5, lat=38.3).attrs["lat"] == 38.3
    with pytest.raises(SpecError, match="give lon and lat"):
        read_tenv3(short)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (b" 0.001000 ", b" 0.000000 ", "line 2: has a sigma of zero"),
        (b" 55627 ", b" 55626 ", "line 3: is not later"),
        (b"0.300000", b"nan", "line 2 = nan: field 9 is not a finite number"),
        (b"0.0000 0.001000", b"0.001000", "line 2: has 22 fields, not 20 or 23"),
        (b"J550 11MAR01 2011.1759", b"X 11MAR01 2011.1759", "several stations"),
    ],
)
def test_malformed_lines_are_named(old, new, says):
    content = tenv3()
    assert old in content
    with pytest.raises(SpecError, match=says):
        read_tenv3(content.replace(old, new, 1))


def offset(event, window):
    return coseismic_offset(READERS["pos"](), event, window, window)


@pytest.mark.parametrize(
    ("read", "says"),
    [
        (lambda: read_tenv3(b""), "has no lines"),
        (lambda: read_pos(tenv3()), "has no header of a .pos file"),
        (lambda: read_neu(b"2011.1 1 2 3", "A", 1, 2), "has 4 fields, not 7 or 9"),
        (lambda: offset(EVENT, "9"), "without a unit"),
        (lambda: offset("soon", "9 d"), "is not a time"),
        (lambda: offset("2015-01-01", "9 d"), "has no positions"),
    ],
)
def test_what_cannot_be_used_is_reported(read, says):
    with pytest.raises(SpecError, match=says):
        read()


@pytest.mark.parametrize("kind", ["tenv3", "pos", "neu 7", "neu 9"])
def test_damaged_files_are_refused_or_read_but_never_crash(kind):
    content = {"tenv3": tenv3(), "pos": pos(), "neu 7": neu(7), "neu 9": neu(9)}[kind]
    read: Any = {"tenv3": read_tenv3, "pos": read_pos}.get(
        kind, lambda text: read_neu(text, "A", 1.0, 2.0)
    )
    rng = np.random.default_rng(3)
    refused = 0
    for _ in range(150):
        text = bytearray(content)
        for _ in range(rng.integers(1, 4)):
            at = int(rng.integers(len(text)))
            text[at : at + int(rng.integers(0, 9))] = rng.choice(
                [b"9" * 9, b"-", b" ", b"\n", b"nan", b"\xff", b"1e99", b"x"]
            )
        try:
            read(bytes(text))
        except SpecError:
            refused += 1
    assert refused > 20


def test_a_series_is_known_from_a_table():
    assert is_series(tenv3())
    assert is_series(pos())
    assert not is_series(b"station,lon,lat\nA,1,2\n")


@pytest.mark.skipif(not DATA.is_dir(), reason="no full data sets here")
def test_oshika_moves_as_published():
    """Days of J550 in the layout of .tenv3, against offsets of another study.

    The station was without power for four weeks; it moved a decimetre meanwhile.
    """
    with (DATA / "tohoku_gnss" / "daily_J550_oshika_ngl.csv").open() as file:
        rows = [r for r in csv.DictReader(file) if float(r["decimal_year"]) > 2011]
    lines = [TENV3]
    lines += [
        f"J550 11MAR01 {r['decimal_year']} {r['mjd']} 1 1 141.5 0 {r['east']} 0 "
        f"{r['north']} 0 {r['up']} 0.0 {r['sigma_e']} {r['sigma_n']} {r['sigma_u']} "
        f"0 0 0 {r['lat']} {r['lon']} 80.0"
        for r in rows[:90]
    ]
    found = coseismic_offset(
        read_tenv3("\n".join(lines).encode()), EVENT, "10 d", "40 d"
    )
    published = [5.305465, -1.609150, -1.103165]
    assert np.abs(found.offset.values - published).max() < 0.15
    assert np.abs(found.offset.values - published).max() > 0.03
