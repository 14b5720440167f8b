"""Burgers bodies and the restoring force on the CUDA backend."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from afterslip_common.terms import YEAR
from afterslip_solver import backend as backends
from afterslip_solver.greens import evaluate_curve, prepare
from afterslip_solver.materials import restoring_force
from afterslip_solver.model import SolverSettings

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize(
    "changes",
    [
        {"scheme": "polynomial"},
        {"scheme": "shift_invert"},
        {"integrator": "stepping", "step": YEAR / 6},
    ],
)
def test_curves_of_burgers_bodies_under_gravity_agree(small, changes):
    model = small.box_model((4, 4, 4))
    m = model.materials
    has = np.isfinite(m.viscosity) & (np.arange(len(m.mu)) % 2 == 0)
    rho = np.where(np.isfinite(m.viscosity), 3300.0, 2800.0)
    restoring, _ = restoring_force(model.mesh, rho)
    materials = replace(
        m,
        rho=rho,
        kelvin_modulus=np.where(has, 2e10, np.inf),
        kelvin_viscosity=np.where(has, 1e18, np.inf),
    )
    model = replace(model, materials=materials, restoring=restoring)
    slip = small.patch_slip(model.faults["main"])
    times = YEAR * np.array([0.0, 0.25, 1.0])
    settings = SolverSettings(
        times=tuple(times), until=YEAR, tolerance=1e-10, time_tolerance=1e-8, **changes
    )
    curves = []
    for backend in (small.backend, backends.get("gpu")):
        result = prepare(model, settings, backend).solve(slip, model.surface.nodes)
        assert result.outcome == "converged"
        curves.append(evaluate_curve(result, times))
    change = np.abs(curves[0] - curves[0][:, :1]).max()
    assert np.abs(curves[1] - curves[0]).max() < 1e-6 * change
