"""What numerical choices cost: the box, the tolerance, other lanes, the device."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from afterslip_solver.backend import available
from afterslip_solver.greens import evaluate_curve, prepare
from afterslip_solver.mesh import PlaneFault, surface_trace
from afterslip_solver.model import Float, Model, SolverSettings
from afterslip_solver.verification.blocks import (
    FAULT,
    held_sides_and_bottom,
    uniform_materials,
)
from afterslip_solver.verification.bodies import (
    TAU,
    crossing_bodies,
    curve,
    slip_lanes,
)
from afterslip_solver.verification.check import (
    Check,
    Part,
    Size,
    at_least,
    at_most,
    not_run,
)
from afterslip_solver.verification.device import BACKEND, prepared
from afterslip_solver.verification.grids import cut, graded, grid_mesh

NAME = "studies"
TIMES = TAU * np.array([0.0, 0.5, 2.0])
FAULT_SIZE = 40e3  # length and width of the fault of the box study
CHOSEN = SolverSettings(
    times=tuple(TIMES), until=float(TIMES[-1]), tolerance=1e-8, time_tolerance=1e-8
)


def run(size: Size) -> Iterator[Check]:
    """Four studies."""
    for part in PARTS.values():
        yield from part(size)


def _choices(size: Size) -> Iterator[Check]:
    model = crossing_bodies(size)
    slip = slip_lanes(model)
    yield from _tolerance(model, slip)
    yield from _lanes(model, slip)
    yield from _device(model, slip)


def box_errors(doublings: int) -> tuple[Float, Float]:
    """Change of the surface near a fault by the box alone.

    Grids of boxes are parts of each other, so near the fault elements are the same.

    Returns
    -------
    (doublings,) m, half widths. (doublings,) largest difference from the box that is
    four times as large as the last, relative to the largest displacement.
    """
    halves = 80e3 * 2.0 ** np.arange(doublings)
    best, near = _box_motion(4.0 * halves[-1])
    errors = []
    for half in halves:
        u, points = _box_motion(half)
        if not np.array_equal(points, near):
            raise ArithmeticError("the boxes' grids are not parts of each other")
        errors.append(np.abs(u - best).max() / np.abs(best).max())
    return np.asarray(halves, np.float64), np.array(errors)


def _box_motion(half: float) -> tuple[Float, Float]:
    """Surface displacement (n, 3) within 80 km, and where, sorted."""
    side = graded(10e3, 2.0, 2, half)
    line = np.concatenate((-side[:0:-1], side))
    mesh = grid_mesh(line, line, -side[::-1])
    plane = PlaneFault(FAULT, 0.0, 0.0, 0.0, 0.0, 90.0, FAULT_SIZE, FAULT_SIZE)
    corners = mesh.nodes[: mesh.n_vertex]
    inside = (np.abs(corners[:, 0]) < 1.0) & (np.abs(corners[:, 1]) < 20e3 + 1.0)
    geometry = cut(mesh, plane, inside & (corners[:, 2] > -FAULT_SIZE - 1.0))
    fault = geometry.faults[FAULT]
    model = Model(
        mesh,
        uniform_materials(mesh, 30e9, 30e9),
        held_sides_and_bottom(mesh),
        surface_trace(mesh),
        geometry.faults,
        geometry.splits,
    )
    across = np.cos(np.pi * (fault.along / fault.length - 0.5))
    shape = across * np.cos(0.5 * np.pi * fault.down / fault.width)
    slip = (shape[:, None] * (fault.strike + fault.updip))[:, :, None]
    settings = SolverSettings(tolerance=1e-9)
    result = prepared(model, settings).solve(slip, model.surface.nodes)
    points = np.round(mesh.nodes[model.surface.nodes])
    near = np.flatnonzero((np.abs(points[:, :2]) <= 60e3).all(axis=1))
    near = near[np.lexsort(points[near].T)]
    return result.response[0, 0, near], points[near]


def _domain(size: Size) -> Iterator[Check]:
    halves, errors = box_errors(3 if size == "small" else 4)
    yield at_least(
        NAME,
        "order by which the error of a finite box falls with its size",
        float(np.log2(errors[-2] / errors[-1])),
        1.5,
        "the same elements in a box four times larger",
        "a dislocation's field falls as 1/r^2, and so does what the sides reflect",
    )
    yield at_most(
        NAME,
        f"error of a box {2 * halves[-1] / FAULT_SIZE:.0f} faults wide, within a fault "
        "and a half of it",
        float(errors[-1]),
        1e-2,
        "the same elements in a box four times larger",
        "relative to the largest displacement; sides and bottom fixed",
        1e-3,
    )


def _tolerance(model: Model, slip: Float) -> Iterator[Check]:
    tight = replace(CHOSEN, tolerance=1e-12, time_tolerance=1e-10, max_modes=200)
    exact, first = curve(model, tight, slip)
    scale = np.abs(exact).max()
    for tolerance in (1e-4, 1e-6, 1e-8, 1e-10):
        settings = replace(tight, tolerance=tolerance)
        u, _ = curve(model, settings, slip)
        yield at_most(
            NAME,
            f"curve with a linear solver that stops at {tolerance:.0e}, against 1e-12",
            float(np.abs(u - exact).max() / scale),
            max(10.0 * tolerance, 1e-9),
            f"the same curve, {first.solves} solves to 1e-12",
            "relative to the largest displacement; residuals bound it up to a constant",
        )


def _lanes(model: Model, slip: Float) -> Iterator[Check]:
    alone, _ = curve(model, CHOSEN, slip[:, :, :1])
    scale = np.abs(alone).max()
    blank = np.zeros_like(slip[:, :, 0])
    other = slip[:, :, 1]
    groups = {
        "with three others": (0, [slip[:, :, 0], other, -other, 3.0 * other]),
        "in the last place": (3, [other, 2.0 * other, -other, slip[:, :, 0]]),
        "between idle lanes": (1, [blank, slip[:, :, 0], blank, blank]),
    }
    for words, (place, lanes) in groups.items():
        u, _ = curve(model, CHOSEN, np.stack(lanes, axis=2))
        yield at_most(
            NAME,
            f"curve of a lane {words} against the same lane alone",
            float(np.abs(u[place] - alone[0]).max() / scale),
            10.0 * CHOSEN.tolerance,
            "the same slip solved alone",
            "ten times the solver's tolerance: lanes share nothing but the clock",
        )


def _device(model: Model, slip: Float) -> Iterator[Check]:
    words = "curve on the GPU against the CPU, relative to the largest displacement"
    reason = available().get("gpu", "no GPU backend")
    if reason:
        yield not_run(NAME, words, "the CPU", reason)
        return
    curves = []
    for name in ("cpu", "gpu"):
        result = prepare(model, CHOSEN, backend=name).solve(slip, model.surface.nodes)
        curves.append(evaluate_curve(result, TIMES))
    error = np.abs(curves[1] - curves[0]).max() / np.abs(curves[0]).max()
    yield at_most(
        NAME,
        words,
        float(error),
        10.0 * CHOSEN.tolerance,
        f"the CPU (this run verifies {BACKEND.get()})",
        "ten times the linear solver's tolerance",
    )


PARTS: dict[str, Part] = {"box": _domain, "choices": _choices}
