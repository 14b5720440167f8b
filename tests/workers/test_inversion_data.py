"""Data sets with errors and unknowns of their own, through a whole inversion."""

import copy
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from typer.testing import CliRunner

sys.path.insert(0, str(Path(__file__).parent))
from small_campaign import (
    NAMES,
    SPEC,
    X_KM,
    Y_KM,
    SmallCampaign,
    observations,
)

from afterslip.cli.main import app
from afterslip.restoration import restore
from afterslip_common.terms import YEAR
from afterslip_workers import entry
from afterslip_workers.messages import read_manifest

TRUTH = np.array([0.1, 1.0, 0.2, 2.0, 0.1, 1.5])
LOOK = np.array([-0.6, -0.1, np.sqrt(1 - 0.37)])


@pytest.fixture(scope="module")
def solved(tmp_path_factory):
    campaign = SmallCampaign(tmp_path_factory.mktemp("store"))
    receipt = entry.execute(campaign.envelope("model", "m1"))
    assert receipt["outcome"] == "stored", receipt["error"]
    entry.promote(campaign.root, "c1", read_manifest(receipt["manifest"]))
    for index, sources in enumerate(receipt["manifest"]["groups"]):
        group = entry.execute(campaign.group(f"g{index}", index, sources))
        entry.promote(campaign.root, "c1", read_manifest(group["manifest"]))
    entry.finish(campaign.root, "c1")
    yield campaign
    entry.close_children()


def motion(campaign, x, y, times):
    """(n_time, n_place, 3) m, of the true slip at places in km."""
    found = entry.sample(campaign.root, "c1", x * 1e3, y * 1e3, times).values
    return np.einsum("s,stpc->tpc", TRUTH, found)


def invert(campaign, identity, datasets, files, **request):
    spec = copy.deepcopy(SPEC)
    spec["datasets"] = datasets
    names = [item["name"] for item in datasets]
    spec["inversions"] = [{"name": "co", "datasets": names, "folds": 3, **request}]
    asked = SmallCampaign(campaign.root, spec, files=files)
    full = {**asked.spec["inversions"][0], "id": identity, "extra_datasets": []}
    receipt = entry.execute(asked.envelope("inversion", identity, inversion=full))
    assert receipt["outcome"] == "stored", receipt["error"]
    entry.promote(campaign.root, "c1", read_manifest(receipt["manifest"]))
    folder = campaign.root / "campaigns" / "c1" / "inversions" / identity
    html = (folder / "report.html").read_text()
    return xr.load_dataset(folder / "result.nc"), receipt["manifest"]["summary"], html


def test_datum_ramp_and_outliers_do_not_leak_into_the_slip(solved):
    rng = np.random.default_rng(4)
    land = motion(solved, X_KM, Y_KM, [0.0])[0] + [0.3, -0.2, 0.15]
    land += rng.normal(0, 0.002, land.shape)
    x, y = np.round(rng.uniform(-80, 80, (2, 70)), 3)
    scene = motion(solved, x, y, [YEAR])[0] @ LOOK
    scene += 0.2 + 0.1 * (x - x.mean()) / 100 - 0.3 * (y - y.mean()) / 100
    scene += rng.normal(0, 0.004, 70)
    scene[[4, 9, 50]] += [0.8, -0.7, 0.9]
    lines = [
        f"{a},{b},{v:.5f},{','.join(f'{c:.6f}' for c in LOOK)}"
        for a, b, v in zip(x, y, scene, strict=True)
    ]
    files = {
        "land.csv": observations(land, 0.002),
        "scene.csv": "x_km,y_km,los,los_e,los_n,los_u\n" + "\n".join(lines),
    }
    covariance = {"exponential": {"sigma": 0.003, "length": 10}}
    datasets = [
        {"name": "land", "file": "land.csv", "translation": True},
        {"name": "scene", "file": "scene.csv", "epoch": "1 yr", "ramp": "linear",
         "sigma": {"los": 0.004}, "covariance": covariance, "robust": True,
         "floor": {"los": 0.001}},
    ]  # fmt: skip
    found, summary, html = invert(solved, "i1", datasets, files)
    assert found["slip"].values == pytest.approx(TRUTH, abs=0.15)
    # three constants of the land, then constant, x and y of the scene
    assert found["unknown_value"].values[:3] == pytest.approx(
        [0.3, -0.2, 0.15], abs=0.02
    )
    assert found["unknown_value"].values[3:] == pytest.approx(
        [0.2, 0.1, -0.3], abs=0.02
    )
    weight = found["obs_weight"].values[-70:]
    assert (weight[[4, 9, 50]] < 0.05).all()
    assert np.median(weight) == 1.0
    expected = np.sqrt(0.004**2 + 0.003**2 + 0.001**2)
    assert found["sigma"].values[-70:] == pytest.approx(expected)
    fits = {row["dataset"]: row for row in summary["fit_by_dataset"]}
    assert fits["land"]["chi"] < 2
    assert fits["land"]["variance_reduction_unweighted"] > 0.99
    assert fits["scene"]["count"] == 70
    facts = {fact["name"]: fact for fact in json.loads(found.attrs["datasets"])}
    assert facts["scene"]["sigma_of_file"] == 0
    assert "ramp constant" in html
    assert "0 of 70 from the file, 70 from sigma" in html


def test_rate_and_season_of_stations_come_apart_from_relaxation(solved):
    times = np.linspace(0.02, 6.0, 25)
    clean = motion(solved, X_KM, Y_KM, times * YEAR)
    rng = np.random.default_rng(8)
    rate = rng.uniform(-0.03, 0.03, (len(NAMES), 3))
    season = rng.uniform(-0.01, 0.01, (2, len(NAMES), 3))
    t = times[:, None, None]
    data = clean + rate * t + season[0] * np.cos(2 * np.pi * t)
    data += season[1] * np.sin(2 * np.pi * t) + rng.normal(0, 0.001, clean.shape)
    head, *_ = observations(np.zeros((len(NAMES), 3))).splitlines()
    lines = [
        f"{name},{x},{y},{e:.6f},{n:.6f},{u:.6f},.001,.001,.001,gnss,{when}"
        for when, epoch in zip(times, data, strict=True)
        for name, x, y, (e, n, u) in zip(NAMES, X_KM, Y_KM, epoch, strict=True)
    ]
    files = {"series.csv": "\n".join([head + ",time", *lines])}
    terms = ["rate", "annual"]
    datasets = [{"name": "series", "file": "series.csv", "terms": terms}]
    # hardly any prior, so that the estimates scatter by their own sigmas; the data have
    # the mesh of the Green's functions, whose error would weigh them less
    weak: dict[str, Any] = {"smoothness": 1e-3, "sparsity": 0.0}
    weak["model_error"] = {"mesh": False}
    found, *_ = invert(solved, "i2", datasets, files, **weak)
    off = np.abs(found["slip"].values - TRUTH)
    assert (off < 5 * found["slip_sigma"].values).all()
    names = found["unknown_name"].values.astype(str)
    place = found["unknown_station"].values, found["unknown_component"].values
    # rates reach 30 mm/yr; a decimetre of slip is 2 mm/yr of relaxation
    is_rate = names == "rate"
    expected = rate[place[0][is_rate], place[1][is_rate]]
    assert found["unknown_value"].values[is_rate] == pytest.approx(expected, abs=4e-3)
    cosine = names == "annual cos"
    expected = season[0][place[0][cosine], place[1][cosine]]
    assert found["unknown_value"].values[cosine] == pytest.approx(expected, abs=2e-3)
    # 1,200 data less 150 unknowns: the noise is left, give or take 2 per cent
    rms = np.sqrt(np.mean(found["residual"].values ** 2))
    assert rms == pytest.approx(0.001 * np.sqrt(1050 / 1200), rel=0.1)
    both = found["predicted_beside"].values + found["residual"].values
    assert np.abs(both).max() < 0.3  # rates over six years; slip moves metres


def test_afterslip_comes_apart_from_relaxation(solved):
    """Data are sums of many small steps of slip, each with the curve since then."""
    ends = np.array([0.1, 1.0, 3.0])
    starts = np.array([0.0, 0.1, 1.0])
    share = np.array([1.0, 0.2, 0.25, 0.3])  # of the true slip: at once, then each
    epochs = np.array([0.0, 0.05, 0.1, 0.4, 1.0, 2.0, 3.0])
    data = []
    for epoch in epochs:
        moved = share[0] * motion(solved, X_KM, Y_KM, [epoch * YEAR])[0]
        for k, (start, end) in enumerate(zip(starts, ends, strict=True), 1):
            done = min(epoch, end) - start
            if done > 0:
                at = start + (np.arange(40) + 0.5) * done / 40
                past = motion(solved, X_KM, Y_KM, (epoch - at) * YEAR).mean(axis=0)
                moved = moved + share[k] * done / (end - start) * past
        data.append(moved)
    noise = np.random.default_rng(2).normal(0, 0.002, np.shape(data))
    head, *_ = observations(np.zeros((len(NAMES), 3))).splitlines()
    lines = [
        f"{name},{x},{y},{e:.6f},{n:.6f},{u:.6f},.002,.002,.002,gnss,{when}"
        for when, epoch in zip(epochs, data + noise, strict=True)
        for name, x, y, (e, n, u) in zip(NAMES, X_KM, Y_KM, epoch, strict=True)
    ]
    files = {"series.csv": "\n".join([head + ",time", *lines])}
    found, summary, html = invert(
        solved, "i3", [{"name": "series", "file": "series.csv"}], files,
        increments={"ends": ["0.1 yr", "1 yr", "3 yr"], "smoothness": 0.0},
        smoothness=1e-3, sparsity=0.0,
    )  # fmt: skip
    truth = share[:, None] * TRUTH
    off = np.abs(found["slip_increment"].values - truth)
    assert (off < 5 * found["slip_increment_sigma"].values).all()
    off = np.abs(found["slip"].values - TRUTH * share.sum())
    assert (off < 5 * found["slip_sigma"].values).all()
    low, high = found["moment_history_interval"].values.T
    moment = found["moment_history"].values
    assert ((low < moment) & (moment < high)).all()
    assert found.attrs["variance_reduction_elastic"] < summary["variance_reduction"]
    assert found["increment_end"].values == pytest.approx([0, *ends])
    assert found["fault_slip_increment"].values.sum(axis=0) == pytest.approx(
        found["fault_slip"].values, abs=1e-9
    )
    assert "Moment through time" in html


def land_of(solved):
    land = motion(solved, X_KM, Y_KM, [0.0])[0]
    land += np.random.default_rng(8).normal(0, 0.01, land.shape)
    return [{"name": "land", "file": "land.csv"}], {
        "land.csv": observations(land, 0.01)
    }


def test_rake_and_moment_hold_in_the_result_and_its_draws(solved):
    datasets, files = land_of(solved)
    found, _, _ = invert(
        solved, "i5", datasets, files,
        constraints=[{"fault": "main", "rake": [85], "most": 1.2}],
        moment={"magnitude": 6.9, "error": 0.01, "rake": 85},
    )  # fmt: skip
    component = found["source_component"].values
    for slip in (found["slip"].values[None], found["slip_draws"].values):
        up, along = slip[:, component == 1], slip[:, component == 0]
        np.testing.assert_allclose(along, up / np.tan(np.deg2rad(85)), atol=1e-6)
        assert up.min() >= 0
        assert np.hypot(along, up).max() <= 1.2 + 1e-6
    assert found.attrs["magnitude"] == pytest.approx(6.9, abs=0.03)
    low, high = found.attrs["magnitude_interval"]
    assert low < 6.9 < high
    assert high - low < 0.06


def test_weight_auto_finds_the_errors_of_one_data_set_and_leaves_the_other(solved):
    land = motion(solved, X_KM, Y_KM, [0.0])[0]
    rng = np.random.default_rng(12)
    files = {
        "good.csv": observations(land + rng.normal(0, 0.01, land.shape), 0.01),
        "bad.csv": observations(land + rng.normal(0, 0.04, land.shape), 0.01),
    }
    datasets = [
        {"name": "good", "file": "good.csv", "weight": 1},
        {"name": "bad", "file": "bad.csv", "weight": "auto"},
    ]
    found, _, _ = invert(solved, "i8", datasets, files, sign={"dip": "positive"})
    good, bad = found.attrs["variance_factors"]
    assert good == 1.0
    # 48 data: the variance is known to a factor of 1.2
    assert bad == pytest.approx(16.0, rel=0.7)
    low, high = found["slip_interval"].values.T
    assert np.mean((low <= TRUTH) & (high >= TRUTH)) > 0.6
    assert found.sizes["draw"] >= 100


def test_the_mesh_error_of_a_campaign_widens_its_intervals(solved):
    """A campaign of a few elements; switched off, the data's errors stand alone."""
    datasets, files = land_of(solved)
    on, _, html = invert(solved, "e0", datasets, files)
    off, _, bare = invert(solved, "e1", datasets, files, model_error={"mesh": False})
    added = on["model_sigma"].values
    assert (added > 0).all()
    # some per cent of what slip of both components of all sources moves
    assert (
        0.002 < np.sqrt(np.mean(added**2)) < 0.2 * np.abs(on["observed"].values).max()
    )
    width = [np.ptp(found.attrs["moment_interval"]) for found in (on, off)]
    assert width[0] > 1.1 * width[1]
    assert "errors of the Green's functions" in on["slip_sigma"].attrs["holds"]
    assert "Errors of the predictions" in html
    assert "model_sigma" not in off
    assert "Errors of the predictions" not in bare
    assert np.size(on.attrs["variance_factors"]) == 1


def test_slip_at_its_bounds_carries_a_warning(solved):
    datasets, files = land_of(solved)
    bounds = [{"bounds": {"dip": [0, 2.5]}}, {"bounds": {"dip": [1.5, 2.5]}}]
    said = []
    for number, constraint in enumerate(bounds):
        found, summary, html = invert(
            solved, f"b{number}", datasets, files, constraints=[constraint]
        )
        text = "slips lie within a standard deviation of a bound"
        assert json.loads(found.attrs["warnings"]) == summary["warnings"]
        assert (text in html) == (text in found.attrs["warnings"])
        said.append(text in html)
    assert said == [False, True]


def test_a_moment_beyond_the_bounds_is_bad_input(solved):
    datasets, files = land_of(solved)
    spec = copy.deepcopy(SPEC)
    spec["datasets"] = datasets
    spec["inversions"] = [
        {"name": "co", "datasets": ["land"], "folds": 3,
         "constraints": [{"bounds": {"dip": [0, 1], "strike": [-1, 1]}}],
         "moment": {"magnitude": 8.5, "error": 0.05, "rake": 90}}
    ]  # fmt: skip
    asked = SmallCampaign(solved.root, spec, files=files)
    full = {**asked.spec["inversions"][0], "id": "i6", "extra_datasets": []}
    receipt = entry.execute(asked.envelope("inversion", "i6", inversion=full))
    assert receipt["outcome"] == "failed"
    assert receipt["error"]["class"] == "bad_input", receipt["error"]
    assert "Mw 8.5 along rake 90 is beyond Mw" in receipt["error"]["message"]


def test_restoration_in_the_result_is_that_of_the_command(solved, tmp_path):
    datasets, files = land_of(solved)
    found, _, html = invert(solved, "i7", datasets, files, sign={"dip": "positive"})
    assert found.sizes["true_source"] == found.sizes["source"] == len(TRUTH)
    slip = found["test_slip"].values[0]
    again = restore(found, slip)
    np.testing.assert_allclose(found["test_restored"].values[0], again, atol=1e-6)
    assert np.diag(found["resolution_matrix"]) == pytest.approx(found["resolution"])
    assert (found["resolution_length"] >= 0).all()
    assert "Slip that is known" in html
    path = solved.root / "campaigns" / "c1" / "inversions" / "i7" / "result.nc"
    command = ["test-resolution", str(path), "--cells", "1", "--spike", "1,0"]
    answer = CliRunner().invoke(app, [*command, "--out", str(tmp_path / "out")])
    assert answer.exit_code == 0, answer.output
    assert "own model:" in answer.output
    made = xr.load_dataset(tmp_path / "out" / "restoration.nc")
    names = ["checkerboard of 1", "spike at 1,0", "own model"]
    assert made["test"].values.tolist() == names
    assert np.isfinite(made["test_restored"]).all()
    assert (tmp_path / "out" / "restoration.png").stat().st_size > 10_000


@pytest.mark.parametrize("asked", [{"smoothness": 1.0}, {"choice": "cross_validation"}])
def test_errors_stated_too_small_narrow_no_interval_beside_errors_of_the_mesh(
    solved, asked
):
    """A tenth of what they are, where the evidence does not choose the smoothness."""
    land = motion(solved, X_KM, Y_KM, [0.0])[0]
    land += np.random.default_rng(3).normal(0, 0.02, land.shape)
    datasets = [{"name": "land", "file": "land.csv"}]
    files = {"land.csv": observations(land, 0.002)}
    width = []
    for mesh in (True, False):
        name = f"e{len(asked)}{mesh}{next(iter(asked))}"
        found, _, _ = invert(
            solved, name, datasets, files, model_error={"mesh": mesh}, **asked
        )
        # 48 data: the variance is known to a factor of 1.2
        assert found.attrs["variance_factors"] == pytest.approx(100.0, rel=0.7)
        low, high = found["slip_interval"].values.T
        width.append((high - low).mean())
        if mesh:
            assert ((low <= TRUTH) & (high >= TRUTH)).all()
    # as stated they would be a tenth; folds may choose another smoothness
    assert width[0] > 0.5 * width[1]


def test_a_factor_on_all_errors_leaves_slip_of_a_given_smoothness_as_it_is(solved):
    """Also beside errors of the mesh, which do not scale with those of the data."""
    land = motion(solved, X_KM, Y_KM, [0.0])[0]
    land += np.random.default_rng(3).normal(0, 0.02, land.shape)
    datasets = [{"name": "land", "file": "land.csv"}]
    slips = []
    for name, sigma, smoothness in (("s1", 0.02, 0.01), ("s2", 0.002, 1.0)):
        files = {"land.csv": observations(land, sigma)}
        found, _, _ = invert(solved, name, datasets, files, smoothness=smoothness)
        slips.append(found["slip"].values)
    # as exact as the median of the draws of their factor
    np.testing.assert_allclose(slips[1], slips[0], atol=2e-3)


def one_station(solved):
    datasets, files = land_of(solved)
    head, first, *_ = files["land.csv"].splitlines()
    return datasets, {"land.csv": f"{head}\n{first}\n"}


def test_data_of_one_station_are_inverted_without_folds(solved):
    datasets, files = one_station(solved)
    found, summary, _ = invert(solved, "o1", datasets, files, smoothness=0.1)
    assert "obs_fold" not in found
    assert "score" not in summary
    assert summary["magnitude"] == pytest.approx(7.6, abs=0.2)


@pytest.mark.parametrize(
    "asked", [{"choice": "cross_validation"}, {"sparsity": "auto"}]
)
def test_a_choice_by_folds_of_one_station_is_bad_input(solved, asked):
    datasets, files = one_station(solved)
    request = {"name": "co", "datasets": ["land"], **asked}
    spec = copy.deepcopy(SPEC) | {"datasets": datasets, "inversions": [request]}
    posed = SmallCampaign(solved.root, spec, files=files)
    full = {**posed.spec["inversions"][0], "id": "o2", "extra_datasets": []}
    receipt = entry.execute(posed.envelope("inversion", "o2", inversion=full))
    assert receipt["error"]["class"] == "bad_input", receipt["error"]
    assert "give data of more stations" in receipt["error"]["message"]
