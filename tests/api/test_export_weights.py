"""Exports of the linear problem weigh the data as the inversion did."""

import csv
import json

import h5py
import numpy as np
import pytest
import xarray as xr
from small_store import N_SOURCE, create_whole_store, sources

from afterslip.archive import GreensStore
from afterslip.errors import SpecError
from afterslip.exports import write_altar, write_beat

TRUTH = np.array([0.5, 1.0, -0.5, 2.0, 0.2, 1.5])
N_STATION, BLUNDER = 8, 7
WEIGHT = np.where(np.arange(3 * N_STATION) == BLUNDER, 1e-6, 1.0)


@pytest.fixture
def greens(tmp_path):
    path = tmp_path / "greens.zarr"
    create_whole_store(path)
    return path


@pytest.fixture
def robust(greens):
    """Return a result of data of which one is off by 3 m and weighs next to nothing."""
    place = np.random.default_rng(5).uniform(-8e3, 8e3, (2, N_STATION))
    x, y = place
    sampled = GreensStore(greens).sample(x, y, [0.0]).values[:, 0]
    matrix = sampled.transpose(1, 2, 0).reshape(-1, N_SOURCE)
    predicted = matrix @ TRUTH
    n = len(predicted)
    table = sources()
    faults = {"flag_meanings": "main splay"}
    components = {"flag_meanings": "strike dip"}
    return xr.Dataset(
        {
            "slip": ("source", TRUTH),
            "source_fault": ("source", table.fault, faults),
            "source_component": ("source", table.component, components),
            "source_patch": (("source", "axis"), table.patch),
            "source_position": (("source", "space"), table.position),
            "source_area": ("source", table.area),
            "station_x": ("station", place[0]),
            "station_y": ("station", place[1]),
            "observed": ("obs", predicted + 3.0 * (np.arange(n) == BLUNDER)),
            "predicted": ("obs", predicted),
            "sigma": ("obs", np.full(n, 0.002)),
            "obs_weight": ("obs", WEIGHT),
            "obs_station": ("obs", np.repeat(np.arange(N_STATION), 3)),
            "obs_component": ("obs", np.tile(np.arange(3), N_STATION)),
            "obs_dataset": ("obs", np.full(n, "gnss", dtype=object)),
            "obs_epoch": ("obs", np.zeros(n)),
        }
    )


def altar(folder):
    """Return matrix, data, standard deviations and sources from AlTar's files."""
    arrays = {}
    for name in ("gf", "data", "Cd"):
        with h5py.File(folder / f"static.{name}.h5") as file:
            arrays[name] = np.asarray(file[f"static.{name}"])
    order = np.argsort(sources().component, kind="stable")
    return arrays["gf"], arrays["data"], np.sqrt(np.diag(arrays["Cd"])), order


def beat(folder):
    """Return the same from the libraries and the list of data for BEAT."""
    with (folder / "data.csv").open() as file:
        rows = list(csv.DictReader(file))
    data, sigma = (
        np.array([float(row[key]) for row in rows]) for key in ("value_m", "sigma_m")
    )
    matrix = np.vstack(
        [
            np.load(folder / f"geodetic_{name}_static_0.traces.npy")
            for name in ("uperp", "uparr")
        ]
    ).T
    return matrix, data, sigma, np.argsort(sources().component, kind="stable")


WRITERS = pytest.mark.parametrize(
    ("write", "read"), [(write_altar, altar), (write_beat, beat)], ids=["altar", "beat"]
)


@WRITERS
def test_a_blunder_that_weighed_little_weighs_little_elsewhere(
    write, read, robust, greens, tmp_path
):
    matrix, data, sigma, order = read(write(robust, greens, tmp_path / "out"))
    np.testing.assert_allclose(sigma, 0.002 / np.sqrt(WEIGHT), rtol=1e-6)
    found = np.linalg.lstsq(matrix / sigma[:, None], data / sigma, rcond=None)[0]
    np.testing.assert_allclose(found, TRUTH[order], atol=1e-3)


@WRITERS
def test_data_that_are_not_robust_have_their_own_errors(
    write, read, robust, greens, tmp_path
):
    plain = robust.drop_vars("obs_weight")
    _, _, sigma, _ = read(write(plain, greens, tmp_path / "out"))
    np.testing.assert_allclose(sigma, 0.002, rtol=1e-6)


@WRITERS
def test_correlated_errors_are_not_exported_as_independent(
    write, read, robust, greens, tmp_path
):
    robust.attrs["datasets"] = json.dumps([{"name": "gnss", "correlated": True}])
    said = r"datasets gnss: has correlated errors.*export an inversion of the other"
    with pytest.raises(SpecError, match=said):
        write(robust, greens, tmp_path / "out")
    assert not (tmp_path / "out").exists()
