"""A worker says what it is, without touching a device."""

import json
import subprocess
import sys

import pytest

from afterslip_workers import entry
from afterslip_workers.machine import device
from afterslip_workers.process.children import _start


def test_worker_describes_itself():
    found = entry.describe_worker()
    assert found["cores"] >= 1
    assert found["memory_bytes"] > 1 << 28
    assert found["cpu"]
    assert isinstance(found["gpus"], list)


def test_threads_come_from_the_environment(monkeypatch):
    monkeypatch.delenv("AFTERSLIP_THREADS", raising=False)
    assert device.threads() == 1
    monkeypatch.setenv("AFTERSLIP_THREADS", "3")
    assert device.threads() == 3


def test_a_child_has_the_threads_for_kernels_and_one_for_small_matrices(monkeypatch):
    monkeypatch.setenv("AFTERSLIP_THREADS", "3")
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "8")
    code = "import json, os; print(json.dumps(dict(os.environ)))"
    with _start(("-c", code)) as process:
        answer, _ = process.communicate(timeout=60)
    found = json.loads(answer)
    assert found["NUMBA_NUM_THREADS"] == "3"
    assert found["OPENBLAS_NUM_THREADS"] == found["MKL_NUM_THREADS"] == "1"


@pytest.fixture
def driver_tool(tmp_path, monkeypatch):
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\necho 'NVIDIA H200, 143771'\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    device.graphics.cache_clear()
    yield
    device.graphics.cache_clear()


def test_devices_are_asked_of_the_driver(driver_tool):
    assert device.graphics() == ({"name": "NVIDIA H200", "memory_bytes": 143771 << 20},)
    assert device.name_of("gpu") == "NVIDIA H200"
    assert device.name_of("cpu") == device.processor_name()


def test_door_opens_without_the_solver_and_its_compiler():
    program = (
        "import sys; from afterslip_workers import entry; "
        "print([m for m in ('numba', 'gmsh', 'zarr', 'cupy') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
