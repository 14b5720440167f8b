"""A thrust that breaks the ground, small enough to be solved in a test."""

import numpy as np
import pytest

from afterslip_solver.mesh import Box, MeshSize, PlaneFault, build_mesh, surface_trace
from afterslip_solver.model import Materials, Model

PLANE = PlaneFault("main", 0.0, 0.0, 0.0, 0.0, 30.0, 80e3, 60e3)


@pytest.fixture(scope="session")
def broken_ground() -> Model:
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
