"""Compile the kernels of a curve on the CPU before a model is there."""

from __future__ import annotations

import numpy as np

from afterslip_common.terms import YEAR
from afterslip_solver.backend import LANES
from afterslip_solver.greens.prepared import prepare
from afterslip_solver.greens.space_error import (
    BUILT,
    elastic_and_change,
    space_error_between,
)
from afterslip_solver.mesh import boundary_conditions, surface_trace
from afterslip_solver.model import Materials, Model, SolverSettings
from afterslip_solver.testing.box import box_with_fault

_SHEAR, _VISCOSITY = 30e9, 1e19


def compile_ahead() -> None:
    """Solve a box of Maxwell rock, and compare it with itself.

    Kernels are stored as `jit.compiling` says, so that other processes only load them.
    """
    geometry = box_with_fault(
        (6, 6, 4), (60e3, 60e3, 40e3), 45.0, length=20e3, top=10e3, width=14.142135e3
    )
    mesh, (name,) = geometry.mesh, geometry.faults
    uniform, count = np.full, len(mesh.cells)
    model = Model(
        mesh=mesh,
        materials=Materials(
            lam=uniform(count, _SHEAR),
            mu=uniform(count, _SHEAR),
            rho=uniform(count, 3000.0),
            viscosity=uniform(count, _VISCOSITY),
        ),
        fixed=boundary_conditions(mesh, "roller", "fixed"),
        surface=surface_trace(mesh),
        faults=geometry.faults,
        splits=geometry.splits,
    )
    times = np.array([10 * YEAR])
    settings = SolverSettings(
        (0.0, *times), 10 * YEAR, tolerance=1e-5, time_tolerance=1e-3
    )
    slip = np.zeros((len(geometry.faults[name].nodes), 3, LANES))
    slip[:, 0] = 1.0
    nodes = model.surface.nodes
    found = prepare(model, settings, "cpu").solve({name: slip}, nodes)
    itself = np.arange(len(nodes))[:, None], np.ones((len(nodes), 1))
    coarse = elastic_and_change(found, times)
    space_error_between(found, times, coarse, *itself, BUILT)
