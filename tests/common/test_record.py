"""What a record says of the machine that made it."""

import json
import os
import subprocess
import sys

import pytest

from afterslip_common import graphics
from afterslip_common.record import commit, device_name, record, write_records

NAME = "from afterslip_common.record import device_name; print(device_name())"


def test_a_gpu_that_is_hidden_did_not_make_the_record(monkeypatch):
    monkeypatch.setattr(graphics, "ask", lambda *_: [["Some GPU"]])
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert device_name() == "Some GPU"
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert device_name() != "Some GPU"


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no affinity here")
def test_only_cores_that_may_be_used_are_counted():
    one = min(os.sched_getaffinity(0))
    said = subprocess.run(
        [sys.executable, "-c", f"import os; os.sched_setaffinity(0, [{one}]); {NAME}"],
        env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    assert said == "CPU" or said.startswith("1 cores of ")


def test_records_are_written_with_their_machine_and_commit(tmp_path):
    found, path = [record("solve_s", 1.0, "s", 2.0, "note")], tmp_path / "found.json"
    write_records(None, found)
    assert not list(tmp_path.iterdir())
    write_records(path, found)
    written = json.loads(path.read_text())
    assert written == {"device": device_name(), "commit": commit(), "records": found}
    write_records(path, found, "abc")
    assert json.loads(path.read_text()) == written | {"commit": "abc"}
