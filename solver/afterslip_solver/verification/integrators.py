"""Three integrators of one problem against each other, and its relaxed limit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from afterslip_solver.greens import Prepared, evaluate_curve, prepare
from afterslip_solver.mesh import Geometry, surface_trace
from afterslip_solver.model import Float, GroupResult, Materials, Model, SolverSettings
from afterslip_solver.testing.box import box_with_fault
from afterslip_solver.verification.blocks import (
    FAULT,
    held_sides_and_bottom,
    smooth_slip,
)
from afterslip_solver.verification.check import Check, Size, at_least, at_most
from afterslip_solver.verification.system import System

NAME = "integrators"
LAM, MU = 40e9, 40e9
TAU = 1e8
TIMES = TAU * np.array([0.25, 0.5, 1.0, 2.0])
SOFT = 1e-7  # what is left of the shear modulus in the relaxed solve


def run(size: Size) -> Iterator[Check]:
    """Curves at the surface to 2 relaxation times, then the limit of long times."""
    steps = (8, 16, 32) if size == "small" else (8, 16, 32, 64)
    model = _model(_geometry(size), through_fault=True)
    slip = _slip(model)
    tight = SolverSettings(
        times=tuple(TIMES),
        until=float(TIMES[-1]),
        scheme="polynomial",
        tolerance=1e-10,
        time_tolerance=1e-9,
        max_modes=200,
    )
    reference, result = _curve(model, tight, slip)
    change = float(np.abs(reference - result.response[:, :1]).max())
    inverted, _ = _curve(model, replace(tight, scheme="shift_invert"), slip)
    yield at_most(
        NAME,
        "shift-invert against polynomial scheme, relative to the relaxation",
        float(np.abs(inverted - reference).max()) / change,
        1e-7,
        "the same curve from another Krylov space",
        "both were asked for 1e-9, the linear solver for 1e-10",
    )
    yield from _stepping(model, tight, slip, reference, change, steps)
    yield from _error_estimate(model, tight, slip, reference, change)
    yield from _relaxed(size)


def _geometry(size: Size) -> Geometry:
    n = (6, 6, 4) if size == "small" else (12, 12, 8)
    return box_with_fault(
        n, (6e4, 6e4, 4e4), 45.0, length=2e4, top=1e4, width=1e4 * np.sqrt(2.0)
    )


def _model(geometry: Geometry, through_fault: bool) -> Model:
    """Two Maxwell bodies, tenfold different; or one that is enclosed."""
    mesh = geometry.mesh
    x, y, z = mesh.nodes[mesh.cells].mean(axis=1).T
    viscosity = np.full(len(x), np.inf)
    if through_fault:
        viscosity[z < -1.5e4] = TAU * MU
        viscosity[(z < -1.5e4) & (x > 1e4)] = 0.1 * TAU * MU
    else:
        inside = (np.abs(x) < 1e4) & (np.abs(y) < 2e4) & (z < -2e4) & (z > -3e4)
        viscosity[inside] = TAU * MU
    ones = np.ones(len(x))
    return Model(
        mesh,
        Materials(LAM * ones, MU * (1.0 + 0.5 * (y > 0)), 3000.0 * ones, viscosity),
        held_sides_and_bottom(mesh),
        surface_trace(mesh),
        geometry.faults,
        geometry.splits,
    )


def _slip(model: Model) -> Float:
    fault = model.faults[FAULT]
    bump = np.linalg.norm(smooth_slip(fault), axis=1)[:, None]
    return np.stack((bump * fault.strike, bump * fault.updip), axis=2)


def _curve(
    model: Model, settings: SolverSettings, slip: Float
) -> tuple[Float, GroupResult]:
    prepared: Prepared = prepare(model, settings, backend="cpu")
    result = prepared.solve(slip, model.surface.nodes)
    if result.outcome != "converged":
        raise ArithmeticError(result.advice)
    return evaluate_curve(result, np.array(settings.times)), result


def _stepping(
    model: Model,
    settings: SolverSettings,
    slip: Float,
    reference: Float,
    change: float,
    steps: tuple[int, ...],
) -> Iterator[Check]:
    errors = []
    for count in steps:
        stepped = replace(settings, integrator="stepping", step=settings.until / count)
        curve, _ = _curve(model, stepped, slip)
        errors.append(float(np.abs(curve - reference).max()) / change)
    yield at_most(
        NAME,
        f"stepping with {steps[-1]} steps against spectral, relative to the relaxation",
        errors[-1],
        1e-2 * (32 / steps[-1]) ** 2,
        "spectral curve at a time tolerance of 1e-9",
        "(dt/tau)^2/24 is 2e-4 for the slow body and 4e-2 of the fast one's share",
    )
    yield at_least(
        NAME,
        f"order of stepping towards the spectral curve, last {steps[-1]} steps",
        float(np.log2(errors[-2] / errors[-1])),
        1.8,
        "spectral curve at a time tolerance of 1e-9",
        "second order as dt goes to 0; the fast body still lags a little",
    )


def _error_estimate(
    model: Model, tight: SolverSettings, slip: Float, reference: Float, change: float
) -> Iterator[Check]:
    loose = replace(tight, time_tolerance=1e-3)
    curve, result = _curve(model, loose, slip)
    error = float(np.abs(curve - reference).max()) / change
    yield at_most(
        NAME,
        f"error of the curve asked for 1e-3 ({result.response.shape[1]} modes)",
        error,
        1e-3,
        "spectral curve at a time tolerance of 1e-9",
        "the tolerance that was asked for must hold",
    )


def _relaxed(size: Size) -> Iterator[Check]:
    model = _model(_geometry(size), through_fault=False)
    slip = _slip(model)
    late = 1e4 * TAU
    settings = SolverSettings(
        times=(late,),
        until=late,
        scheme="shift_invert",
        tolerance=1e-10,
        time_tolerance=1e-8,
    )
    curve, result = _curve(model, settings, slip)
    materials = model.materials
    soft = np.where(np.isfinite(materials.viscosity), SOFT, 1.0) * materials.mu
    lam = materials.lam + 2.0 / 3.0 * (materials.mu - soft)
    system = System.build(model.mesh, replace(materials, lam=lam, mu=soft), model.fixed)
    load = system.offset_load(model.splits[FAULT], slip)
    limit = system.factorised(load)[model.surface.nodes].transpose(2, 0, 1)
    change = float(np.abs(limit - result.response[:, 0]).max())
    yield at_most(
        NAME,
        "enclosed Maxwell body after 10,000 relaxation times, relative to the change",
        float(np.abs(curve[:, 0] - limit).max()) / change,
        1e-5,
        "elastic solve with 1e-7 of the shear modulus and the same bulk modulus, by LU",
        "an enclosed body has no slow flexure; 1e-7 of the modulus is left",
    )
