"""The command ``run`` with the real solver on a real local cluster."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx
import numpy as np
import psutil
import pytest
import tiny_worker
import xarray as xr
import yaml

from afterslip.archive import open_greens
from afterslip_solver.reference.okada import Rectangles, surface_displacement

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

SLIP = 2.0  # m
SIGNALS = {"ctrl-c": signal.SIGINT, "kill": signal.SIGKILL}


@pytest.fixture(scope="module")
def spec(tmp_path_factory):
    """A plane in two layers; data as 2 m of thrust would make them in a half-space."""
    folder = tmp_path_factory.mktemp("spec")
    angle = np.arange(16.0)
    x, y = 3 * angle * np.cos(2.4 * angle), 3 * angle * np.sin(2.4 * angle)
    fault = Rectangles(0, 0, 2e3, 0, 30, 40e3, 20e3)
    moved = surface_displacement(1e3 * np.c_[x, y], fault, (0.0, SLIP, 0.0))
    lines = ["station,x_km,y_km,east,north,up,sigma_e,sigma_n,sigma_u,type"]
    for index, (east, north, up) in enumerate(moved):
        place = f"S{index},{x[index]:.3f},{y[index]:.3f}"
        lines.append(f"{place},{east:.4f},{north:.4f},{up:.4f},.01,.01,.02,gnss")
    (folder / "obs.csv").write_text("\n".join(lines) + "\n")
    whole = tiny_worker.spec(
        "planar",
        stations={"file": "obs.csv"},
        datasets=[{"name": "gnss", "file": "obs.csv"}],
        inversions=[{"name": "first", "datasets": ["gnss"], "folds": 3}],
    )
    whole["sources"] = {"fault": "main", "along_strike": 4, "down_dip": 3}
    (folder / "planar.yaml").write_text(yaml.safe_dump(whole))
    return folder / "planar.yaml"


def command(spec, out):
    program = Path(sys.executable).with_name("afterslip")
    return [str(program), "run", str(spec), "--out", str(out), "--workers", "1"]


def run(spec, out):
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        command(spec, out), capture_output=True, text=True, env=environment
    )


@pytest.fixture(scope="module")
def undisturbed(spec, tmp_path_factory):
    out = tmp_path_factory.mktemp("out")
    done = run(spec, out)
    assert done.returncode == 0, done.stderr
    return out, done


def test_run_leaves_greens_report_and_figures(undisturbed):
    out, done = undisturbed
    names = {path.name for path in out.iterdir()}
    assert {"greens.zarr", "report.html", "slip.csv", "result.nc"} <= names
    assert any(name.endswith(".png") for name in names)
    assert "24 Green's functions in 6 groups" in done.stdout
    row = re.search(r"first\s+(\d\.\d\d)", done.stdout)
    assert row is not None
    magnitude = float(row[1])
    moment = 3.83e10 * 40e3 * 20e3 * SLIP
    assert magnitude == pytest.approx((np.log10(moment) - 9.1) / 1.5, abs=0.1)
    greens = open_greens(out / "greens.zarr")
    assert greens.attrs["status"] == "complete"
    assert float(greens.residual.max()) <= 1.01e-8
    assert np.isfinite(greens.response[:, 0]).all()


def test_same_command_again_computes_nothing(spec, undisturbed):
    out, _ = undisturbed
    before = json.loads((out / "campaign.json").read_text())
    done = run(spec, out)
    assert done.returncode == 0, done.stderr
    assert "6 of 6 groups are done" in done.stderr
    assert json.loads((out / "campaign.json").read_text())["id"] == before["id"]


def _offspring(process):
    return [child.pid for child in psutil.Process(process.pid).children(recursive=True)]


@pytest.mark.parametrize("how", list(SIGNALS))
def test_interrupted_run_goes_on_to_the_same_result(spec, undisturbed, tmp_path, how):
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with (tmp_path / "stderr").open("w") as stderr:
        process = subprocess.Popen(
            command(spec, tmp_path / "out"),
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            env=environment,
            start_new_session=True,
        )
    accepted = _wait_for_group(tmp_path, process)
    offspring = _offspring(process)
    assert len(offspring) >= 2
    if how == "ctrl-c":  # a terminal tells everybody in it
        os.killpg(process.pid, SIGNALS[how])
    else:
        process.send_signal(SIGNALS[how])
    assert process.wait(30) == (130 if how == "ctrl-c" else -9)
    _all_gone(offspring)
    done = run(spec, tmp_path / "out")
    assert done.returncode == 0, done.stderr
    count = re.search(r"(\d+) of 6 groups are done", done.stderr)
    assert count is not None
    assert int(count[1]) >= accepted
    ours = open_greens(tmp_path / "out" / "greens.zarr")
    theirs = open_greens(undisturbed[0] / "greens.zarr")
    xr.testing.assert_allclose(ours.response, theirs.response, atol=1e-7)
    if how == "ctrl-c":
        text = (tmp_path / "stderr").read_text()
        assert "Traceback" not in text
        assert "the same command goes on" in text


def _wait_for_group(folder, process):
    """Wait until a group is accepted while others are not; return their number."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        assert process.poll() is None, (folder / "stderr").read_text()
        url = re.search(r"http://[\d.:]+", (folder / "stderr").read_text())
        if url:
            items = httpx.get(url[0] + "/v1/campaigns").json()["items"]
            accepted = items[0]["progress"]["accepted"] if items else 0
            if accepted:
                return accepted
        time.sleep(0.05)
    raise AssertionError("no group was accepted")


def _all_gone(pids, seconds=20):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        left = [pid for pid in pids if psutil.pid_exists(pid)]
        left = [p for p in left if psutil.Process(p).status() != "zombie"]
        if not left:
            return
        time.sleep(0.1)
    raise AssertionError([psutil.Process(pid).cmdline() for pid in left])


def test_killed_child_does_not_change_the_result(spec, undisturbed, tmp_path):
    process = subprocess.Popen(
        command(spec, tmp_path / "out"),
        stdout=subprocess.DEVNULL,
        stderr=(tmp_path / "stderr").open("w"),
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    _wait_for_group(tmp_path, process)
    children = [
        child
        for child in psutil.Process(process.pid).children(recursive=True)
        if "afterslip_workers.child" in " ".join(child.cmdline())
    ]
    assert children
    children[0].kill()
    assert process.wait(180) == 0, (tmp_path / "stderr").read_text()
    ours = open_greens(tmp_path / "out" / "greens.zarr")
    theirs = open_greens(undisturbed[0] / "greens.zarr")
    xr.testing.assert_allclose(ours.response, theirs.response, atol=1e-7)


def test_wrong_spec_is_one_message_and_exit_2(spec, tmp_path):
    wrong = yaml.safe_load(spec.read_text())
    wrong["model"]["layers"][0]["vs"] = 9
    (tmp_path / "wrong.yaml").write_text(yaml.safe_dump(wrong))
    done = run(tmp_path / "wrong.yaml", tmp_path / "out")
    assert done.returncode == 2
    assert "model.layers[0].vs" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists()
