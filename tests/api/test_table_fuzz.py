"""Any file of text is read, or refused by name, in little memory and time."""

from __future__ import annotations

import json

import pytest
from guarded import Guarded
from hypothesis import given
from hypothesis import strategies as st
from mutation import changed_tables, damaged, encoded, examples, odd_cells

GNSS = (
    "station,lon,lat,east,north,up,sigma_e,sigma_n,sigma_u,type,time",
    ("A,142.1,38.1,1.5,-0.2,0.3,0.01,0.01,0.02,gnss,0",
     "A,142.1,38.1,1.6,-0.2,0.3,0.01,0.01,0.02,gnss,1",
     "B,142.6,38.4,2.5,-1.2,,0.01,0.01,,gnssa,0.5"),
)  # fmt: skip
INSAR = (
    "lon,lat,los,sigma_los,los_e,los_n,los_u",
    ("142.1,38.1,0.5,0.01,0.6,0,0.8", "142.2,38.1,0.4,0.01,0.6,0,0.8"),
)
MOTION = (
    "station,lon,lat,time_s,east,north,up",
    tuple(f"A,142.1,38.1,{t},0.{t},0,-0.1" for t in range(4)),
)
TABLES: dict[str, list[tuple[str, tuple[str, ...]]]] = {
    "stations": [
        ("station,lon,lat", ("A,142.1,38.1", "B,142.6,38.4")),
        ("station,x_km,y_km", ("A,1,2", "B,-3,4.5")),
    ],
    "observations": [GNSS, INSAR],
    "motion": [MOTION],
    "points": [("lon,lat,depth_km", ("142,38,1", "142.5,38.5,20"))],
    "slip": [("lon,lat,depth_km,strike,dip", ("142,38,10,1,2", "142,39,10,0,2"))],
    "interface": [
        ("lon,lat,depth_km", ("142,38,10", "143,38,20", "142,39,30", "143,39,5"))
    ],
    "outline": [("lon,lat", ("142,38", "143,38", "143,39", "142,39"))],
}
SERIES = {
    "tenv3": "site YYMMMDD yyyy.yyyy __MJD week d reflon _e0(m) __east(m) ____n0(m) "
    "_north(m) u0(m) ____up(m) _ant(m) sig_e(m) sig_n(m) sig_u(m) __corr_en __corr_eu "
    "__corr_nu _latitude(deg) _longitude(deg) __height(m)\n"
    + "".join(
        f"J550 11MAR{day} 2011.18{day} 556{day} 1626 5 141.5 -1201 0.5{day} 4243987 "
        f"0.8{day} 73 0.9{day} 0.0 0.0008 0.0007 0.0029 0.02 -0.08 0.16 38.3 -218.5 "
        "73.9\n"
        for day in (30, 31, 32)
    ),
    "pos": "PBO Station Position Time Series. Reference Frame : IGS14\n"
    "4-character ID: P004\nNEU Reference position : 43.1 246.2 1300.5 (IGS14)\n"
    "Start Field Description\nEnd Field Description\n*YYYYMMDD HHMMSS JJJJJ.JJJJ X\n"
    + "".join(
        f" 2011031{d} 120000 5563{d}.5000 -1 2 3 0.1 0.1 0.1 0 0 0 43.1 246.2 1300.5 "
        f"0.00{d} 0.01 0.02 0.001 0.001 0.003 0 0 0 final\n"
        for d in (1, 2, 3)
    ),
    "neu": "2011.1 0.1 0.2 0.3 0.001 0.001 0.003\n2011.2 0.1 0.2 0.3 0.1 0.1 0.3\n",
    "sopac": "2011.1 2011 40 0.1 0.2 0.3 0.1 0.1 0.3\n2011.2 2011 80 0 0 0 1 1 1\n",
}
SQUARE = [[142, 38], [143, 38], [143, 39], [142, 39]]
GMT = b"> outline\n142 38\n143 38\n143 39\n142 39\n"
frames = st.sampled_from(("geographic", "geographic", "local"))


@pytest.fixture(scope="module")
def guarded():
    process = Guarded("readers")
    yield process
    process.close()


def check(guarded, name, frame, content):
    found = guarded("read", name, frame, content)
    assert found is None, f"{found}\n{content[:300]!r} ({len(content)} bytes)"


@pytest.mark.parametrize("name", TABLES)
def test_valid_tables_are_read(name):
    import readers

    for header, rows in TABLES[name]:
        content = "\n".join((header, *rows)).encode()
        readers.READERS[name](content, readers.FRAMES["geographic"])


@pytest.mark.parametrize("name", TABLES)
def test_changed_tables(guarded, name):
    tables = st.sampled_from(TABLES[name]).flatmap(lambda t: changed_tables(*t))

    @examples(60)
    @given(tables, frames)
    def fuzz(content, frame):
        check(guarded, name, frame, content)

    fuzz()


@st.composite
def changed_series(draw):
    lines = SERIES[draw(st.sampled_from(sorted(SERIES)))].split("\n")
    for _ in range(draw(st.integers(1, 3))):
        row = draw(st.integers(0, len(lines) - 1))
        fields = lines[row].split(" ")
        fields[draw(st.integers(0, len(fields) - 1))] = draw(odd_cells)
        lines[row] = " ".join(fields)
    return encoded("\n".join(lines), draw(st.sampled_from(("plain", "bom", "mixed"))))


@examples(200)
@given(changed_series() | st.sampled_from(sorted(SERIES)).flatmap(
    lambda name: damaged(SERIES[name].encode())))  # fmt: skip
def test_changed_series(guarded, content):
    check(guarded, "series", "geographic", content)


numbers = (
    st.floats()
    | st.integers()
    | st.sampled_from((10**400, 2**63, 1e308, 5e-324, -0.0, 180, 90, 142, 38))
)
corners = st.lists(numbers | st.none() | st.text(max_size=3), max_size=4)
rings = st.lists(corners | st.lists(numbers, min_size=2, max_size=2), max_size=9)
anything = st.recursive(
    numbers | st.none() | st.booleans() | st.text(max_size=5) | rings,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(("type", "features", "geometry", "coordinates", "")), inner
        )
    ),
    max_leaves=6,
)
kinds = st.sampled_from(
    ("Polygon", "LineString", "Feature", "FeatureCollection", "MultiPolygon")
)


@st.composite
def geojson(draw):
    shape = {"type": draw(kinds | anything), "coordinates": draw(
        rings | st.lists(rings, max_size=2) | anything)}  # fmt: skip
    if draw(st.booleans()):
        shape = {"type": "Polygon", "coordinates": [[*SQUARE, draw(corners)]]}
    if draw(st.booleans()):
        shape = {"type": "Feature", "geometry": draw(st.just(shape) | anything)}
    if draw(st.booleans()):
        shape = {
            "type": "FeatureCollection",
            "features": draw(st.just([shape]) | anything),
        }
    return json.dumps(shape).encode(draw(st.sampled_from(("utf-8", "utf-16"))))


@examples(200)
@given(
    geojson()
    | damaged(json.dumps({"type": "Polygon", "coordinates": [SQUARE]}).encode())
    | damaged(GMT),
    frames,
)
def test_changed_outlines(guarded, content, frame):
    check(guarded, "outline", frame, content)


@examples(100)
@given(st.binary(max_size=200) | st.text(max_size=50).map(str.encode), frames)
def test_random_bytes(guarded, content, frame):
    for name in (*TABLES, "grid", "mesh", "series"):
        check(guarded, name, frame, content)
