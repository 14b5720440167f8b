"""Where a plane is: kilometres or degrees, of its top edge or its centroid."""

import copy
from typing import Any

import numpy as np
import pytest

from afterslip.errors import SpecError
from afterslip.frame import Frame
from afterslip.identity import model_digest
from afterslip.schemas.fault import Plane
from afterslip.spec import parse_campaign
from afterslip.spec.coverage import plane_fault
from afterslip.spec.files import LocalFiles
from afterslip.spec.inputs import resolve

FRAME = Frame("geographic", 13.0, 42.5)
SHAPE = {"strike": 155, "dip": 50, "length": 20, "width": 14}
SPEC: dict[str, Any] = {
    "name": "planes",
    "model": {
        "frame": {"kind": "geographic", "lon0": 13.0, "lat0": 42.5},
        "domain": {"x": [-100, 100], "y": [-100, 100], "depth": 80},
        "layers": [{"name": "crust", "bottom": 80, "vp": 6, "vs": 3.5, "rho": 2700}],
        "faults": [{"name": "main", "plane": {"x": 3, "y": 4, "top": 1, **SHAPE}}],
        "mesh": {"size": {"fault": 2, "far": 20}},
    },
    "sources": {"fault": "main", "along_strike": 3, "down_dip": 2},
    "times": {"until": "1 yr", "output": ["0 d"]},
}


def test_degrees_and_kilometres_name_the_same_plane():
    here = plane_fault("main", Plane(x=12, y=-7, top=2, **SHAPE), FRAME)
    lon, lat = map(float, FRAME.to_geographic(12e3, -7e3))
    there = plane_fault("main", Plane(lon=lon, lat=lat, top=2, **SHAPE), FRAME)
    np.testing.assert_allclose(there.corners, here.corners, atol=1e-5)


@pytest.mark.parametrize("place", [{"x": 12, "y": -7}, {"lon": 13.2, "lat": 42.6}])
def test_the_centroid_is_the_middle_of_the_corners(place):
    found = plane_fault("main", Plane(depth=9, **place, **SHAPE), FRAME)
    x, y = (12e3, -7e3) if "x" in place else map(float, FRAME.to_local(13.2, 42.6))
    middle = np.array([x, y, -9e3])
    np.testing.assert_allclose(found.corners.mean(axis=0), middle, atol=1e-6)
    assert found.strike == SHAPE["strike"]


def test_a_centroid_may_put_the_top_edge_on_the_ground():
    depth = 0.5 * 14 * np.sin(np.radians(50))
    found = plane_fault("main", Plane(x=0, y=0, depth=depth, **SHAPE), FRAME)
    assert found.top == 0.0


def with_plane(frame=None, **plane):
    spec = copy.deepcopy(SPEC)
    spec["model"]["faults"][0]["plane"] = {**SHAPE, **plane}
    if frame:
        spec["model"]["frame"] = frame
    return spec


def test_a_model_by_its_top_edge_keeps_its_digest():
    held = {"sides": "roller", "bottom": "fixed"}
    spec = {**SPEC, "model": {**SPEC["model"], "boundary": held}}
    assert model_digest(parse_campaign(spec)) == (
        "sha256:f2cf3b1450cc3a719d7b0e51767e2c80a2a2dba8c0e8cc5a43474381176813ec"
    )


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        (with_plane(top=1), r"plane\.x: is missing .*lon and lat"),
        (with_plane(x=1, top=1), r"plane\.y: is missing"),
        (with_plane(lon=13, top=1), r"plane\.lat: is missing"),
        (with_plane(x=1, y=1, lon=13, lat=42, top=1), "both given"),
        (with_plane(x=1, y=1), r"plane\.top: is missing .*depth: of the centroid"),
        (with_plane(x=1, y=1, top=1, depth=9), r"plane\.top = 1.*both given"),
        (with_plane(x=1, y=1, depth=5), r"depth = 5.*above the ground .*5\.362"),
        (with_plane({"kind": "local"}, lon=1, lat=1, top=1), "geographic frame"),
        (with_plane(lon=11, lat=42.5, top=1), "outside the domain"),
    ],
)
def test_half_a_place_is_refused(spec, says):
    with pytest.raises(SpecError, match=says):
        resolve(parse_campaign(spec), LocalFiles("."))
