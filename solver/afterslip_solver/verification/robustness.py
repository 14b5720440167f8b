"""Iterations and correctness of the linear solver where it is hard."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from afterslip_common.terms import DAY, YEAR
from afterslip_solver.mesh import Geometry, surface_trace
from afterslip_solver.model import Float, Materials, Model, SolverSettings
from afterslip_solver.testing.box import box_with_fault
from afterslip_solver.verification.blocks import (
    FAULT,
    held_sides_and_bottom,
    smooth_slip,
)
from afterslip_solver.verification.check import Check, Part, Size, at_most
from afterslip_solver.verification.device import prepared
from afterslip_solver.verification.system import System

NAME = "robustness"
LAM, MU = 40e9, 40e9
TOLERANCE = 1e-8
DIRECT = "Cholesky factorisation of the assembled matrix"


@dataclass(frozen=True, slots=True)
class Case:
    """A linear system.

    Attributes
    ----------
    words : what is hard. flat : thickness of elements over their width.
    limit : iterations allowed.
    """

    words: str
    limit: int
    flat: float = 1.0
    poisson: float = 0.25
    step: float = 0.0


# iterations allowed: about twice what was measured
CASES = (
    Case("one material, cubes", 20),
    Case("Poisson's ratio 0.495", 90, poisson=0.495),
    Case("elements 20 times as wide as thick", 100, flat=0.05),
    Case("viscosities 1e16 to 1e22 Pa s, steps of 1 d", 20, step=DAY),
    Case("viscosities 1e16 to 1e22 Pa s, steps of 30 d", 40, step=30 * DAY),
    Case("viscosities 1e16 to 1e22 Pa s, steps of 1 yr", 80, step=YEAR),
    Case("viscosities 1e16 to 1e22 Pa s, steps of 10 yr", 170, step=10 * YEAR),
)


def run(size: Size) -> Iterator[Check]:
    """Hard cases, then iterations over sizes of the mesh."""
    for part in PARTS.values():
        yield from part(size)


def _hard(size: Size) -> Iterator[Check]:
    n = 6 if size == "small" else 8
    for case in CASES:
        iterations, error = solve(case, n)
        yield at_most(
            NAME,
            f"{case.words}: iterations to {TOLERANCE:.0e}",
            float(iterations),
            float(case.limit),
            "about twice what was measured when this was written",
            "a residual stops falling, or falls ever more slowly, without this",
        )
        yield at_most(
            NAME,
            f"{case.words}: displacement",
            error,
            1e-5,
            DIRECT,
            "the residual is 1e-8 of the load; stiff and soft parts may add digits",
        )


def _growth(size: Size) -> Iterator[Check]:
    counts = (6, 12) if size == "small" else (6, 12, 24)
    found = [iterations_of(n) for n in counts]
    yield at_most(
        NAME,
        f"iterations with {', '.join(map(str, counts))} elements across, last / first",
        found[-1] / found[0],
        1.5,
        f"{found[0]} iterations on the coarsest mesh",
        "multigrid: nearly the same number for any size",
        1.25,
    )


PARTS: dict[str, Part] = {"hard systems": _hard, "size": _growth}


def solve(case: Case, n: int) -> tuple[int, float]:
    """Solve and factorise: iterations, and the error."""
    geometry, materials = _problem(case, n)
    model = _model(geometry, materials)
    fault = geometry.faults[FAULT]
    slip = smooth_slip(fault)[:, :, None]
    settings = SolverSettings(tolerance=TOLERANCE, max_iterations=2000)
    result = prepared(model, settings).solve(slip, np.arange(len(model.mesh.nodes)))
    if result.outcome != "converged":
        return settings.max_iterations, float("nan")
    system = System.build(geometry.mesh, materials, model.fixed)
    exact = system.factorised(system.offset_load(geometry.splits[FAULT], slip))
    error = np.abs(result.response[0, 0] - exact[:, :, 0]).max()
    return result.iterations, float(error / np.abs(exact).max())


def iterations_of(n: int) -> int:
    """Count iterations of an elastic solve with n elements across the box."""
    geometry, materials = _problem(CASES[0], n)
    slip = smooth_slip(geometry.faults[FAULT])[:, :, None]
    model = _model(geometry, materials)
    settings = SolverSettings(tolerance=TOLERANCE)
    return prepared(model, settings).solve(slip, model.surface.nodes).iterations


def _problem(case: Case, n: int) -> tuple[Geometry, Materials]:
    """Box of 60 km with a vertical fault; depth by the flatness of the elements."""
    deep = 60e3 * case.flat
    # the fault's edges must lie on grid lines of every mesh
    part = 2 * n // 6 if n % 6 == 0 else n // 4
    across, down = 60e3 * part / n, deep * (n // 4) / n
    geometry = box_with_fault(
        (n, n, n),
        (60e3, 60e3, deep),
        length=across * (1 if (n - part) % 2 == 0 else 2),
        top=deep * (n // 6 or 1) / n,
        width=down,
    )
    mesh = geometry.mesh
    ones = np.ones(len(mesh.elements))
    bulk = LAM + 2.0 / 3.0 * MU
    mu = 1.5 * bulk * (1.0 - 2.0 * case.poisson) / (1.0 + case.poisson) * ones
    if case.poisson == 0.25:
        mu = MU * ones
    if case.step > 0.0:
        mu = mu * _softening(mesh.nodes[mesh.cells].mean(axis=1), case.step)
    lam = bulk - 2.0 / 3.0 * mu
    return geometry, Materials(lam, mu, 3000.0 * ones, np.inf * ones)


def _softening(centre: Float, step: float) -> Float:
    """(1 - exp(-x)) / x with x = dt mu / eta: what a step leaves of the modulus.

    Four bodies with viscosities six decades apart meet at the box's axis, under an
    elastic layer.
    """
    decades = np.where(centre[:, 0] > 0, 16.0, 19.0) + np.where(centre[:, 1] > 0, 3, 0)
    x = step * MU / 10.0**decades
    soft = -np.expm1(-x) / x
    return np.where(centre[:, 2] < -30e3, soft, 1.0)


def _model(geometry: Geometry, materials: Materials) -> Model:
    return Model(
        geometry.mesh,
        materials,
        held_sides_and_bottom(geometry.mesh),
        surface_trace(geometry.mesh),
        geometry.faults,
        geometry.splits,
    )
