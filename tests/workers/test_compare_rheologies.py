"""Runs that differ in viscosity, compared by what the data say of them."""

import copy
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
import typer
import xarray as xr
from typer.testing import CliRunner

sys.path.insert(0, str(Path(__file__).parent))
from small_campaign import NAMES, SPEC, X_KM, Y_KM, SmallCampaign, stored

from afterslip.errors import SpecError
from afterslip_common.terms import YEAR
from afterslip_solver.inversion import invert, moment_parts
from afterslip_workers import entry
from afterslip_workers.comparison import compare_rheologies, sentences
from afterslip_workers.inverting.model_error import mesh_sigma
from afterslip_workers.messages import read_manifest
from afterslip_workers.store import uploads
from afterslip_workers.store.open import open_store
from afterslip_workers.tasks import comparing
from afterslip_workers.tasks.comparing import compare
from afterslip_workers.tasks.posing import pose, settings_of

TRUTH = np.array([0.0, 1.0, 0.0, 2.0, 0.5, 1.5])
VISCOSITIES = {"weak": 3e18, "true": 1e19, "stiff": 1e20}
TIMES = [0.0, YEAR, 5.0 * YEAR]


def solve(root, name):
    spec = copy.deepcopy(SPEC)
    spec["name"] = name
    mantle = spec["model"]["layers"][1]["rheology"]["maxwell"]
    mantle["viscosity"] = VISCOSITIES[name]
    campaign = SmallCampaign(root, spec, name)
    manifest = stored(entry.execute(campaign.envelope("model", f"m{name}")))
    entry.promote(root, name, read_manifest(manifest))
    for index, sources in enumerate(manifest["groups"]):
        work = campaign.group(f"{name}{index}", index, sources)
        entry.promote(root, name, read_manifest(stored(entry.execute(work))))
    entry.finish(root, name)
    return spec


def data(root):
    """CSV of three epochs in the earth that is true, with errors of 2 mm."""
    found = entry.sample(root, "true", X_KM * 1e3, Y_KM * 1e3, TIMES).values
    motion = np.einsum("s,stpc->tpc", TRUTH, found)
    motion += np.random.default_rng(3).normal(0.0, 0.002, motion.shape)
    lines = ["station,x_km,y_km,east,north,up,sigma_e,sigma_n,sigma_u,type,time"]
    for time, epoch in zip([0, 1, 5], motion, strict=True):
        lines += [
            f"{name},{x},{y},{e:.6f},{n:.6f},{u:.6f},.002,.002,.002,gnss,{time}"
            for name, x, y, (e, n, u) in zip(NAMES, X_KM, Y_KM, epoch, strict=True)
        ]
    return "\n".join(lines) + "\n"


def asked(root, name, spec, table, **request):
    """Campaign with the data, and the request as the service would send it."""
    spec = copy.deepcopy(spec)
    spec["datasets"] = [{"name": "series", "file": "series.csv"}]
    one = {"name": "slip", "datasets": ["series"], "folds": 4, **request}
    spec["inversions"] = [one]
    campaign = SmallCampaign(root, spec, name, files={"series.csv": table})
    return campaign, {**campaign.spec["inversions"][0], "extra_datasets": []}


def posed(root, name, spec, table, **request):
    campaign, full = asked(root, name, spec, table, **request)
    backend = open_store(root)
    files = uploads.files_of(backend)
    return pose(backend, files, name, campaign.spec, full, lambda _phase: None)


def run(root, name, spec, table, folder, **request):
    """What `afterslip run` leaves in a folder."""
    campaign, full = asked(root, name, spec, table, **request)
    identity = f"i{name}"
    work = campaign.envelope("inversion", identity, inversion=full | {"id": identity})
    entry.promote(root, name, read_manifest(stored(entry.execute(work))))
    folder.mkdir(parents=True)
    (folder / "store").symlink_to(root)
    source = root / "campaigns" / name / "inversions" / identity / "result.nc"
    shutil.copyfile(source, folder / "result.nc")
    return str(folder)


@pytest.fixture(scope="module")
def solved(tmp_path_factory):
    root = tmp_path_factory.mktemp("store")
    specs = {name: solve(root, name) for name in VISCOSITIES}
    yield root, specs, data(root)
    entry.close_children()


def test_one_station_cannot_be_held_out_of_a_comparison(solved):
    root, specs, table = solved
    head, *lines = table.splitlines()
    alone = "\n".join([head, *(x for x in lines if x.startswith(f"{NAMES[0]},"))])
    runs = {
        name: posed(root, name, specs[name], alone, smoothness=1.0)
        for name in ("weak", "true")
    }
    with pytest.raises(SpecError, match="leaves no stations to hold out"):
        compare(runs, (0.0, 1.0), lambda _phase: None)


def test_the_rheology_of_the_data_has_the_evidence_and_the_score(solved):
    root, specs, table = solved
    sign = {"dip": "positive"}
    runs = {
        name: posed(root, name, spec, table, sign=sign) for name, spec in specs.items()
    }
    found = compare(runs, (0.0, 1.0), lambda _phase: None)
    log = found["log_evidence"]
    assert float(log.sel(model="true")) == 0.0
    assert (log.drop_sel(model="true") < -20.0).all()
    assert float(found["probability"].sel(model="true")) > 0.999
    assert float(found["score_less_best"].sel(model="true")) == 0.0
    # what is held out is predicted better by the true rheology, fold by fold
    assert (found["score_less_best"].drop_sel(model="true") > 1.0).all()
    exact = entry.sample(root, "true", X_KM * 1e3, Y_KM * 1e3, TIMES).values
    moved = np.einsum("s,stpc->tpc", TRUTH, exact[:, 1:] - exact[:, :1])
    change = found["change"].sel(model="true").values[:2]
    assert np.abs(change - moved).max() < 0.05 * np.abs(moved).max()
    decides, change = found["decides"].values, found["change"].values
    assert (change.min(axis=0)[decides] < 0).all()
    assert (change.max(axis=0)[decides] > 0).all()


def test_errors_of_the_mesh_are_in_what_is_compared(solved, monkeypatch):
    """Predictions that the mesh may have wrong say less of the rheology."""
    root, specs, table = solved
    of_mesh, logs, errors = mesh_sigma, [], []
    for mesh, factor in ((False, 1.0), (True, 1.0), (True, 20.0)):
        runs = {
            name: posed(root, name, specs[name], table, model_error={"mesh": mesh})
            for name in ("weak", "true")
        }

        def larger(*given, factor=factor):
            return factor * of_mesh(*given)

        monkeypatch.setattr(comparing, "mesh_sigma", larger)
        found = compare(runs, (0.0, 1.0), lambda _phase: None)
        logs.append(float(found["log_evidence"].sel(model="weak")))
        errors.append(found.attrs["model_error_m"])
    assert errors[0] == 0.0 < errors[1]
    assert errors[2] == pytest.approx(20.0 * errors[1], rel=0.05)
    assert logs[1] < logs[2] < 0.0


@pytest.mark.slow  # a minute: an inversion of increments for each of two models
def test_slip_through_time_is_compared_with_its_increments(solved):
    root, specs, table = solved
    more = {"increments": {"ends": ["1 yr", "5 yr"]}, "sign": {"dip": "positive"}}
    runs = {n: posed(root, n, specs[n], table, **more) for n in ("stiff", "true")}
    found = compare(runs, (0.1, 1.0), lambda _phase: None)
    assert float(found["log_evidence"].sel(model="true")) == 0.0
    assert float(found["log_evidence"].sel(model="stiff")) < -3.0


def test_runs_that_cannot_be_compared_are_refused_by_name(solved):
    root, specs, table = solved
    one = posed(root, "weak", specs["weak"], table)
    two = posed(root, "stiff", specs["stiff"], table, sign={"dip": "positive"})
    three = posed(root, "stiff", specs["stiff"], table.replace("0.00", "0.01"))
    earths = {"model_error": {"campaigns": ["true"]}}
    four, five = (posed(root, n, specs[n], table, **earths) for n in ("weak", "stiff"))
    for runs, said in (
        ({"weak": one}, "two runs"),
        ({"weak": one, "stiff": two}, "sign"),
        ({"weak": one, "stiff": three}, "differ in data"),
        ({"weak": four, "stiff": five}, "model_error.campaigns: are not in the"),
    ):
        with pytest.raises(SpecError, match=said):
            compare(runs, (0.0, 1.0), lambda _phase: None)


@pytest.mark.slow
def test_the_verb_reads_runs_and_writes_table_and_figure(solved, tmp_path):
    root, specs, table = solved
    folders = [
        run(root, name, specs[name], table, tmp_path / name)
        for name in ("true", "weak")
    ]
    verb = typer.Typer()
    verb.command()(compare_rheologies)
    out = tmp_path / "out"
    said = CliRunner().invoke(verb, [*folders, "--out", str(out)])
    assert said.exit_code == 0, said.exception
    found = xr.load_dataset(out / "comparison.nc")
    assert float(found["log_evidence"].sel(model="true")) == 0.0
    assert (out / "comparison.png").stat().st_size > 1000
    assert said.output.index("true ") < said.output.index("weak ")
    empty = CliRunner().invoke(verb, [folders[0], str(tmp_path), "--inversion", "no"])
    assert "is not in" in str(empty.exception)


def test_other_earths_are_changes_of_the_greens_functions(solved):
    root, specs, table = solved
    error = {"campaigns": ["weak", ["stiff", "weak"]]}
    with pytest.raises(SpecError, match="only once"):
        posed(root, "true", specs["true"], table, model_error=error)
    error = {"campaigns": [["stiff", "weak"]]}
    found = posed(root, "true", specs["true"], table, model_error=error).problem
    plain = posed(root, "true", specs["true"], table).problem
    weak, stiff = (
        posed(root, name, specs[name], table).problem for name in ("weak", "stiff")
    )
    half = np.sqrt(0.5)
    np.testing.assert_allclose(found.changes[0], half * (stiff.G - plain.G))
    np.testing.assert_allclose(found.changes[1], half * (weak.G - plain.G))
    assert (found.rigidity_changes == 0.0).all()


def test_intervals_hold_the_truth_in_a_wrong_earth_that_others_surround(solved):
    """Data of 10^19 Pa s in an earth of 3·10^18, with and without its error."""
    root, specs, table = solved
    sign = {"dip": "positive"}
    found = []
    for error in ({}, {"campaigns": ["true"]}):
        run = posed(root, "weak", specs["weak"], table, model_error=error, sign=sign)
        settings = settings_of(run.request, 4)
        found.append((run.problem, invert(run.problem, settings).posterior))
    miss, width = [], []
    for problem, posterior in found:
        assert posterior is not None
        moment = moment_parts(problem, posterior.slip, posterior.earth).sum(axis=1)
        exact = moment_parts(problem, TRUTH[None]).sum()
        miss.append(abs(np.median(moment) - exact))
        width.append(moment.std())
    assert miss[1] < 0.5 * miss[0]
    assert miss[1] < 3.0 * width[1]


def test_largest_disagreements_of_a_sign_are_said_first_and_once():
    change = np.zeros((2, 3, 2, 1))
    change[0, :, 0, 0], change[1, :, 0, 0] = [-0.01, -0.2, -0.3], [0.01, 0.1, 0.2]
    change[0, :, 1, 0], change[1, :, 1, 0] = [-0.5, 0.0, 0.0], [0.002, 0.0, 0.0]
    found = xr.Dataset(
        {
            "change": (("model", "time", "station", "component"), change),
            "decides": (
                ("time", "station", "component"),
                (change[0] < 0) & (change[1] > 0),
            ),
        },
        coords={
            "model": ["a", "b"],
            "time": [1.0, 2.0, 3.0],
            "station": ["S0", "S1"],
            "component": ["east"],
        },
    )
    first, second = sentences(found)
    assert "S0, east, after 3 yr: -300 mm with a, +200 mm with b" in first
    assert "S1, east, after 1 yr: -500 mm with a, +2 mm with b" in second
