"""Memory is asked for as it will be when the model is there, on a GPU of the test."""

import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import psutil
import pytest

from afterslip_solver.model import SolverSettings
from afterslip_workers.engines.viscoelastic import preflight
from afterslip_workers.errors import TaskError
from afterslip_workers.machine import device, free

GIB = 1 << 30
ELASTIC = SolverSettings(times=(0.0,), until=0.0)


class Pool:
    """CuPy's pool: what arrays left stays taken until it is freed."""

    def __init__(self, used, unused):
        self.used, self.unused = used, unused

    def free_all_blocks(self):
        self.unused = 0

    def total_bytes(self):
        return self.used + self.unused


@pytest.fixture
def driver(monkeypatch, tmp_path):
    """Let a program stand for the driver's tool; returns what tells it its answer."""
    tool, asked = tmp_path / "nvidia-smi", tmp_path / "asked"
    tool.write_text(f'#!/bin/sh\necho "$@" > {asked}\ncat {tmp_path}/answer\n')
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.delitem(sys.modules, "cupy", raising=False)

    def answer(*free_mib):
        (tmp_path / "answer").write_text("".join(f"{free}\n" for free in free_mib))
        return asked

    return answer


def test_the_fullest_of_the_gpus_that_share_a_model_counts(driver, monkeypatch):
    asked = driver(9000, 300, 5000)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,GPU-x, 0")
    assert free.free_on_gpu(3) == 300 << 20
    assert "--id 2,GPU-x,0" in asked.read_text()
    assert free.free_on_gpu() == 9000 << 20
    assert "--id 2\n" in asked.read_text()
    driver()
    assert free.free_on_gpu() is None


def test_context_that_is_still_to_come_is_counted(driver, monkeypatch, broken_ground):
    needed = preflight.predict_memory(broken_ground, ELASTIC, "gpu").needed
    driver((needed >> 20) + 100)
    with pytest.raises(TaskError, match="GB are free"):
        preflight.require(broken_ground, ELASTIC, "gpu")
    pool, context = Pool(0, 0), 0
    faked = SimpleNamespace(
        get_default_memory_pool=lambda: pool,
        cuda=SimpleNamespace(driver=SimpleNamespace(ctxGetCurrent=lambda: context)),
    )
    monkeypatch.setitem(sys.modules, "cupy", faked)
    # others load CuPy as well, without a context
    with pytest.raises(TaskError, match="GB are free"):
        preflight.require(broken_ground, ELASTIC, "gpu")
    context = 0x5555
    preflight.require(broken_ground, ELASTIC, "gpu")


def test_what_the_process_keeps_for_itself_makes_room(
    driver, monkeypatch, broken_ground
):
    needed = preflight.predict_memory(broken_ground, ELASTIC, "gpu").needed
    pool, others = Pool(used=needed, unused=needed // 2), needed // 10
    faked = SimpleNamespace(get_default_memory_pool=lambda: pool)
    monkeypatch.setitem(sys.modules, "cupy", faked)
    monkeypatch.setattr(preflight, "has_context", lambda: True)
    monkeypatch.setattr(
        preflight,
        "free_on_gpu",
        lambda gpus: 2 * needed - others - pool.total_bytes(),
    )
    with pytest.raises(TaskError, match="GB are free"):
        preflight.require(broken_ground, ELASTIC, "gpu")

    def drop_warm_models():
        pool.used, pool.unused = 0, needed

    preflight.require(broken_ground, ELASTIC, "gpu", make_room=drop_warm_models)
    assert pool.total_bytes() == 0


def test_warm_models_stay_where_there_is_room(driver, monkeypatch, broken_ground):
    monkeypatch.setattr(preflight, "free_on_host", lambda: 1000 * GIB)
    preflight.require(
        broken_ground, ELASTIC, "cpu", make_room=lambda: pytest.fail("dropped")
    )


def test_trimming_without_a_gpu_is_harmless(monkeypatch):
    monkeypatch.delitem(sys.modules, "cupy", raising=False)
    assert device.trim() == 0

    def refuse():
        raise RuntimeError("cudaErrorIllegalAddress")

    faked = SimpleNamespace(get_default_memory_pool=refuse)
    monkeypatch.setitem(sys.modules, "cupy", faked)
    assert device.trim() == 0


def test_remembered_files_are_not_taken_for_used_memory(monkeypatch, tmp_path):
    monkeypatch.setenv("AFTERSLIP_CHILD_MEMORY", "0")
    (tmp_path / "memory.max").write_text(f"{8 * GIB}\n")
    (tmp_path / "memory.current").write_text(f"{7 * GIB}\n")
    (tmp_path / "memory.stat").write_text(
        f"anon {2 * GIB}\nactive_file {1 * GIB}\ninactive_file {4 * GIB}\n"
    )
    monkeypatch.setattr(free, "Path", lambda _: tmp_path)
    machine = SimpleNamespace(available=100 * GIB)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: machine)
    assert free.free_on_host() == 6 * GIB


def test_memory_is_estimated_for_the_scheme_that_is_asked_for(broken_ground):
    """Of a curve that is short beside the relaxation times, either scheme will do."""
    ground = replace(
        broken_ground,
        materials=replace(
            broken_ground.materials,
            viscosity=np.full(len(broken_ground.materials.mu), 1e19),
        ),
    )
    curve = SolverSettings(times=(1e6,), until=1e6)
    shifted = replace(curve, scheme="shift_invert")
    plain = preflight.predict_memory(ground, curve, "cpu")
    found = preflight.predict_memory(ground, shifted, "cpu")
    assert found.operator == pytest.approx(2 * plain.operator, rel=1e-6)
    assert (
        preflight.predict_memory(ground, replace(curve, scheme="polynomial"), "cpu")
        == plain
    )


def test_coarser_model_of_the_estimate_counts(monkeypatch, broken_ground):
    """Its matrices and solutions stay while the fine model is solved."""
    alone = preflight.predict_memory(broken_ground, ELASTIC, "cpu")
    both = preflight.predict_memory(broken_ground, ELASTIC, "cpu", compared=True)
    assert alone.coarse == 0
    assert 0.02 * alone.needed < both.coarse < 0.3 * alone.needed
    monkeypatch.setattr(preflight, "free_on_host", lambda: alone.needed)
    preflight.require(broken_ground, ELASTIC, "cpu")
    with pytest.raises(TaskError, match="coarse"):
        preflight.require(broken_ground, ELASTIC, "cpu", compared=True)
    assert preflight.room(broken_ground, ELASTIC, "cpu") < 1.0
