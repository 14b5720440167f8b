"""The verbs forward and verify, as a user runs them."""

import json

import pytest
import typer
import xarray as xr
import yaml
from typer.testing import CliRunner

from afterslip_solver import verification
from afterslip_solver.verification import Check
from afterslip_solver.verification.check import not_run
from afterslip_workers import commands

SPEC = """
model:
  frame: {kind: local}
  domain: {x: [-200, 200], y: [-200, 200], depth: 200}
  layers: [{name: rock, bottom: 200, vp: 6.4, vs: 3.7, rho: 2800}]
  faults:
    - name: main
      plane: {x: 0, y: 0, top: 5, strike: 0, dip: 30, length: 80, width: 60}
  mesh: {size: {fault: 20, far: 100}}
slip: [{fault: main, dip: 1.0}]
points: [[30, 0]]
"""


def run(function, *arguments):
    app = typer.Typer()
    app.command()(function)
    return CliRunner().invoke(app, [str(item) for item in arguments])


def test_forward_writes_its_file_and_says_so(tmp_path):
    (tmp_path / "spec.yaml").write_text(SPEC)
    done = run(commands.forward, tmp_path / "spec.yaml", "--out", tmp_path / "u.nc")
    assert done.exit_code == 0, done.output
    assert "largest displacement" in done.output
    with xr.open_dataset(tmp_path / "u.nc") as result:
        assert result.sizes["point"] == 1


def test_forward_refuses_a_wrong_spec_and_leaves_nothing(tmp_path):
    spec = yaml.safe_load(SPEC)
    spec["model"]["layers"][0]["vs"] = 9.0
    (tmp_path / "spec.yaml").write_text(yaml.safe_dump(spec))
    done = run(commands.forward, tmp_path / "spec.yaml", "--out", tmp_path / "u.nc")
    assert done.exit_code != 0
    assert "layers[0].vs" in str(done.exception)
    assert not (tmp_path / "u.nc").exists()


@pytest.fixture
def suite(monkeypatch):
    def result(name, passed):
        return Check(name, "error", 0.5, 0.1, passed, "truth", "because", 0.01)

    monkeypatch.setattr(verification, "names", lambda: ["good", "bad"])
    monkeypatch.setattr(
        verification,
        "run_all",
        lambda items, *_: [[result(name, name == "good")] for name in items],
    )


def test_verify_passes_and_writes_its_record(tmp_path, suite):
    done = run(commands.verify, "good", "--json", tmp_path / "v.json")
    assert done.exit_code == 0
    record = json.loads((tmp_path / "v.json").read_text())
    assert record["passed"] is True
    keys = {"name", "level", "quantity", "error", "limit", "passed", "reference"}
    assert keys <= set(record["checks"][0])
    assert record["checks"][0]["name"] == "good"
    assert record["checks"][0]["level"] in ("excellent", "good", "acceptable")


def test_verify_exits_with_one_when_a_check_is_missed(tmp_path, suite):
    done = run(commands.verify, "--json", tmp_path / "v.json")
    assert done.exit_code == 1
    assert "1 of 2 checks passed" in done.output
    assert json.loads((tmp_path / "v.json").read_text())["passed"] is False


def test_what_verify_did_not_run_is_not_counted_as_passed(monkeypatch):
    checks = [
        Check("good", "error", 0.05, 0.1, True, "truth", "because", 0.01),
        not_run("device", "error of the device", "the CPU", "no GPU here"),
    ]
    monkeypatch.setattr(verification, "names", lambda: ["good", "device"])
    monkeypatch.setattr(verification, "run_all", lambda *_: [checks])
    done = run(commands.verify)
    assert done.exit_code == 0
    assert "1 of 1 checks passed" in done.output
    assert "device, error of the device: not run: no GPU here" in done.output
    assert "nan" not in done.output


def test_verify_lists_the_items_it_knows(suite):
    done = run(commands.verify, "other")
    assert done.exit_code == 2
    assert "good, bad" in done.output


def test_verify_really_runs_the_patch_test():
    assert run(commands.verify, "patch").exit_code == 0
