"""The error of the mesh in a campaign's store."""

import copy
import sys
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
import zarr

from afterslip_common.terms import YEAR

sys.path.insert(0, str(Path(__file__).parent))
from small_campaign import SPEC, X_KM, Y_KM, SmallCampaign, stored

from afterslip.archive import GreensStore
from afterslip.physics.viscoelastic.reader import CurveReader
from afterslip.physics.viscoelastic.store import Sizes, layout_of
from afterslip_workers import entry
from afterslip_workers.engines.viscoelastic import adopting
from afterslip_workers.messages import read_manifest


@pytest.fixture(scope="module")
def solved(tmp_path_factory):
    """The small campaign, stored."""
    yield run(tmp_path_factory.mktemp("store"), SPEC, "c1")
    entry.close_children()


def run(root, spec, identity):
    campaign = SmallCampaign(root, spec, identity)
    model = stored(entry.execute(campaign.envelope("model", f"{identity}-model")))
    entry.promote(root, identity, read_manifest(model))
    for index, sources in enumerate(model["groups"]):
        group = campaign.group(f"{identity}-g{index}", index, sources)
        manifest = read_manifest(stored(entry.execute(group)))
        entry.promote(root, identity, manifest)
    entry.finish(root, identity)
    return campaign


def curves(store: GreensStore) -> CurveReader:
    assert isinstance(store.reader, CurveReader)
    return store.reader


def response(campaign):
    with xr.open_zarr(campaign.greens) as data:
        return data["response"].values


def test_error_of_the_mesh_is_stored_with_every_source(solved):
    store = GreensStore(solved.greens)
    with xr.open_zarr(solved.greens) as data:
        error, response = data["space_error"].values, data["response"].values[:, 0]
        assert data["error_time"].values == pytest.approx([0.0, 30 / 365.25, 10.0])
    assert np.isfinite(error).all()
    size = np.linalg.norm(response, axis=2)
    # a few elements across the fault: some per cent
    share = np.sqrt((error[:, 0] ** 2).mean(axis=1) / (size**2).mean(axis=1))
    assert ((share > 0.003) & (share < 0.3)).all()
    places = (X_KM * 1e3, Y_KM * 1e3)
    found = curves(store).space_error(*places, [0.0, 15 * YEAR / 365.25, 10 * YEAR])
    assert found.dims == ("source", "part", "time", "station")
    elastic, change = found.values[:, 0], found.values[:, 1]
    assert np.array_equal(elastic[:, 0], elastic[:, 2])
    assert (change[:, 0] == 0.0).all()
    assert (change[:, 2] > 0.0).any(axis=1).all()


def test_the_worst_source_sums_up_a_store(solved):
    found = curves(GreensStore(solved.greens)).largest_space_error()
    with xr.open_zarr(solved.greens) as data:
        error, response = data["space_error"].values, data["response"].values[:, 0]
    size = (response**2).sum(axis=2).mean(axis=1)
    shares = np.sqrt((error[:, 0] ** 2).mean(axis=1) / size)
    assert found["elastic"] == pytest.approx(shares.max(), rel=1e-4)
    assert 0.01 < found["change"] < 1.0
    with xr.open_zarr(solved.greens) as data:
        old = GreensStore(data.drop_vars(["space_error", "error_time"]))
        assert curves(old).largest_space_error() == {}


def test_a_store_without_errors_of_the_mesh_says_that_it_knows_none(solved):
    with xr.open_zarr(solved.greens) as data:
        old = GreensStore(data.drop_vars(["space_error", "error_time"]))
        found = curves(old).space_error([0.0], [50e3], [0.0])
    assert np.isnan(found.values).all()


def test_the_estimate_changes_no_response_and_can_be_left_out(solved, tmp_path):
    without = copy.deepcopy(SPEC)
    without["solver"] = {"space_error": False}
    other = run(tmp_path, without, "c2")
    with xr.open_zarr(other.greens) as data:
        assert "space_error" not in data
        assert "error_time" not in data
    assert np.array_equal(response(other), response(solved), equal_nan=True)


def test_looser_solves_leave_the_estimate_as_it_is(solved, tmp_path):
    loose = copy.deepcopy(SPEC)
    loose["solver"] = {"tolerance": 1e-5, "time_tolerance": 1e-3}
    other = run(tmp_path, loose, "c3")
    parts = []
    for campaign in (solved, other):
        with xr.open_zarr(campaign.greens) as data:
            parts.append(data["space_error"].values)
    moved = np.linalg.norm(parts[1] - parts[0], axis=2)
    assert (moved < 0.05 * np.linalg.norm(parts[0], axis=2)).all()


def test_a_source_that_is_taken_keeps_its_error(solved):
    with xr.open_zarr(solved.greens) as data:
        known, stored = data["error_time"].values, data["space_error"].values[2]
    store = zarr.open_group(solved.greens, mode="r")
    # the times of the store and others, the latter between and behind them
    for years in ([30 / 365.25, 10.0], [5.0, 10.0], []):
        times = np.array([0.0, *years]) * YEAR
        sizes = Sizes(
            source=6, mode=1, node=stored.shape[1], face=1, error_time=1 + len(years)
        )
        wanted = adopting.Wanted(layout_of(sizes), times, 10 * YEAR, 1e-6, None)
        found = adopting.adopt(store, 2, wanted)
        assert found is not None
        taken = found["space_error"]
        assert taken[0] == pytest.approx(stored[0])
        for row, year in zip(taken[1:], years, strict=True):
            part = (year - known[1]) / (known[2] - known[1])
            assert row == pytest.approx((1 - part) * stored[1] + part * stored[2])


def test_a_refined_mesh_is_compared_with_the_one_that_it_came_from(tmp_path):
    spec = copy.deepcopy(SPEC)
    spec["model"]["mesh"]["refine"] = 1
    spec["sources"]["along_strike"] = 2
    spec["times"] = {"until": "1 yr", "output": ["1 yr"]}
    found = run(tmp_path, spec, "fine")
    with xr.open_zarr(found.greens) as data:
        error, size = data["space_error"].values, data["response"].values
    elastic = np.linalg.norm(size[:, 0], axis=2)
    share = np.sqrt((error[:, 0] ** 2).mean(axis=1) / (elastic**2).mean(axis=1))
    assert ((share > 0.0005) & (share < 0.1)).all()
    assert (error[:, 1].max(axis=1) > 0.0).all()


def test_sampled_displacements_have_the_error_of_the_mesh(solved):
    places, times = (X_KM * 1e3, Y_KM * 1e3), [0.0, 10 * YEAR]
    sampled = entry.sample(solved.root, "c1", *places, times)
    error = curves(GreensStore(solved.greens)).space_error(*places, times)
    assert sampled["space_error"].dims == ("source", "time", "station")
    assert sampled["space_error"].values == pytest.approx(error.sum("part").values)
    assert (sampled["space_error"].values[:, 0] > 0.0).all()
