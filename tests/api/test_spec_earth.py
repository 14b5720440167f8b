"""The shape of the Earth and the height of its ground in a spec."""

import copy
from typing import Any

import numpy as np
import pytest
import xarray as xr

from afterslip.errors import SpecError
from afterslip.frame import Frame
from afterslip.identity import canonical_spec, digest, model_digest
from afterslip.readers.topography import read_topography
from afterslip.spec import parse_forward
from afterslip.spec.coverage import plane_fault
from afterslip.spec.files import LocalFiles
from afterslip.spec.inputs import resolve
from afterslip_common.geometry import Box
from afterslip_common.sphere import EARTH_RADIUS

SPEC: dict[str, Any] = {
    "name": "q",
    "model": {
        "frame": {"kind": "geographic", "lon0": 140, "lat0": 38},
        "domain": {"x": [-300, 300], "y": [-300, 300], "depth": 200},
        "layers": [{"name": "rock", "bottom": 200, "vp": 6.9, "vs": 4.0, "rho": 3000}],
        "faults": [
            {
                "name": "main",
                "plane": {
                    "x": 0,
                    "y": 0,
                    "top": 5,
                    "strike": 30,
                    "dip": 40,
                    "length": 40,
                    "width": 40,
                },
            }
        ],
        "mesh": {"size": {"fault": 12, "far": 80}},
    },
    "slip": [{"fault": "main", "dip": 1.0}],
    "points": [[10, 20]],
}
# of this spec, before there were shapes and heights
MODEL = "sha256:8b59156163ebdea9dcdbd94b4496498314a812589ccbfadc90914a78ca8852ae"
WHOLE = "sha256:feb08a81dfa9ef80902114f691441b4a9d9fb8d6bbcf6fa2e800044ed86816ee"
BOX = Box((-50e3, 50e3), (-40e3, 40e3), 100e3)
LOCAL = Frame("local")


def spec(**model):
    found = copy.deepcopy(SPEC)
    found["model"] |= model
    return found


def frame(**keys):
    return {"kind": "geographic", "lon0": 140, "lat0": 38} | keys


def problems(data, base="."):
    with pytest.raises(SpecError) as caught:
        parse_forward(data, base)
    return {p.path: p for p in caught.value.problems}


@pytest.mark.parametrize("model", [{}, {"frame": frame(shape="flat")}])
def test_a_flat_earth_without_topography_has_the_digest_that_it_had(model):
    found = parse_forward(spec(boundary={"bottom": "fixed"}, **model), ".")
    assert model_digest(found) == MODEL
    assert digest(canonical_spec(found)) == WHOLE


@pytest.mark.parametrize(
    ("given", "bottom"),
    [
        ({}, "roller"),
        ({"sides": "roller"}, "roller"),
        ({"sides": "fixed"}, "fixed"),
        ({"sides": "roller", "bottom": "fixed"}, "fixed"),
    ],
)
def test_a_bottom_that_is_left_out_is_as_the_sides_and_written_out(given, bottom):
    found = parse_forward(spec(boundary=given), ".")
    assert found.model.boundary.bottom == bottom
    # what is stored keeps its meaning, whatever a later default is
    assert canonical_spec(found)["model"]["boundary"]["bottom"] == bottom


def test_a_sphere_is_another_model():
    held = {"sides": "fixed"}
    flat = parse_forward(spec(boundary=held), ".")
    round_ = parse_forward(spec(boundary=held, frame=frame(shape="sphere")), ".")
    assert model_digest(flat) != model_digest(round_)


def test_a_sphere_needs_a_place_on_it_and_walls_that_are_held():
    data = spec(frame={"kind": "local", "shape": "sphere"})
    assert "geographic" in str(problems(data)["model.frame.shape"])
    found = problems(spec(frame=frame(shape="sphere")))
    assert found["model.boundary.sides"].hint == "write sides: fixed"
    shapes = str(problems(spec(frame=frame(shape="ellipsoid"))))
    assert "sphere" in shapes


def test_a_box_that_would_meet_itself_behind_the_earth_is_refused():
    wide = {"x": [-15000, 9000], "y": [-9000, 9000], "depth": 6100}
    layers = [SPEC["model"]["layers"][0] | {"bottom": 6100}]
    data = spec(
        frame=frame(shape="sphere"),
        domain=wide,
        layers=layers,
        boundary={"sides": "fixed"},
    )
    found = problems(data)
    assert "17493 km" in str(found["model.domain"])
    assert "6000" in str(found["model.domain.depth"])


def test_strike_counts_from_geographic_north_where_the_fault_is():
    plane = parse_forward(spec(), ".").model.faults[0].plane
    assert plane is not None
    away = plane.model_copy(update={"x": 2000.0, "y": 500.0})
    flat, sphere = (
        plane_fault("main", away, Frame("geographic", 140, 38, radius))
        for radius in (np.inf, EARTH_RADIUS)
    )
    turn = Frame("geographic", 140, 38, EARTH_RADIUS).convergence(2e6, 5e5)
    assert flat.strike == 30.0
    assert abs(turn) > 5.0
    assert sphere.strike == pytest.approx(30.0 - float(turn))


def table(height, step=10.0, columns="x_km,y_km,height_km"):
    lines = [columns]
    for x in np.arange(-60, 60.1, step):
        lines += [f"{x},{y},{height(x, y)}" for y in np.arange(-50, 50.1, step)]
    return "\n".join(lines).encode()


def read(content, frame=LOCAL, size=5e3):
    return read_topography(content, frame, BOX, size, "model.topography")


def test_heights_between_the_lines_of_a_table_are_linear():
    found = read(table(lambda x, y: 0.01 * x - 0.02 * y + 0.5))
    x, y = np.array([-50e3, 12345.0, 50e3, 9e4]), np.array([-40e3, 777.0, 40e3, 0.0])
    inside = np.clip(x, -50e3, 50e3)
    np.testing.assert_allclose(found.at(x, y), 0.01 * inside - 0.02 * y + 500.0)
    metres = table(lambda x, y: 10 * x - 20 * y + 500, columns="x_km,y_km,height_m")
    np.testing.assert_allclose(read(metres).at(x, y), found.at(x, y))


@pytest.mark.parametrize("west", [-0.9, 359.1])
def test_a_grid_is_read_over_the_meridian_of_greenwich_and_upside_down(west):
    lon, lat = west + np.arange(0, 1.81, 0.1), np.arange(38.7, 37.2, -0.1)
    values = 100.0 * (lon - west)[None] + 0.0 * lat[:, None]
    data = xr.Dataset(
        {"elevation": (("lat", "lon"), values, {"units": "m"})},
        {"lat": lat, "lon": lon},
    )
    if west > 0:  # axes of files end at 360
        data = data.assign_coords(lon=np.where(lon > 360, 360.0, lon))
        data = data.isel(lon=slice(0, 9))
    frame = Frame("geographic", 0.0 if west < 0 else 359.5, 38.0)
    box = Box((-20e3, 20e3), (-20e3, 20e3), 100e3)
    content = bytes(data.to_netcdf(engine="scipy"))
    found = read_topography(content, frame, box, 5e3, "topography")
    x, y = frame.to_local(frame.lon0 + 0.1, 38.0)
    wanted = 100.0 * (frame.lon0 + 0.1 - west)
    np.testing.assert_allclose(found.at(x, y), wanted, rtol=1e-6)


def test_a_grid_without_a_unit_is_refused():
    data = xr.Dataset(
        {"z": (("lat", "lon"), np.zeros((3, 3)))},
        {"lat": [37.0, 38, 39], "lon": [139.0, 140, 141]},
    )
    with pytest.raises(SpecError, match="units: m or km"):
        read(bytes(data.to_netcdf(engine="scipy")), Frame("geographic", 140, 38))


def test_topography_must_cover_the_domain():
    found = table(lambda x, y: 0.0).split(b"\n")
    rest = [line for line in found[1:] if not line.startswith((b"50.0", b"60.0"))]
    with pytest.raises(SpecError, match=r"no height at x 4\d\.\d km"):
        read(b"\n".join([found[0], *rest]))


def test_a_height_that_is_no_number_names_its_line():
    lines = table(lambda x, y: 0.0).split(b"\n")
    lines[4] = b"-60,-20,nan"
    with pytest.raises(SpecError, match="line 5"):
        read(b"\n".join(lines))


def test_metres_under_the_name_of_kilometres_are_refused():
    with pytest.raises(SpecError, match="higher than any mountain"):
        read(table(lambda x, y: 800.0))


def test_a_ground_too_steep_for_the_elements_is_refused_with_its_place():
    cliff = table(lambda x, y: 6.0 if x > 11 else 0.0)
    with pytest.raises(SpecError, match=r"rises by .* at x 1\d\.\d km"):
        read(cliff)


def test_a_domain_too_shallow_for_its_ground_is_refused():
    box = Box((-50e3, 50e3), (-40e3, 40e3), 10e3)
    content = table(lambda x, y: 3.0)
    with pytest.raises(SpecError, match=r"quarter of the domain's depth of 10 km"):
        read_topography(content, LOCAL, box, 5e3, "topography")


def test_points_below_the_sea_come_back_to_their_depth_when_the_mesh_is_moved():
    found = read(table(lambda x, y: 0.05 * x - 1.0))
    points = np.array([[2e4, 0.0, -7e3], [-4e4, 3e4, -5e4], [0.0, 0.0, -1e3]])
    z = found.in_box(points)[:, 2]
    height = found.at(points[:, 0], points[:, 1])
    np.testing.assert_allclose(z + height * (1 + z / BOX.depth), points[:, 2])
    # a point on the ground is on top of the box
    assert z[2] == pytest.approx(0.0, abs=1e-9)
    deep = found.depth_in_box(points[:, 0], points[:, 1], np.full(3, 8e3))
    np.testing.assert_allclose(height - 8e3, -deep + height * (1 - deep / BOX.depth))


def test_a_surface_is_put_where_the_mesh_will_carry_it_back(tmp_path):
    wide = "x_km,y_km,height_km\n-400,-400,-2\n400,-400,-2\n-400,400,-2\n400,400,-2\n"
    (tmp_path / "ground.csv").write_text(wide)
    rows = [f"{x},{y},{10 + 0.3 * x}" for x in (0, 20, 40) for y in (-40, 0, 40)]
    (tmp_path / "slab.csv").write_text("x_km,y_km,depth_km\n" + "\n".join(rows))
    faults = [{"name": "main", "surface": {"file": "slab.csv"}}]
    data = spec(topography="ground.csv", faults=faults)
    found = resolve(parse_forward(data, tmp_path), LocalFiles(tmp_path))
    z = found.interfaces["main"].points[:, 2]
    # 10 km below the sea are 8 km below a ground at -2 km
    assert z.max() == pytest.approx(-8e3 / (1 - 2 / 200), rel=1e-9)
