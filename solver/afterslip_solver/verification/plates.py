"""Infinitely long strike-slip fault in a plate over a Maxwell half-space.

The geometry and the numbers are those of the Savage-Prescott benchmark of the SCEC/CIG
crustal deformation suite, as PyLith's manual states them: an elastic plate of 40 km,
locked to 20 km, rigidity 30 GPa, viscosity 2.36682e19 Pa s, an earthquake every 200
years, ten cycles. The mesh is one element thick along strike, fixed so that motion is
along strike only, which makes the three-dimensional model exactly antiplane.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from afterslip_common.terms import YEAR
from afterslip_solver.greens import evaluate_curve
from afterslip_solver.mesh import PlaneFault, surface_trace
from afterslip_solver.model import (
    Bool,
    Float,
    GroupResult,
    Materials,
    Model,
    SolverSettings,
)
from afterslip_solver.reference import LongFault
from afterslip_solver.verification.blocks import FAULT, on_sides
from afterslip_solver.verification.check import Check, Size, at_least, at_most
from afterslip_solver.verification.device import prepared
from afterslip_solver.verification.grids import cut, graded, grid_mesh, step_slip

NAME = "plates"
PLATE, LOCKED, MU = 40e3, 20e3, 30e9
VISCOSITY = 2.36682e19
TAU = 2.0 * VISCOSITY / MU
PERIOD, CYCLES = 200.0 * YEAR, 10
FAR, LARGEST = 3e6, 240e3  # half the model's width, its depth; longest element
THICK = 80e3  # along strike
COMPARED = 200e3  # largest distance from the fault that is compared
AFTER = PERIOD * np.array([0.0, 0.05, 0.25, 0.5, 0.75, 0.999])
SERIES = "Nur & Mavko (1974), Savage & Prescott (1978): series of images"


def run(size: Size) -> Iterator[Check]:
    """One earthquake and its relaxation; the tenth of ten cycles."""
    parts = (2,) if size == "small" else (4, 8)
    times = TAU * np.array([0.0, 0.1, 0.5, 1.0, 2.0, 5.0])
    errors = []
    for count in parts:
        x, result = long_fault(LOCKED / count, CYCLES * PERIOD + PERIOD)
        errors.append(_single(x, result, times))
    elastic, transient = errors[-1]
    at = f"{parts[-1]} elements over the slip"
    yield at_most(
        NAME,
        f"elastic displacement beside the fault, {at}, relative to half the slip",
        elastic,
        1e-2,
        "arctangent of a long fault (Savage & Burford 1973)",
        "beyond one element of the trace; uniform slip ends abruptly at 20 km",
        1e-3,
    )
    yield at_most(
        NAME,
        f"relaxation to ten times viscosity / rigidity, {at}, relative to its peak",
        transient,
        3e-2,
        SERIES,
        "an error of a hundredth of the transient is a millimetre of a decimetre",
        1e-2,
    )
    yield at_most(
        NAME,
        f"motion through cycle {CYCLES}, {at}, relative to its peak",
        cycle_error(x, result),
        2e-2,
        f"{SERIES}, summed over {CYCLES} earthquakes and steady loading",
        "cycles are sums of curves of one earthquake: their errors add",
        5e-3,
    )
    if len(errors) > 1:
        yield at_least(
            NAME,
            f"order of the elastic error in h, last of {', '.join(map(str, parts))}",
            float(np.log2(errors[-2][0] / elastic)),
            0.8,
            "arctangent of a long fault",
            "the slip's abrupt end limits the order to one at depth",
            1.5,
        )


def long_fault(edge: float, until: float) -> tuple[Float, GroupResult]:
    """Curve of the surface after unit slip to 20 km.

    Parameters
    ----------
    edge : m, size of elements around the slip. until : s, end of the curve.

    Returns
    -------
    (n_trace,) m distance from the fault, and the solver's result.
    """
    side = graded(edge, 1.5, round(PLATE / edge), FAR, LARGEST)
    x = np.concatenate((-side[:0:-1], side))
    mesh = grid_mesh(x, np.array([-THICK / 2, THICK / 2]), -side[::-1])
    plane = PlaneFault(FAULT, 0.0, 0.0, 0.0, 0.0, 90.0, THICK, LOCKED)
    nodes = mesh.nodes
    corners = nodes[: mesh.n_vertex]
    inside = (np.abs(corners[:, 0]) < 1.0) & (corners[:, 2] > -PLATE - 1.0)
    geometry = cut(mesh, plane, inside)
    fault = geometry.faults[FAULT]
    low, high = on_sides(mesh)
    fixed = np.zeros((len(nodes), 3), dtype=np.bool_)
    fixed[:, [0, 2]] = True
    fixed[low[:, 0] | high[:, 0] | low[:, 2], 1] = True
    below = nodes[mesh.cells].mean(axis=1)[:, 2] < -PLATE
    ones = np.ones(len(below))
    materials = Materials(
        MU * ones, MU * ones, 3000.0 * ones, np.where(below, VISCOSITY, np.inf)
    )
    surface = surface_trace(mesh)
    model = Model(mesh, materials, fixed, surface, geometry.faults, geometry.splits)
    settings = SolverSettings(
        times=(0.1 * TAU, TAU, 5.0 * TAU, until),
        until=until,
        tolerance=1e-8,
        time_tolerance=1e-5,
        max_modes=100,
    )
    slip = step_slip(fault, -nodes[fault.nodes, 2])[:, None] * fault.strike
    result = prepared(model, settings).solve(slip[:, :, None], surface.nodes)
    if result.outcome != "converged":
        raise ArithmeticError(result.advice)
    return nodes[surface.nodes, 0], result


def _single(x: Float, result: GroupResult, times: Float) -> tuple[float, float]:
    """Errors of the elastic part over the slip, of the relaxation over its peak."""
    near = (np.abs(x) < COMPARED) & (np.abs(x) > LOCKED / 2.0)
    u = evaluate_curve(result, times)[0][:, near, 1]
    exact = LongFault(LOCKED, PLATE, TAU).step(x[near], times)
    elastic = float(np.abs(u[0] - exact[0]).max() / 0.5)
    change = exact[1:] - exact[0]
    error = np.abs((u[1:] - u[0]) - change).max()
    return elastic, float(error / np.abs(change).max())


def cycle_motion(result: GroupResult, which: Bool, x: Float) -> Float:
    """(n_time, n) m since the last earthquake, by superposing the curve of one.

    Each earthquake adds the curve since its own time; steady backslip on the same part
    of the fault takes off the curve's integral (Gauss-Legendre on each of a geometric
    sequence of intervals); block motion adds half the slip per period on each side.
    """
    last = CYCLES * PERIOD
    moments = np.append(last, last + AFTER)
    nodes, weights = np.polynomial.legendre.leggauss(12)
    edges = np.concatenate(([0.0], np.geomspace(1e-3 * TAU, last, 16)))
    integral = np.zeros((len(moments), int(which.sum())))
    half = 0.5 * np.diff(edges)
    at = (edges[:-1, None] + half[:, None] * (1.0 + nodes)).ravel()
    weight = (half[:, None] * weights).ravel()
    base = weight @ evaluate_curve(result, at)[0][:, which, 1]
    for k, moment in enumerate(moments):
        rest = 0.5 * (moment - last)
        tail = evaluate_curve(result, last + rest * (1.0 + nodes))[0][:, which, 1]
        integral[k] = base + rest * (weights @ tail)
    block = moments[:, None] * 0.5 * np.sign(x)[None]
    total = (block - integral) / PERIOD
    for k in range(1, CYCLES + 1):
        total += evaluate_curve(result, moments - k * PERIOD)[0][:, which, 1]
    return np.asarray(total[1:] - total[0])


def cycle_error(x: Float, result: GroupResult) -> float:
    """Largest error through the last cycle over the largest motion in it."""
    near = (np.abs(x) < COMPARED) & (np.abs(x) > LOCKED / 2.0)
    found = cycle_motion(result, near, x[near])
    exact = LongFault(LOCKED, PLATE, TAU).cycles(x[near], AFTER, PERIOD, CYCLES)
    return float(np.abs(found - exact).max() / np.abs(exact).max())
