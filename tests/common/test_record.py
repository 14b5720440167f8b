"""What a record says of the machine that made it."""

import os
import subprocess
import sys

import pytest

from afterslip_common import graphics
from afterslip_common.record import device_name

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
