"""The scripts that run the suite elsewhere and write what it found."""

import importlib.util
import json
import sys
from pathlib import Path

import pytest

from afterslip_solver import verification

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def script(name):
    spec = importlib.util.spec_from_file_location(name, BENCHMARKS / f"{name}.py")
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    assert spec.loader is not None
    spec.loader.exec_module(module)
    return module


def record(checks):
    part = {"item": "patch", "part": "", "size": "small", "seconds": 1.0, "error": ""}
    return {
        "device": "CPU",
        "cores": 2,
        "processes": 1,
        "commit": "abc",
        "seconds": 1.0,
        "parts": [part],
        "checks": checks,
    }


def write(tmp_path, checks):
    docs, found = tmp_path / "v.md", tmp_path / "v.json"
    docs.write_text("before\n<!-- levels -->\nold\n<!-- end of levels -->\nafter\n")
    found.write_text(json.dumps(record(checks)))
    return docs, ["verify_table", "--json", str(found), "--docs", str(docs)]


def test_every_part_is_begun_once():
    every = {(n, p) for n in verification.names() for p in verification.parts(n)}
    begun = script("verify_suite").tasks(verification.names())
    assert set(begun) == every
    assert len(begun) == len(every)


def test_the_table_replaces_the_old_one_and_tells_the_worst(tmp_path, monkeypatch):
    checks = [c.record() for c in verification.run("patch")]
    checks[0]["level"] = "missed"
    docs, arguments = write(tmp_path, checks)
    monkeypatch.setattr(sys, "argv", arguments)
    script("verify_table").main()
    text = docs.read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "old" not in text
    assert "| excellent, missed |" in text
    assert "1 missed" in text


def test_a_check_without_a_row_is_an_error(tmp_path, monkeypatch):
    checks = [{**c.record(), "name": "unheard"} for c in verification.run("patch")]
    docs, arguments = write(tmp_path, checks)
    monkeypatch.setattr(sys, "argv", arguments)
    with pytest.raises(SystemExit, match="unheard"):
        script("verify_table").main()
    assert "old" in docs.read_text()
