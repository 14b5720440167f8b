"""Three integrators of one problem against each other, and its relaxed limit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from afterslip_solver.model import Float, Model, SolverSettings
from afterslip_solver.verification.blocks import FAULT
from afterslip_solver.verification.bodies import (
    TAU,
    crossing_bodies,
    curve,
    enclosed_body,
    slip_lanes,
)
from afterslip_solver.verification.check import Check, Part, Size, at_least, at_most
from afterslip_solver.verification.system import System

NAME = "integrators"
TIMES = TAU * np.array([0.25, 0.5, 1.0, 2.0])
SOFT = 1e-7  # what is left of the shear modulus in the relaxed solve


def run(size: Size) -> Iterator[Check]:
    """Curves at the surface to 2 relaxation times, then the limit of long times."""
    for part in PARTS.values():
        yield from part(size)


def _curves(size: Size) -> Iterator[Check]:
    steps = (8, 16, 32) if size == "small" else (8, 16, 32, 64)
    model = crossing_bodies(size)
    slip = slip_lanes(model)
    tight = SolverSettings(
        times=tuple(TIMES),
        until=float(TIMES[-1]),
        scheme="polynomial",
        tolerance=1e-10,
        time_tolerance=1e-9,
        max_modes=200,
    )
    reference, result = curve(model, tight, slip)
    change = float(np.abs(reference - result.response[:, :1]).max())
    inverted, _ = curve(model, replace(tight, scheme="shift_invert"), slip)
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


def _stepping(
    model: Model,
    settings: SolverSettings,
    slip: Float,
    reference: Float,
    change: float,
    steps: tuple[int, ...],
) -> Iterator[Check]:
    rate = 1.0 / model.materials.relaxation_time.min()
    fastest = settings.until / steps[-1] * rate
    errors = []
    for count in steps:
        stepped = replace(settings, integrator="stepping", step=settings.until / count)
        values, _ = curve(model, stepped, slip)
        errors.append(float(np.abs(values - reference).max()) / change)
    yield at_most(
        NAME,
        f"stepping with {steps[-1]} steps against spectral, relative to the relaxation",
        errors[-1],
        fastest**2 / 24.0,
        "spectral curve at a time tolerance of 1e-9",
        "(dt/tau)^2/24 of the part that relaxes, tau of the faster body",
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
    values, result = curve(model, loose, slip)
    error = float(np.abs(values - reference).max()) / change
    yield at_most(
        NAME,
        f"error of the curve asked for 1e-3 ({result.response.shape[1]} modes)",
        error,
        1e-3,
        "spectral curve at a time tolerance of 1e-9",
        "the tolerance that was asked for must hold",
    )


def _relaxed(size: Size) -> Iterator[Check]:
    model = enclosed_body(size)
    slip = slip_lanes(model)
    late = 1e4 * TAU
    settings = SolverSettings(
        times=(late,),
        until=late,
        scheme="shift_invert",
        tolerance=1e-10,
        time_tolerance=1e-8,
    )
    values, result = curve(model, settings, slip)
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
        float(np.abs(values[:, 0] - limit).max()) / change,
        1e-5,
        "elastic solve with 1e-7 of the shear modulus and the bulk modulus, factorised",
        "an enclosed body has no slow flexure; 1e-7 of the modulus is left",
    )


PARTS: dict[str, Part] = {"curves": _curves, "limit": _relaxed}
