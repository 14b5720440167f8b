"""Every way in which a device fails has its class, and none outlives its process."""

import sys
import threading
from pathlib import Path

import numpy as np
import psutil
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from supervised import FAKE, envelope, wait_for_phase

from afterslip_solver.backend import BackendError
from afterslip_solver.model import SolverSettings
from afterslip_workers import entry
from afterslip_workers.engines.viscoelastic import preflight
from afterslip_workers.errors import TaskError, classify
from afterslip_workers.process import memory, supervisor
from afterslip_workers.process.children import Pool
from afterslip_workers.process.memory import Held

MIB = 1 << 20


@pytest.fixture(autouse=True)
def pool(monkeypatch, tmp_path):
    entry.prepare(tmp_path)
    pool = Pool((FAKE,))
    monkeypatch.setattr(supervisor, "pool", pool)
    yield pool
    pool.close()


@pytest.mark.parametrize(
    ("status", "text", "error_class"),
    [
        (2, "cudaErrorMemoryAllocation: out of memory", "oom"),
        (700, "cudaErrorIllegalAddress: an illegal memory access", "gpu_error"),
        pytest.param(
            719,
            "cudaErrorLaunchFailure: unspecified launch failure",
            "gpu_error",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            46,
            "cudaErrorDevicesUnavailable: all devices busy",
            "gpu_lost",
            marks=pytest.mark.slow,
        ),
        (100, "cudaErrorNoDevice: no CUDA-capable device is detected", "gpu_lost"),
        pytest.param(
            214,
            "cudaErrorECCUncorrectable: uncorrectable ECC error",
            "gpu_lost",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_error_of_cuda_is_classified_and_its_process_ended(
    tmp_path, status, text, error_class
):
    before = entry.execute(envelope(tmp_path, "a1", do="nothing"))
    receipt = entry.execute(
        envelope(tmp_path, "a2", do="cuda", status=status, text=text)
    )
    assert receipt["error"]["class"] == error_class
    assert text in receipt["error"]["message"]
    after = entry.execute(envelope(tmp_path, "a3", do="nothing"))
    assert after["stats"]["pid"] != before["stats"]["pid"], "the context is dead"


def cancelled(store, size):
    answers = []
    order = {"do": "grow", "bytes": size, "seconds": 60.0}
    thread = threading.Thread(
        target=lambda: answers.append(entry.execute(envelope(store, **order)))
    )
    thread.start()
    wait_for_phase(store, "grown")
    (busy,) = supervisor.pool._busy
    child = psutil.Process(busy.pid)
    entry.request_cancel(store, "a1")
    thread.join(15)
    return answers[0], child


def test_memory_of_a_cancelled_attempt_is_found_free(tmp_path):
    receipt, child = cancelled(tmp_path, 900 * MIB)
    assert receipt["outcome"] == "cancelled"
    reported = receipt["stats"]["memory"]
    assert reported["ended"], "it held its memory, so its process had to go"
    assert reported["after"] == {"resident": 0, "gpu": 0}
    assert not child.is_running()
    assert receipt["stats"]["seconds"] < 30


def test_process_that_gave_its_memory_back_stays_warm(tmp_path):
    receipt, child = cancelled(tmp_path, 10 * MIB)
    reported = receipt["stats"]["memory"]
    assert not reported["ended"]
    assert reported["after"]["resident"] - reported["before"]["resident"] < memory.SLACK
    assert child.is_running()


def test_memory_on_the_gpu_counts(monkeypatch, tmp_path):
    held = iter([0, 3000 * MIB, 2000 * MIB, 0, 0, 0])
    monkeypatch.setattr(memory, "_on_gpu", lambda pid: next(held))
    receipt, _ = cancelled(tmp_path, 10 * MIB)
    assert receipt["stats"]["memory"]["ended"]
    assert receipt["stats"]["memory"]["after"]["gpu"] == 0


def test_nvidias_own_tool_is_read(monkeypatch, tmp_path):
    tool = tmp_path / "nvidia-smi"
    rows = "17, 512\\n18, 1024\\n17, 8\\n19, [N/A]\\n"
    tool.write_text(f"#!/bin/sh\nprintf '{rows}'\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(memory, "graphics", lambda: ({"name": "x"},))
    assert memory._on_gpu(17) == 520 * MIB
    assert memory.of(2**22 + 5) == Held(0, 0)


def test_model_that_does_not_fit_is_refused_with_numbers(monkeypatch, broken_ground):
    settings = SolverSettings(times=(0.0,), until=0.0)
    needed = preflight.require(broken_ground, settings, "cpu").needed
    for name, backend in (("free_on_host", "cpu"), ("free_on_gpu", "gpu")):
        monkeypatch.setattr(preflight, name, lambda *_: needed // 10)
        with pytest.raises(TaskError) as refused:
            preflight.require(broken_ground, settings, backend)
        assert refused.value.error_class == "no_memory"
        assert "GB are free" in refused.value.message
        assert "coarser mesh" in refused.value.message


def test_flowing_models_need_more(broken_ground):
    elastic = SolverSettings(times=(0.0,), until=0.0)
    year = 3.2e7
    curve = SolverSettings(times=(0.0, year), until=year)
    materials = broken_ground.materials
    flowing = np.full(len(materials.mu), 1e19)
    model = type(broken_ground)(
        **{
            name: getattr(broken_ground, name)
            for name in ("mesh", "fixed", "surface", "faults", "splits")
        },
        materials=type(materials)(materials.lam, materials.mu, materials.rho, flowing),
    )
    small = preflight.predict_memory(broken_ground, elastic, "cpu")
    assert preflight.predict_memory(model, curve, "cpu").needed > small.needed


def test_backend_that_finds_its_device_gone_is_no_fault_of_the_spec():
    class CUDARuntimeError(RuntimeError):
        status = 100

    error = BackendError("no CUDA device can be used")
    assert classify(error).error_class == "bad_input"
    error.__cause__ = CUDARuntimeError("cudaErrorNoDevice")
    assert classify(error).error_class == "gpu_lost"
    error.__cause__ = ImportError("cupy")
    assert classify(error).error_class == "bad_input"
