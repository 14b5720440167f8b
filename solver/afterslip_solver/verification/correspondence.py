"""Relaxation curves in the Laplace domain, where they are elastic solutions.

By the correspondence principle p times the transform of u(t) is the elastic solution
with mu(p) = mu p / (p + mu/eta) and the same bulk modulus.
"""

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
    slip_lanes,
)
from afterslip_solver.verification.check import Check, Size, at_most
from afterslip_solver.verification.system import System

NAME = "correspondence"
FREQUENCY = 3.0 / TAU
# the fastest part decays five times faster than exp(-p t): (5/7)^80 is left
QUADRATURE = 40
NOTE = (
    "the curve was asked for 1e-8 of its change, the linear solver for 1e-10, "
    "Gauss-Laguerre quadrature adds 1e-11"
)


def run(size: Size) -> Iterator[Check]:
    """Transform of the curve against an elastic solve, and against reciprocity."""
    model = crossing_bodies(size)
    slip = slip_lanes(model)
    error, transform, system = transform_error(model, slip)
    load = system.offset_load(model.splits[FAULT], slip)
    yield at_most(
        NAME,
        "transform of the curve at 3 / relaxation time, relative to the relaxation",
        error,
        1e-6,
        "elastic solve with mu(p) = mu p / (p + mu/eta), fault in viscoelastic rock",
        NOTE,
    )
    station = len(model.surface.nodes) // 3
    force = np.zeros((len(model.mesh.nodes), 3, 3))
    force[model.surface.nodes[station]] = np.eye(3)
    work = np.einsum("nxs,nxc->sc", load, system.solve(force))
    yield at_most(
        NAME,
        "viscoelastic reciprocity at the same frequency, relative to the displacement",
        float(np.abs(transform[:, station] - work).max() / np.abs(work).max()),
        1e-6,
        "Betti: slip-conjugate work of a unit force at the station",
        NOTE,
    )


def transform_error(model: Model, slip: Float) -> tuple[float, Float, System]:
    """Error of the curve's transform, relative to the relaxation.

    Returns
    -------
    The error, the transform (n_lane, n_trace, 3) in m, and the system of the elastic
    solve that it was compared with.
    """
    transform, elastic = _transform(model, slip)
    system = _softened(model)
    load = system.offset_load(model.splits[FAULT], slip)
    exact = system.solve(load)[model.surface.nodes].transpose(2, 0, 1)
    change = float(np.abs(exact - elastic).max())
    return float(np.abs(transform - exact).max()) / change, transform, system


def _transform(model: Model, slip: Float) -> tuple[Float, Float]:
    """P times the Laplace transform of the surface's curve, and its start."""
    x, weights = np.polynomial.laguerre.laggauss(QUADRATURE)
    until = 20.0 * TAU
    settings = SolverSettings(
        times=tuple(x[x < until * FREQUENCY] / FREQUENCY),
        until=until,
        tolerance=1e-10,
        time_tolerance=1e-8,
        max_modes=200,
    )
    values, result = curve(model, settings, slip, x / FREQUENCY)
    return np.einsum("t,stnx->snx", weights, values), result.response[:, 0]


def _softened(model: Model) -> System:
    materials = model.materials
    compliance = 1.0 / materials.mu + 1.0 / (FREQUENCY * materials.viscosity)
    modulus, slow = materials.kelvin_modulus, materials.kelvin_viscosity
    if modulus is not None and slow is not None:
        compliance += 1.0 / (modulus + FREQUENCY * slow)
    mu = 1.0 / compliance
    lam = materials.lam + 2.0 / 3.0 * (materials.mu - mu)
    soft = replace(materials, lam=lam, mu=mu)
    return System.build(model.mesh, soft, model.fixed, model.restoring)
