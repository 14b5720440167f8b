"""A campaign through the door: model, groups, acceptance, inversion."""

import copy
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import psutil
import pytest
import xarray as xr

from afterslip_common.terms import YEAR

sys.path.insert(0, str(Path(__file__).parent))
from typing import Any

from small_campaign import NAMES, SPEC, X_KM, Y_KM, SmallCampaign, observations, stored

from afterslip.identity import model_digest
from afterslip.physics.viscoelastic.spec import ViscoelasticCampaign
from afterslip.result import check
from afterslip.spec import parse_campaign
from afterslip.spec.files import StoredFiles
from afterslip_solver.greens import evaluate_curve, prepare
from afterslip_solver.mesh.slit_surface import two_sided
from afterslip_workers import entry
from afterslip_workers.engines.models import load_model
from afterslip_workers.engines.viscoelastic import model_file
from afterslip_workers.engines.viscoelastic.settings import settings_of
from afterslip_workers.engines.viscoelastic.sources import UnitSources, unit_slip
from afterslip_workers.messages import read_manifest
from afterslip_workers.process import supervisor
from afterslip_workers.process.delivery import deliver_all
from afterslip_workers.store import durable


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The small campaign with its model built."""
    campaign = SmallCampaign(tmp_path_factory.mktemp("store"))
    campaign.manifest = stored(entry.execute(campaign.envelope("model", "m1")))
    entry.promote(campaign.root, "c1", read_manifest(campaign.manifest))
    yield campaign
    entry.close_children()


@pytest.fixture(scope="module")
def solved(built):
    """The small campaign with its groups accepted."""
    built.receipts = []
    for index, sources in enumerate(built.manifest["groups"]):
        receipt = entry.execute(built.group(f"g{index}", index, sources))
        entry.promote(built.root, "c1", read_manifest(stored(receipt)))
        built.receipts.append(receipt)
    entry.finish(built.root, "c1")
    return built


def slow_campaign(root, built):
    """Share the model's cache; thousands of steps take long enough to interfere."""
    spec = copy.deepcopy(SPEC)
    spec["solver"] = {"integrator": "stepping", "step": "0.1 d"}
    campaign = SmallCampaign(root, spec, identity="slow")
    manifest = stored(entry.execute(campaign.envelope("model", f"s{time.time_ns()}")))
    entry.promote(root, "slow", read_manifest(manifest))
    return campaign


def computing_children():
    return [
        process
        for process in psutil.Process().children()
        if "afterslip_workers.child" in process.cmdline()
    ]


def in_background(envelope):
    answers = []
    thread = threading.Thread(target=lambda: answers.append(entry.execute(envelope)))
    thread.start()
    return thread, answers


def wait_until_solving(root, token, least=1):
    end = time.monotonic() + 60
    while time.monotonic() < end:
        found = entry.read_progress(root, token)
        if found and (found.solves_done or 0) >= least:
            return found
        time.sleep(0.02)
    raise AssertionError(f"never solving: {found}")


def test_model_says_what_it_is(built):
    manifest = built.manifest
    assert manifest["n_sources"] == 6
    assert manifest["groups"] == [[0, 1, 2, 3], [4, 5]]
    assert 2000 < manifest["n_unknowns"] < 20000
    assert manifest["quality"]["gamma_min"] > 0
    assert manifest["sources"][0]["fault"] == "main"
    assert any(
        note.startswith("sources on fault main: 3 x 1 B-splines with knots 40 x 50 km")
        and note.endswith("slip may have any value at top, bottom, start, end")
        for note in manifest["notes"]
    )
    with xr.open_zarr(built.greens) as store:
        assert store.attrs["model_digest"] == manifest["model_digest"]


def test_model_of_a_second_campaign_comes_from_the_cache(built):
    spec = copy.deepcopy(SPEC)
    spec["sources"]["along_strike"] = 2
    other = SmallCampaign(built.root, spec, identity="c2")
    manifest = stored(entry.execute(other.envelope("model", "m2")))
    assert manifest["from_cache"]
    assert manifest["model_digest"] == built.manifest["model_digest"]
    assert manifest["n_sources"] == 4


def test_building_a_model_again_changes_nothing(built):
    before = durable.checksums(built.root / "campaigns" / "c1")
    stored(entry.execute(built.envelope("model", "m3")))
    assert durable.checksums(built.root / "campaigns" / "c1") == before


def test_damaged_cache_is_built_anew(built, tmp_path):
    digest = built.manifest["model_digest"].removeprefix("sha256:")
    campaign = SmallCampaign(tmp_path)
    first = stored(entry.execute(campaign.envelope("model", "m1")))
    (path,) = (tmp_path / "models" / digest).glob("*.npz")
    path.write_bytes(path.read_bytes()[:-100])
    again = stored(entry.execute(campaign.envelope("model", "m2")))
    assert not again["from_cache"]
    assert again["n_unknowns"] == first["n_unknowns"]


def test_stored_responses_are_those_of_the_solver(solved):
    campaign = parse_campaign(solved.spec)
    assert isinstance(campaign, ViscoelasticCampaign)
    digest = model_digest(campaign, StoredFiles(solved.root))
    model = load_model(entry.open_store(solved.root), digest, model_file)
    units = UnitSources.of(campaign.grids, model)
    slip = unit_slip(units, [4, 5])
    trace = two_sided(model)
    prepared = prepare(model, settings_of(campaign.times, campaign.solver), "cpu")
    found = prepared.solve(slip, trace.nodes)
    trace.add_offsets(found.response[:, :1], slip)
    expected = evaluate_curve(found, np.array([10 * YEAR]))[:, 0]
    with xr.open_zarr(solved.greens) as store:
        elastic = store["response"].values[4:6, 0]
    assert elastic == pytest.approx(found.response[:, 0], abs=1e-6)
    x, y = X_KM * 1e3, Y_KM * 1e3
    late = entry.sample(solved.root, "c1", x, y, [10 * YEAR]).values[4:6, 0]
    assert np.abs(late).max() < np.abs(expected).max() * 1.2
    scale = np.abs(expected).max()
    x, y = model.mesh.nodes[trace.nodes[:40], :2].T
    at_nodes = entry.sample(solved.root, "c1", x, y, [10 * YEAR]).values[4:6, 0]
    plain = ~np.isin(np.arange(40), trace.sides[0].rows)
    assert at_nodes[:, plain] == pytest.approx(
        expected[:, :40][:, plain], abs=1e-5 * scale
    )


def test_stations_hold_what_sampling_gives(solved):
    times = [0.0, 30 * 86400.0, 10 * YEAR]
    sampled = entry.sample(solved.root, "c1", X_KM * 1e3, Y_KM * 1e3, times).values
    with xr.open_zarr(solved.greens) as store:
        assert store["station"].values.tolist() == NAMES
        written = store["displacement"].values
    assert written.shape == (6, 3, len(NAMES), 3)
    # one is from single-precision modes
    assert sampled == pytest.approx(written, abs=1e-6 * np.abs(written).max())


def test_idle_lanes_of_the_last_group_are_masked(solved):
    import zarr

    path = solved.root / "attempts" / "g1" / "group.zarr"
    group: Any = zarr.open_group(path, mode="r")
    assert group["mode_count"].shape == (4,)
    with xr.open_zarr(solved.greens) as store:
        assert (store["mode_count"].values > 1).all()
        assert store.sizes["source"] == 6
        assert float(store["residual"].max()) <= 1e-8
        assert np.isfinite(store["displacement"].values).all()


def test_group_that_another_process_writes_is_the_same(solved, monkeypatch):
    monkeypatch.setattr(supervisor.pool, "limit", 1)
    receipt = entry.execute(solved.group("o0", 0, solved.manifest["groups"][0]))
    supervisor.writers.close()
    files = stored(receipt)["files"]
    assert files == solved.receipts[0]["manifest"]["files"]
    assert {"solving", "evaluating", "writing", "reading back"} <= set(
        receipt["stats"]["phases"]
    )


def test_second_group_finds_the_model_warm(solved):
    first, second = (item["stats"]["seconds"] for item in solved.receipts)
    assert second < first
    log = entry.read_log(solved.root, "g1")
    assert "Traceback" not in log


def test_sources_know_the_rock_around_them(solved):
    with xr.open_zarr(solved.greens) as store:
        rigidity = store["source_rigidity"].values
        area = store["source_area"].values
    # elements at the lower edge reach through the bottom of the crust
    crust = 2800 * 3700**2
    assert (rigidity >= crust * (1 - 1e-9)).all()
    assert (rigidity < 1.02 * crust).all()
    # strike and dip of a patch have the same shape
    assert area[::2] == pytest.approx(area[1::2])
    # free B-splines hold uniform slip: they sum to 3/2 along strike, one is 1 down dip
    assert area.sum() / 2 == pytest.approx(1.5 * 80e3 * 50e3, rel=1e-9)


def test_killed_solve_is_repeated_by_a_fresh_child(built):
    campaign = slow_campaign(built.root, built)
    envelope = campaign.group("k1", 0, [0, 1, 2, 3])
    thread, answers = in_background(envelope)
    wait_until_solving(built.root, "k1", least=3)
    (child,) = computing_children()
    os.kill(child.pid, signal.SIGKILL)
    thread.join(10)
    assert answers[0]["outcome"] == "failed"
    assert answers[0]["error"]["class"] == "killed"
    assert "SIGKILL" in answers[0]["error"]["message"]
    assert not (built.root / "attempts" / "k1" / "group.zarr").exists()
    sources = built.manifest["groups"][1]
    again = entry.execute(built.group("k2", 1, sources))
    assert again["outcome"] == "stored"


def test_cancelled_solve_ends_within_ten_seconds_and_leaves_the_model_warm(built):
    campaign = slow_campaign(built.root, built)
    thread, answers = in_background(campaign.group("x1", 0, [0, 1, 2, 3]))
    progress = wait_until_solving(built.root, "x1", least=3)
    assert progress.solves_expected > 1000
    assert progress.residual is not None
    (child,) = computing_children()
    started = time.monotonic()
    entry.request_cancel(built.root, "x1")
    thread.join(15)
    assert answers[0]["outcome"] == "cancelled"
    assert time.monotonic() - started < 10
    assert child.is_running(), answers[0]["stats"]
    left = {path.name for path in (built.root / "attempts" / "x1").iterdir()}
    assert left == {"cancel", "log.txt", "progress.json", "receipt.json"}


@pytest.mark.slow
def test_stepping_agrees_with_the_spectral_form(solved):
    spec = copy.deepcopy(SPEC)
    spec["solver"] = {"integrator": "stepping", "step": "30 d"}
    campaign = SmallCampaign(solved.root, spec, identity="steps")
    manifest = stored(entry.execute(campaign.envelope("model", "p1")))
    entry.promote(solved.root, "steps", read_manifest(manifest))
    done = entry.execute(campaign.group("p2", 1, [4, 5]))
    entry.promote(solved.root, "steps", read_manifest(stored(done)))
    times = [0.0, 2 * YEAR, 10 * YEAR]
    place = (X_KM * 1e3, Y_KM * 1e3, times)
    steps = entry.sample(solved.root, "steps", *place).values
    curve = entry.sample(solved.root, "c1", *place).values
    assert np.isnan(steps[:4]).all()  # groups that are not there read as missing
    change = np.abs(curve[4:, 2] - curve[4:, 0]).max()
    assert np.abs(steps[4:] - curve[4:]).max() < 2e-3 * change


def test_bad_spec_is_one_readable_failure(built):
    wrong = copy.deepcopy(built.spec)
    wrong["stations"]["file"] = "sha256:" + "0" * 64
    envelope = {**built.envelope("model", "b1"), "spec": wrong}
    receipt = entry.execute(envelope)
    assert receipt["error"]["class"] == "bad_input"
    assert "stations.file" in receipt["error"]["message"]


def test_mesh_that_cannot_be_made_is_refused(built):
    wrong = copy.deepcopy(SPEC)
    fault = copy.deepcopy(SPEC["model"]["faults"][0])
    fault["name"] = "second"
    fault["plane"]["x"] += 0.2  # km, parallel to the first and almost on it
    wrong["model"]["faults"].append(fault)
    campaign = SmallCampaign(built.root, wrong, identity="beside")
    receipt = entry.execute(campaign.envelope("model", "b2"))
    assert receipt["error"]["class"] == "mesh"
    assert "move them apart or together" in receipt["error"]["message"]
    assert not (built.root / "campaigns" / "beside").exists()


def test_sources_too_fine_for_the_mesh_are_refused(built):
    wrong = copy.deepcopy(SPEC)
    wrong["sources"].update(along_strike=60, down_dip=40)
    campaign = SmallCampaign(built.root, wrong, identity="fine")
    receipt = entry.execute(campaign.envelope("model", "b3"))
    assert receipt["error"]["class"] == "bad_input"


def test_group_before_its_model_is_refused(tmp_path):
    campaign = SmallCampaign(tmp_path)
    receipt = entry.execute(campaign.group("e1", 0, [0]))
    assert receipt["error"]["class"] == "internal"
    assert "model.json" in receipt["error"]["message"]


@pytest.fixture
def full_disk(tmp_path):
    """A file system of four megabytes."""
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "none", str(tmp_path)],
        capture_output=True,
    )
    if mounted.returncode:
        pytest.skip("mounting needs privileges; a limit on files is tested elsewhere")
    yield tmp_path
    subprocess.run(["umount", "-l", str(tmp_path)], check=True)


def test_group_of_a_full_store_waits_on_the_workers_disk(full_disk):
    campaign = SmallCampaign(full_disk)
    manifest = stored(entry.execute(campaign.envelope("model", "m1")))
    entry.promote(full_disk, "c1", read_manifest(manifest))
    filler = full_disk / "filler"
    free = os.statvfs(full_disk)
    filler.write_bytes(bytes(free.f_bavail * free.f_frsize - (64 << 10)))
    receipt = entry.execute(campaign.group("f1", 0, [0, 1, 2, 3]))
    manifest = stored(receipt)
    assert receipt["stats"]["spooled"]["class"] == "store_full"
    assert entry.read_manifest(full_disk, "f1") is None
    with pytest.raises(entry.NotDeliveredError):
        entry.promote(full_disk, "c1", read_manifest(manifest))
    filler.unlink()
    deadline = time.monotonic() + 60
    while entry.read_manifest(full_disk, "f1") is None:
        # the deliverer's own thread may hold the entry at this moment
        deliver_all()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    entry.promote(full_disk, "c1", read_manifest(manifest))


def test_inversion_finds_the_slip_behind_the_data(solved):
    truth = np.array([0.1, 1.0, 0.2, 2.0, 0.1, 1.5])
    motion = entry.sample(solved.root, "c1", X_KM * 1e3, Y_KM * 1e3, [0.0]).values
    data = np.einsum("s,stc->tc", truth, motion[:, 0])
    noise = np.random.default_rng(3).normal(0, 0.001, data.shape)
    spec = copy.deepcopy(SPEC)
    spec["datasets"] = [{"name": "gnss", "file": "data.csv"}]
    spec["inversions"] = [{"name": "co", "datasets": ["gnss"], "folds": 4}]
    files = {"data.csv": observations(data + noise)}
    asked = SmallCampaign(solved.root, spec, files=files)
    request = {**asked.spec["inversions"][0], "id": "i1", "extra_datasets": []}
    request["sign"] = {"dip": "positive"}
    receipt = entry.execute(asked.envelope("inversion", "i1", inversion=request))
    manifest = stored(receipt)
    for _ in range(2):
        entry.promote(solved.root, "c1", read_manifest(manifest))
    folder = solved.root / "campaigns" / "c1" / "inversions" / "i1"
    result = check(xr.load_dataset(folder / "result.nc"))
    assert result["slip"].values == pytest.approx(truth, abs=0.15)
    assert result.attrs["variance_reduction"] > 0.999
    # 1500, 3000 and 1500 km2 of 1, 2 and 1.5 m, hardly more with the strike slip
    assert manifest["summary"]["magnitude"] == pytest.approx(7.65, abs=0.05)
    low, high = manifest["summary"]["magnitude_interval"]
    assert low < manifest["summary"]["magnitude"] < high < low + 0.2
    low, high = result["slip_interval"].values.T
    assert ((low < truth) & (truth < high)).sum() >= 5
    assert (low[1::2] >= 0).all()
    low, high = result.attrs["peak_slip_interval"]
    assert low < result.attrs["peak_slip_average"] < high
    assert result.attrs["peak_slip_average"] <= result.attrs["peak_slip"]
    assert "signs" in result["slip_sigma"].attrs["holds"]
    likely = result["fault_slip_exceeds"].values
    assert likely.max() == 1.0
    assert likely.min() == 0.0
    assert result.attrs["optimality_gap"] < 1e-10
    assert np.abs(result["series"].values[0] - data).max() < 0.01
    assert result["time"].values[-1] == pytest.approx(10.0)
    assert json.loads((folder / "slip.geojson").read_text())["features"]
    assert result["fault_edge"].values.tolist() == [["free"] * 4]
    assert "slip may have any value at top" in (folder / "report.html").read_text()


def test_inversion_of_unknown_data_is_bad_input(solved):
    request = {"id": "i2", "name": "co", "datasets": ["nothing"]}
    receipt = entry.execute(solved.envelope("inversion", "i2", inversion=request))
    assert receipt["error"]["class"] == "bad_input"
    assert "nothing" in receipt["error"]["message"]
