"""Tables of text in whatever shape spreadsheets and scripts leave them."""

import numpy as np
import pytest

from afterslip.errors import SpecError
from afterslip.frame import Frame
from afterslip.readers.delimited import read_table
from afterslip.readers.places import read_points, read_stations

GEO, LOCAL = Frame("geographic", 142.4, 38.3), Frame("local")


@pytest.mark.parametrize(
    "text",
    [
        "station,lon,lat\nA,142.4,38.3\nB,142.5,38.4\n",
        "station,lon,lat\r\nA,142.4,38.3\r\nB,142.5,38.4",
        "station,lon,lat\rA,142.4,38.3\rB,142.5,38.4\r",
        "\ufeffstation,lon,lat\nA,142.4,38.3\nB,142.5,38.4\n",
        "# GNSS\n\n station , LON ,lat\n\nA, 142.4 ,38.3\n# no\nB,142.5,38.4,\n",
        "station lon lat\nA   142.4  38.3\nB 142.5\t38.4\n",
        "station\tlon\tlat\nA\t142.4\t38.3\nB\t142.5\t38.4\n",
        "station;lon;lat\nA;142.4;38.3\nB;142.5;38.4\n",
        '"station","lon","lat"\n"A","142.4","38.3"\n"B",142.5,38.4\n',
        "Name,Longitude,Latitude,height\nA,142.4,38.3,\nB,142.5,38.4,7\n",
    ],
)
def test_every_usual_form_is_read(text: str) -> None:
    found = read_stations(text.encode(), GEO)
    assert found.name == ("A", "B")
    np.testing.assert_allclose(found.lon, [142.4, 142.5])
    np.testing.assert_allclose([found.x[0], found.y[0]], 0, atol=1e-6)


def test_line_numbers_are_those_of_the_file() -> None:
    table = read_table(b"# a\n\nx,y\n1,2\n# b\n3,4\n", "t", "x,y")
    assert table.lines.tolist() == [4, 6]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b"", "t: is empty"),
        (b"# only\n", "t: is empty"),
        (b"station,lon,lat\n", "no lines after the header"),
        (b"station,lon,lat\nA,1,2\n1,2\n", "line 3: has 2 fields"),
        (b"142,38\n143,38\n", "must be the names of the columns"),
        (b"station,lon,lon\nA,1,2\n", "the name of two columns"),
        (b"station,lon,lat\nA,142.4\n", "line 2: has 2 fields, and the header has 3"),
        (b"station,lon,lat\nA,142.4,38.3,9\n", "line 2: has 4 fields"),
        (b"station,lon,lat\nA,142.4,38.3\n\nB,x,38\n", "line 4, column lon = x"),
        (b"station,lon,lat\nA,inf,38.3\n", "column lon = inf: is not a finite number"),
        (b"station,lon,lat\nA,NaN,38.3\n", "leave the field empty"),
        (b"station,lon,lat\nA,1_4,38.3\n", "1_4: is not a finite number"),
        (b"station,lon,lat\nA,1e999,38.3\n", "is not a finite number"),
        (b"station,lon,lat\nA,,38.3\n", "line 2, column lon: is missing"),
        (b"station,lon,lat\n,142,38.3\n", "line 2, column station: is missing"),
        (b"station,lon,lat\nA,38.3,142.4\n", "lon and lat look swapped"),
        (b"station,lon,lat\nA,400,38\n", "between -180 and 360"),
        (b"station,lon,lat\nA,142,38\nA,143,38\n", "name of the station in line 2"),
        (b"station,lon\nA,142\n", "has no column lat"),
        (b"station,long,lat\nA,142,38\n", "rename long?"),
        (b"station,lon,lat\nA,142,\xff\n", "line 2: is not UTF-8 text"),
        (b"station,lon,lat\nA,142,38\0\n", "is not a text"),
    ],
)
def test_what_is_wrong_is_reported_with_its_line(text: bytes, says: str) -> None:
    with pytest.raises(SpecError) as caught:
        read_stations(text, GEO, "t")
    assert says in str(caught.value)


def test_many_problems_are_counted_not_listed() -> None:
    lines = "".join(f"S{i},x,38\n" for i in range(1000))
    with pytest.raises(SpecError) as caught:
        read_stations(b"station,lon,lat\n" + lines.encode(), GEO, "t")
    assert len(caught.value.problems) == 21
    assert "980 more" in str(caught.value)


def test_decimal_commas_are_one_problem_of_each_column() -> None:
    lines = "".join(f"S{i};12,{i + 10};42,5\n" for i in range(221))
    lon, lat = problems_of(b"station;lon;lat\n" + lines.encode())
    assert lon == (
        "t line 2, column lon and 220 more lines = 12,10: is not a finite number "
        "(write 12.10 with a point)"
    )
    assert lat.endswith("= 42,5: is not a finite number (write 42.5 with a point)")


def test_local_frames_want_kilometres() -> None:
    found = read_stations(b"station,x_km,y_km\nA,1.5,-2\n", LOCAL)
    assert (found.x[0], found.y[0]) == (1500.0, -2000.0)
    assert np.isnan(found.lon[0])
    with pytest.raises(SpecError, match="the model's frame is local"):
        read_stations(b"station,lon,lat\nA,1.5,-2\n", LOCAL)
    with pytest.raises(SpecError, match="farther than any place"):
        read_stations(b"station,x_km,y_km\nA,150000,-2\n", LOCAL)


def test_geographic_frames_take_kilometres_about_the_origin_too() -> None:
    found = read_stations(b"station,x_km,y_km\nA,0,0\n", GEO)
    np.testing.assert_allclose([found.lon[0], found.lat[0]], [142.4, 38.3])


def test_points_may_have_a_depth() -> None:
    found = read_points(b"x_km,y_km,depth_km\n1,2,3\n4,5,\n", LOCAL)
    assert found.depth.tolist() == [3000.0, 0.0]
    with pytest.raises(SpecError, match="depth is positive down"):
        read_points(b"x_km,y_km,depth_km\n1,2,-3\n", LOCAL)


def problems_of(text: bytes) -> list[str]:
    with pytest.raises(SpecError) as caught:
        read_stations(text, GEO, "t")
    return [str(problem) for problem in caught.value.problems]


def test_a_table_without_a_header_is_one_problem() -> None:
    lines = [b"S%d,%.2f,38.3,0.1" % (k, 142 + k / 100) for k in range(40)]
    (only,) = problems_of(b"\n".join(lines))
    assert "t line 1 = S0,142.00,38.3,0.1: must be the names of the columns" in only
    assert "put a line before it, such as station,lon,lat" in only


def test_swapped_coordinates_are_one_problem() -> None:
    lines = [b"S%d,38.3,%.2f" % (k, 142 + k / 100) for k in range(40)]
    (only,) = problems_of(b"station,lon,lat\n" + b"\n".join(lines))
    assert only.startswith("t line 2, column lat and 39 more lines = 142.00")
    assert "lon and lat look swapped" in only
