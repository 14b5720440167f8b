"""The verbs forward and verify, as a user runs them."""

import json
from pathlib import Path

import pytest
import typer
import xarray as xr
import yaml
from typer.testing import CliRunner

from afterslip.errors import SpecError
from afterslip_solver import verification
from afterslip_solver.verification import Check
from afterslip_solver.verification.check import not_run
from afterslip_workers import commands
from afterslip_workers.engines.forward import engine_of, write
from afterslip_workers.engines.viscoelastic.forward import run_forward

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


@pytest.mark.parametrize("physics", ["viscoelastic", "waves"])
@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--out", "."], "--out = .: is a folder"),
        (["--out", "spec.yaml/u.nc"], "--out = spec.yaml/u.nc: cannot be written: "),
        (["--noise", "much"], "--noise = much: must be two numbers"),
    ],
)
def test_forward_refuses_bad_options_before_the_solve(
    tmp_path, monkeypatch, physics, options, says
):
    solved = refused(tmp_path, monkeypatch, physics, options, says)
    assert solved == []


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--observations", "."], "--observations = .: is a folder"),
        (["--observations", "spec.yaml/d.csv"], "cannot be written: "),
        (["--observations", "d.csv", "--noise", "0,0"], "must be more than zero"),
        (["--observations", "d.csv", "--noise", "0.1,nan"], "must be more than zero"),
        (["--observations", "forward.nc"], "is the file of --out too"),
    ],
)
def test_forward_refuses_data_that_cannot_be_before_the_solve(
    tmp_path, monkeypatch, options, says
):
    solved = refused(tmp_path, monkeypatch, "viscoelastic", options, says)
    assert solved == []


def refused(tmp_path, monkeypatch, physics, options, says):
    """Run forward in a folder with a spec; return what was solved before the error."""
    monkeypatch.chdir(tmp_path)
    spec = Path("spec.yaml")
    spec.write_text(f"physics: {physics}\n{SPEC}")
    solved = []
    engine = type(engine_of(spec))
    monkeypatch.setattr(engine, "forward", lambda *given: solved.append(given))
    done = run(commands.forward, spec, *options)
    assert isinstance(done.exception, SpecError), done.output
    assert says in str(done.exception)
    assert [path.name for path in tmp_path.iterdir()] == ["spec.yaml"]
    return solved


def test_a_table_without_slip_is_refused_before_the_solve(tmp_path):
    rows = [f"{x},{y},{5 + x / 3**0.5},0,0" for x in (0, 50) for y in (-40, 40)]
    text = "\n".join(["x_km,y_km,depth_km,strike,dip", *rows])
    (tmp_path / "slip.csv").write_text(text)
    spec = yaml.safe_load(SPEC) | {"slip": {"file": "slip.csv"}}
    phases = []
    with pytest.raises(SpecError, match=r"slip\.file = slip\.csv: is zero on all"):
        run_forward(spec, None, lambda x: phases.append(x["phase"]), base=tmp_path)
    assert "solving" not in phases


def test_a_result_is_not_written_over_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(IsADirectoryError, match=r"'\.'"):
        write(xr.Dataset(), Path())


def test_forward_makes_the_folders_above_its_file(tmp_path):
    (tmp_path / "spec.yaml").write_text(SPEC)
    out = tmp_path / "new/folder/u.nc"
    done = run(commands.forward, tmp_path / "spec.yaml", "--out", out)
    assert done.exit_code == 0, done.output
    assert out.is_file()


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
