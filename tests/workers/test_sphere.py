"""Models on a spherical Earth, from a spec to stored motion.

A homogeneous sphere has no distinguished place: the same fault and stations give the
same motion along their own east, north and up wherever the origin of the map is put.
"""

import copy
import sys
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

sys.path.insert(0, str(Path(__file__).parent))
from small_campaign import SmallCampaign, stored

from afterslip.frame import Frame
from afterslip_common.sphere import EARTH_RADIUS
from afterslip_solver.mesh import placed
from afterslip_workers import entry
from afterslip_workers.engines.viscoelastic import model_file
from afterslip_workers.engines.viscoelastic.forward import run_forward
from afterslip_workers.messages import read_manifest

FAULT = (150.0, 45.0)
# about 1,500 km from the fault, where north is 12 degrees from the fault's north
ELSEWHERE = (135.0, 37.0)
STATIONS = [(150.3, 45.9), (151.8, 44.6), (149.0, 44.2), (148.6, 46.1), (150.9, 43.6)]


def spec(origin, shape="sphere"):
    """A thrust of 100 km, in a box around it."""
    frame = Frame("geographic", origin[0], origin[1], EARTH_RADIUS)
    x, y = (float(v) / 1e3 for v in frame.to_local(*FAULT))
    return {
        "name": "thrust on a sphere",
        "model": {
            "frame": {
                "kind": "geographic",
                "lon0": origin[0],
                "lat0": origin[1],
                "shape": shape,
            },
            "domain": {
                "x": [x - 1500, x + 1500],
                "y": [y - 1500, y + 1500],
                "depth": 900,
            },
            "layers": [
                {"name": "rock", "bottom": 900, "vp": 6.9, "vs": 4.0, "rho": 3000}
            ],
            "faults": [
                {
                    "name": "main",
                    "plane": {
                        "lon": FAULT[0],
                        "lat": FAULT[1],
                        "depth": 50,
                        "strike": 30,
                        "dip": 40,
                        "length": 100,
                        "width": 60,
                    },
                }
            ],
            "mesh": {"size": {"fault": 20, "far": 500}},
            "boundary": {"sides": "fixed", "bottom": "fixed"},
        },
    }


def forward(origin, shape="sphere", mesh=None):
    data = spec(origin, shape)
    data["model"] |= {} if mesh is None else {"mesh": mesh}
    data["slip"] = [{"fault": "main", "dip": 1.0, "strike": 0.5}]
    frame = Frame("geographic", origin[0], origin[1], EARTH_RADIUS)
    x, y = frame.to_local(*np.transpose(STATIONS))
    data["points"] = (np.column_stack([x, y]) / 1e3).tolist()
    data["solver"] = {"space_error": mesh is not None}
    return run_forward(data)


def test_motion_does_not_depend_on_the_origin_of_the_map():
    here, there = forward(FAULT), forward(ELSEWHERE)
    one, other = (found.displacement.values[0] for found in (here, there))
    # across the arc from the origin lengths are those of the map, times sin(a) / a
    assert there.attrs["moment"] == pytest.approx(here.attrs["moment"], rel=1e-2)
    # of the meshes, of which one is not the other moved
    size = np.linalg.norm(one, axis=1)
    assert (np.linalg.norm(other - one, axis=1) < 0.08 * size).all()
    # without the turn of north the difference is 0.2
    flat = forward(ELSEWHERE, "flat").displacement.values[0]
    assert (np.linalg.norm(flat - one, axis=1) > 0.15 * size).any()


def campaign(root, origin, identity, **model):
    data = spec(origin)
    data["model"] |= model
    data["sources"] = {"fault": "main", "along_strike": 2, "down_dip": 1}
    data["times"] = {"until": "0 d", "output": ["0 d"]}
    data["stations"] = {"file": "stations.csv"}
    rows = [f"S{k},{lon},{lat}" for k, (lon, lat) in enumerate(STATIONS)]
    files = {"stations.csv": "station,lon,lat\n" + "\n".join(rows) + "\n"}
    made = SmallCampaign(root, data, identity, files)
    model = stored(entry.execute(made.envelope("model", f"{identity}-model")))
    entry.promote(root, identity, read_manifest(model))
    for index, sources in enumerate(model["groups"]):
        group = made.group(f"{identity}-g{index}", index, sources)
        entry.promote(root, identity, read_manifest(stored(entry.execute(group))))
    entry.finish(root, identity)
    return made, model


@pytest.fixture(scope="module")
def solved(tmp_path_factory):
    root = tmp_path_factory.mktemp("store")
    yield [campaign(root, *item) for item in ((FAULT, "c1"), (ELSEWHERE, "c2"))]
    entry.close_children()


def test_a_store_holds_motion_along_the_axes_of_each_station(solved):
    found, areas = [], []
    for made, _ in solved:
        with xr.open_zarr(made.greens) as data:
            found.append(data["displacement"].values[:, 0])
            assert np.isfinite(data["space_error"].values).all()
            assert np.abs(data["node_z"].values).max() < 1e-3
            lon, lat = data["node_lon"].values, data["node_lat"].values
            areas.append(data["source_area"].values)
        assert np.hypot(lon - 150, lat - 45).min() < 0.5
    np.testing.assert_allclose(areas[0], areas[1], rtol=0.02)
    size = np.linalg.norm(found[0], axis=2)
    error = np.linalg.norm(found[1] - found[0], axis=2)
    assert np.sqrt((error**2).sum() / (size**2).sum()) < 0.06


def test_what_is_stored_serves_no_other_shape_or_origin(solved):
    keys = [set(model["reuse"]["keys"]) for _, model in solved]
    assert keys[0]
    assert not keys[0] & keys[1]


def test_a_model_on_a_sphere_is_read_as_it_was_written(tmp_path):
    from afterslip.spec import parse_forward
    from afterslip.spec.files import LocalFiles
    from afterslip.spec.inputs import resolve
    from afterslip_workers.engines.viscoelastic.building import build_model

    data = copy.deepcopy(spec(FAULT))
    data["model"]["gravity"] = {"restoring": True}
    data |= {"slip": [{"fault": "main", "dip": 1.0}], "points": [[0, 0]]}
    parsed, files = parse_forward(data, tmp_path), LocalFiles(tmp_path)
    model, _ = build_model(parsed.model, resolve(parsed, files), files, lambda _: None)
    model_file.save(tmp_path / "model", model)
    back = model_file.load(tmp_path / "model")
    assert back.placement is not None
    assert model.placement is not None
    np.testing.assert_array_equal(back.placement.nodes, model.placement.nodes)
    assert back.placement.radius == EARTH_RADIUS
    assert back.coarser is not None
    assert back.coarser.placement is not None
    springs, before = placed(back).restoring, placed(model).restoring
    assert springs is not None
    assert before is not None
    np.testing.assert_array_equal(springs.up, before.up)
