"""What a worker says of itself while it computes."""

import subprocess
import sys
import time
from types import SimpleNamespace
from typing import Any

import pytest

from afterslip_workers.process.use import measure, working_at


def test_an_attempt_is_named_while_it_is_under_way_also_if_it_fails():
    envelope: Any = SimpleNamespace(
        token="t", campaign="c", kind="group", group=SimpleNamespace(index=7)
    )
    named = {"campaign": "c", "kind": "group", "index": 7}

    def fail() -> None:
        with working_at(envelope):
            assert named in measure()["at_work"]
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert measure()["at_work"] == []


def test_a_computing_child_makes_its_worker_busy():
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as child:
        try:
            measure()
            deadline = time.monotonic() + 20
            busy = 0.0
            while busy < 10.0 and time.monotonic() < deadline:
                # this process only sleeps: what is busy is the child
                time.sleep(0.3)
                busy = measure()["cpu_percent"]
        finally:
            child.kill()
    assert busy >= 10.0
