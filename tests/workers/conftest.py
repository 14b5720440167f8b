"""A thrust that breaks the ground, and processes that work in two steps."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from supervised import FAKE

from afterslip_solver.mesh import Box, MeshSize, PlaneFault, build_mesh, surface_trace
from afterslip_solver.model import Materials, Model
from afterslip_workers import entry
from afterslip_workers.process import supervisor
from afterslip_workers.process.children import Pool

PLANE = PlaneFault("main", 0.0, 0.0, 0.0, 0.0, 30.0, 80e3, 60e3)


@pytest.fixture(scope="session")
def broken_ground() -> Model:
    """Small enough to be solved in a test."""
    box = Box((-200e3, 200e3), (-200e3, 200e3), 200e3)
    built = build_mesh(box, [PLANE], MeshSize(20e3, 90e3))
    count = len(built.mesh.elements)
    x, y, z = built.mesh.nodes.T
    fixed = np.zeros((len(x), 3), dtype=bool)
    fixed[np.abs(x) > 199.9e3, 0] = True
    fixed[np.abs(y) > 199.9e3, 1] = True
    fixed[z < -199.9e3] = True
    return Model(
        mesh=built.mesh,
        materials=Materials(
            *(np.full(count, value) for value in (3e10, 3e10, 2800.0, np.inf))
        ),
        fixed=fixed,
        surface=surface_trace(built.mesh),
        faults=built.faults,
        splits=built.splits,
    )


@pytest.fixture
def pools(monkeypatch, tmp_path):
    """One process solves, others write."""
    entry.prepare(tmp_path)
    pool, writers = Pool((FAKE,)), Pool((FAKE,))
    pool.limit = 1
    monkeypatch.setattr(supervisor, "pool", pool)
    monkeypatch.setattr(supervisor, "writers", writers)
    # each imports for seconds
    monkeypatch.setattr(supervisor, "_WRITERS", 0)
    yield pool, writers
    pool.close()
    writers.close()
