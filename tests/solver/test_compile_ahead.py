"""Kernels that are compiled before a model is there are those that models need."""

import fcntl
import subprocess
import sys
from pathlib import Path

import pytest

from afterslip_solver.jit import ahead

PROGRAM = """
import numpy as np
from numba.core.dispatcher import Dispatcher

from afterslip_common.terms import KM, YEAR
from afterslip_solver.backend import LANES
from afterslip_solver.backend.cpu import blocks, tets, vectors
from afterslip_solver.greens import prepare
from afterslip_solver.compile_ahead import compile_ahead
from afterslip_solver.mesh import (
    Box, MeshSize, PlaneFault, boundary_conditions, build_mesh, surface_trace,
)
from afterslip_solver.model import Materials, Model, SolverSettings
from afterslip_solver.operators import assembly


def known():
    made = [v for m in (blocks, tets, vectors, assembly) for v in vars(m).values()]
    return {
        (f.py_func.__qualname__, str(s))
        for f in made if isinstance(f, Dispatcher) for s in f.signatures
    }


compile_ahead()
before = known()
box = Box((-150 * KM, 150 * KM), (-120 * KM, 120 * KM), 100 * KM)
plane = PlaneFault("main", 0.0, 0.0, 0.0, 20.0, 30.0, 60 * KM, 36 * KM)
geometry = build_mesh(box, [plane], MeshSize(20 * KM, 80 * KM, 0.5), [30 * KM])
mesh = geometry.mesh
deep = mesh.nodes[mesh.cells, 2].mean(axis=1) < -30 * KM
model = Model(
    mesh,
    Materials(
        lam=np.where(deep, 60e9, 30e9), mu=np.where(deep, 65e9, 33e9),
        rho=np.where(deep, 3300.0, 2800.0), viscosity=np.where(deep, 1e19, np.inf),
    ),
    boundary_conditions(mesh, "roller", "fixed"),
    surface_trace(mesh), geometry.faults, geometry.splits,
)
settings = SolverSettings((0.0, YEAR, 10 * YEAR), 10 * YEAR, time_tolerance=1e-3)
slip = np.zeros((len(geometry.faults["main"].nodes), 3, LANES))
slip[:, 1] = 1.0
found = prepare(model, settings, "cpu").solve({"main": slip}, model.surface.nodes)
assert found.outcome == "converged" and found.mode_count.min() > 1
print(len(before), *sorted(known() - before), sep="\\n")
"""


@pytest.mark.parametrize("backend", ["cpu", "gpu"])
def test_listed_functions_take_the_arguments_that_are_listed(backend):
    # one that cannot be compiled ends the compilation of all others
    for line in ahead.listed(backend):
        function, signature = ahead.resolve(line)
        assert function.py_func.__code__.co_argcount == len(signature), line


def test_curve_needs_no_kernel_that_was_not_compiled_ahead():
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    count, *new = done.stdout.splitlines()
    assert int(count) > 20
    assert new == []


def test_lists_are_of_what_is_called():
    tool = Path(__file__).parents[2] / ".ci" / "compiled.py"
    command = [sys.executable, str(tool), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"run .ci/compiled.py: {done.stdout}{done.stderr}"


class Function:
    """Stands for a compiled function of two places in the lists."""

    def __init__(self, monkeypatch, folder):
        self.compiled = []
        monkeypatch.setattr(ahead, "listed", lambda _: ["one", "two"])
        monkeypatch.setattr(ahead, "resolve", lambda line: (self, (line,)))
        monkeypatch.setattr(
            ahead, "cached_file", lambda _, types: folder / f"{types[0]}.nbc"
        )

    def compile(self, types):
        self.compiled += types


def test_what_is_cached_or_taken_by_another_process_is_left_to_it(
    monkeypatch, tmp_path
):
    function = Function(monkeypatch, tmp_path / "cache")
    ahead.compile_listed("cpu")
    assert function.compiled == ["one", "two"]
    (tmp_path / "cache" / "one.nbc").touch()
    with (tmp_path / "cache" / "two.lock").open("w") as taken:
        fcntl.flock(taken, fcntl.LOCK_EX)
        ahead.compile_listed("cpu")
        assert function.compiled == ["one", "two"]
    ahead.compile_listed("cpu")
    assert function.compiled == ["one", "two", "two"]
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["one.nbc"]


def test_a_folder_that_cannot_be_written_to_costs_nothing_but_time(
    monkeypatch, tmp_path
):
    (tmp_path / "cache").touch()
    function = Function(monkeypatch, tmp_path / "cache")
    ahead.compile_listed("cpu")
    assert function.compiled == []
