"""Viscoelastic models in three dimensions that several items share."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from afterslip_solver.greens import evaluate_curve
from afterslip_solver.mesh import Geometry, surface_trace
from afterslip_solver.model import Float, GroupResult, Materials, Model, SolverSettings
from afterslip_solver.testing.box import box_with_fault
from afterslip_solver.verification.blocks import (
    FAULT,
    held_sides_and_bottom,
    smooth_slip,
)
from afterslip_solver.verification.check import Size
from afterslip_solver.verification.device import prepared

LAM, MU = 40e9, 40e9
TAU = 1e8


def geometry(size: Size) -> Geometry:
    """Box with a buried 45-degree fault."""
    n = (6, 6, 4) if size == "small" else (12, 12, 8)
    width = 1e4 * float(np.sqrt(2.0))
    return box_with_fault(n, (6e4, 6e4, 4e4), 45.0, length=2e4, top=1e4, width=width)


def crossing_bodies(size: Size) -> Model:
    """Two Maxwell bodies, tenfold different; the fault reaches into both."""
    built = geometry(size)
    x, y, z = built.mesh.nodes[built.mesh.cells].mean(axis=1).T
    viscosity = np.full(len(x), np.inf)
    viscosity[z < -1.5e4] = TAU * MU
    viscosity[(z < -1.5e4) & (x > 1e4)] = 0.1 * TAU * MU
    return _model(built, MU * (1.0 + 0.5 * (y > 0)), viscosity)


def delayed_bodies(size: Size) -> Model:
    """`crossing_bodies` with Kelvin elements in half of each body."""
    model = crossing_bodies(size)
    mesh, materials = model.mesh, model.materials
    y = mesh.nodes[mesh.cells].mean(axis=1)[:, 1]
    has = np.isfinite(materials.viscosity) & (y < 0)
    materials = replace(
        materials,
        kelvin_modulus=np.where(has, 0.7 * materials.mu, np.inf),
        kelvin_viscosity=np.where(has, 0.2 * TAU * MU, np.inf),
    )
    return replace(model, materials=materials)


def enclosed_body(size: Size) -> Model:
    """One Maxwell body with elastic rock all round, below the fault."""
    built = geometry(size)
    x, y, z = built.mesh.nodes[built.mesh.cells].mean(axis=1).T
    inside = (np.abs(x) < 1e4) & (np.abs(y) < 2e4) & (z < -2e4) & (z > -3e4)
    viscosity = np.where(inside, TAU * MU, np.inf)
    return _model(built, MU * (1.0 + 0.5 * (y > 0)), viscosity)


def _model(built: Geometry, mu: Float, viscosity: Float) -> Model:
    ones = np.ones(len(mu))
    return Model(
        built.mesh,
        Materials(LAM * ones, mu, 3000.0 * ones, viscosity),
        held_sides_and_bottom(built.mesh),
        surface_trace(built.mesh),
        built.faults,
        built.splits,
    )


def slip_lanes(model: Model) -> Float:
    """(n_fault_node, 3, 2) m, smooth left-lateral and smooth reverse slip."""
    fault = model.faults[FAULT]
    bump = np.linalg.norm(smooth_slip(fault), axis=1)[:, None]
    return np.stack((bump * fault.strike, bump * fault.updip), axis=2)


def curve(
    model: Model, settings: SolverSettings, slip: Float, times: Float | None = None
) -> tuple[Float, GroupResult]:
    """Displacement of the surface at the settings' or other times.

    Returns
    -------
    (n_lane, n_time, n_trace, 3) m, and the group's result. Raises ArithmeticError
    where the solver does not converge: a verification has then failed.
    """
    result = prepared(model, settings).solve(slip, model.surface.nodes)
    if result.outcome != "converged":
        raise ArithmeticError(result.advice)
    wanted = np.array(settings.times) if times is None else times
    return evaluate_curve(result, wanted), result
