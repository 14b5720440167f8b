"""The process that compiles for tasks to come compiles all that is listed."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from afterslip_solver.jit.ahead import listed, resolve
from afterslip_solver.jit.compiling import cached_file

PROGRAM = (sys.executable, "-m", "afterslip_workers.compiling")


@pytest.mark.parametrize("shares", ["1", "1000"])
def test_host_functions_of_a_gpu_are_cached_when_it_has_ended(shares):
    done = subprocess.run(
        [*PROGRAM, str(os.getpid())],
        env={**os.environ, "AFTERSLIP_MEMORY_SHARES": shares},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for line in listed("gpu"):
        assert cached_file(*resolve(line)).exists(), line


def test_it_ends_where_its_parent_has_ended_before():
    done = subprocess.run([*PROGRAM, "1"], capture_output=True, check=False)
    assert done.returncode == 1
