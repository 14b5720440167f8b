"""Stores for pyrocko hold each unit source's displacement, by pyrocko's documentation.

pyrocko itself reads them in tests/e2e/test_export_readers.py.
"""

import csv
import re
import struct

import numpy as np
import pytest
import xarray as xr
from example_result import example_result

from afterslip.archive import GreensStore
from afterslip.errors import SpecError
from afterslip.exports import write_pyrocko

RECORD = np.dtype("<u8,<i4,<u4,<f4,<f4")


@pytest.fixture(scope="module")
def result():
    found = example_result(n_along=25, n_down=13)
    found["source_fault"].attrs["flag_meanings"] = "main"
    found["source_component"].attrs["flag_meanings"] = "strike dip"
    frame = '{"kind": "geographic", "lon0": 142.4, "lat0": 38.3}'
    return found.assign_attrs(frame=frame)


@pytest.fixture(scope="module")
def greens(result):
    """Return steps to three times the elastic response in 10 years."""
    x, y = (v.ravel() for v in np.meshgrid(*2 * [np.linspace(-1e6, 1e6, 3)]))
    n = result.sizes["source"]
    response = np.random.default_rng(1).normal(size=(n, 1, 9, 3))
    data = {
        "response": (("source", "mode", "node", "component"),
                     np.concatenate([response, 3 * response], axis=1)),
        "mode_count": ("source", np.full(n, 2)),
        "step_time": ("mode", [0.0, 10.0]),
        "source_position": result["source_position"],
        "face_node_connectivity": (
            ("face", "face_node"), [[0, 1, 2, 5, 8, 4], [0, 4, 8, 7, 6, 3]]),
        "node_x": ("node", x), "node_y": ("node", y), "node_z": ("node", 0 * x),
    }  # fmt: skip
    return xr.Dataset(data, attrs={"until_yr": 10.0, "integrator": "stepping"})


def rows(path):
    with path.open() as file:
        return list(csv.DictReader(file))


def numbers(folder):
    """Return what the configuration says: key to number."""
    text = (folder / "config").read_text()
    return {k: float(v) for k, v in re.findall(r"^(\w+): ([-\d.e+]+)$", text, re.M)}


def test_each_unit_source_has_its_displacement_at_its_node(result, greens, tmp_path):
    write_pyrocko(result, greens, tmp_path, time=5 * 365.25 * 86400)
    x, y = result.station_x.values, result.station_y.values
    own = GreensStore(greens).sample(x, y, [5 * 365.25 * 86400]).values[:, 0]
    stations = rows(tmp_path / "stations.csv")
    assert len(stations) == result.sizes["station"]
    station = 3
    folder = tmp_path / stations[station]["store"]
    config = numbers(folder)
    content = (folder / "index").read_bytes()
    records = np.frombuffer(content[12:], dtype=RECORD)
    assert struct.unpack("<Qf", content[:12]) == (len(records), 1.0)
    axes = ("depth", "east_shift", "north_shift")
    counts = [
        round((config[f"source_{a}_max"] - config[f"source_{a}_min"])
              / config[f"source_{a}_delta"]) + 1
        for a in axes
    ]  # fmt: skip
    assert len(records) == np.prod(counts) * 18
    for source in rows(tmp_path / "sources.csv"):
        node = [
            round((float(source[a]) - config[f"source_{a}_min"])
                  / config[f"source_{a}_delta"])
            for a in axes
        ]  # fmt: skip
        first = np.ravel_multi_index(node, counts) * 18
        response = records["f3"][first : first + 18].astype(float).reshape(3, 6)
        tensor = [float(source[m]) for m in ("mnn", "mee", "mdd", "mne", "mnd", "med")]
        north, east, down = response @ tensor
        expected = own[int(source["source"]), station]
        np.testing.assert_allclose([east, north, -down], expected, atol=2e-6)


def test_moment_tensors_are_double_couples_of_the_sources_moment(
    result, greens, tmp_path
):
    write_pyrocko(result, greens, tmp_path)
    for source in rows(tmp_path / "sources.csv"):
        nn, ee, dd, ne, nd, ed = (
            float(source[m]) for m in ("mnn", "mee", "mdd", "mne", "mnd", "med")
        )
        values = np.linalg.eigvalsh([[nn, ne, nd], [ne, ee, ed], [nd, ed, dd]])
        number = int(source["source"])
        moment = float(result.source_rigidity[number] * result.source_area[number])
        np.testing.assert_allclose(values / moment, [-1, 0, 1], atol=1e-2)
        if source["component"] == "dip":
            # a thrust: what is above goes up, away from what is below
            assert dd > 0


def test_sources_that_no_grid_tells_apart_are_refused(result, greens, tmp_path):
    near = result.copy(deep=True)
    place = near["source_position"].values
    place[2:4] = place[0:2] + 1.0
    wrong = greens.assign(source_position=near["source_position"])
    with pytest.raises(SpecError, match="too close to each other"):
        write_pyrocko(near, wrong, tmp_path / "x")
    assert not (tmp_path / "x").exists()
