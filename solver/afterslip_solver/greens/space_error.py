"""Error that the mesh leaves, from the same curves on a coarser mesh.

Where edges are twice as long, an error of order p is 2^p times as large, so that
e = (u - u_coarse) / (2^p - 1) (Richardson). Second-order elements have p = 3 where all
is smooth, and 1 beside an abrupt end of slip that they do not resolve; the surface sees
both. The difference of nested meshes was 3.3 to 9.9 times the error (root mean squares,
p = 2.1 to 3.4), and 2.2 times (p = 1.7) where a fault's top was less deep than an edge
is long. They are given 2^p - 1 = 4 (p = 2.3), near the lower end: most estimates then
exceed true errors. With 3, of p = 2, one would be 3.3 times its error, and meshes of
an accuracy a sixth larger on average.
The elements of meshes that are built anew differ in more than their size, and less than
by a factor of two where faults and layers leave no room: they are given 2^p - 1 = 2.
`benchmarks/space_error.py` compares both with true errors, also of problems that were
not looked at when these numbers were chosen.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from afterslip_solver.greens.curve import curve_weights, evaluate_curve
from afterslip_solver.jit.compiling import compiled
from afterslip_solver.jit.threads import over
from afterslip_solver.model import Float, GroupResult, Int, SolverSettings

# 2^p - 1
NESTED, BUILT = 4.0, 2.0
# nodes of a trace that are worth a thread
_FEW = 2000
# least and most of both tolerances of the coarse model, and so many times those of the
# fine one: even at the most, the coarse curve errs by less than a tenth of what a mesh
# of 1 % does (demonstration: the change by 7e-4 of its largest, and solves take two
# thirds of the time)
_TOLERANCE, _TIME_TOLERANCE, _LOOSER = (1e-5, 1e-4), (1e-3, 1e-2), 10.0


def loosened(settings: SolverSettings) -> SolverSettings:
    """Return how exactly the coarse model is solved beside a fine one."""

    def loose(own: float, least: float, most: float) -> float:
        return max(own, min(max(_LOOSER * own, least), most))

    return replace(
        settings,
        tolerance=loose(settings.tolerance, *_TOLERANCE),
        time_tolerance=loose(settings.time_tolerance, *_TIME_TOLERANCE),
    )


def elastic_and_change(result: GroupResult, times: Float) -> Float:
    """Elastic displacement, then what is added to it by some times.

    Parameters
    ----------
    times : (n_time,) s, after the slip.

    Returns
    -------
    (n_lane, 1 + n_time, n_trace, 3) float64, m.
    """
    curve = evaluate_curve(result, np.append(0.0, times))
    curve[:, 1:] -= curve[:, :1]
    return curve


def space_error(fine: Float, coarse: Float, richardson: float) -> Float:
    """Estimate the error of displacements, as the length of a vector.

    Parameters
    ----------
    fine, coarse : (..., 3) float64, m, on meshes of which the coarse one has edges
        twice as long.
    richardson : `NESTED` where the fine mesh was refined from the coarse one, `BUILT`
        where both were built.

    Returns
    -------
    (...) float64, m.
    """
    return np.asarray(np.linalg.norm(fine - coarse, axis=-1) / richardson)


def space_error_between(
    fine: GroupResult,
    times: Float,
    coarse: Float,
    nodes: Int,
    weights: Float,
    richardson: float,
) -> NDArray[np.float32]:
    """Estimate as `space_error` does, where the coarse mesh is interpolated.

    Neither the curve of the fine mesh nor that of the coarse one at its nodes is ever
    stored: these are hundreds of megabytes, and a GPU waits for them.

    Parameters
    ----------
    fine : of n_trace nodes. times : (n_time,) s, after the slip.
    coarse : (n_lane, 1 + n_time, n_coarse_trace, 3) float64, m, `elastic_and_change`.
    nodes, weights : (n_trace, n_node) rows of the coarse trace, and their weights, at
        each row of the fine one.

    Returns
    -------
    (n_lane, 1 + n_time, n_trace) float32, m.
    """
    factors = curve_weights(fine, np.append(0.0, times))
    factors[:, 1:] -= factors[:, :1]
    out = np.empty((*factors.shape[:2], len(nodes)), dtype=np.float32)
    parts = fine.response, factors, coarse, nodes, weights, richardson, out
    over(len(nodes), partial(_differ, *parts), _FEW)
    return out


@compiled()
def _differ(
    fine: Float,
    factors: Float,
    coarse: Float,
    nodes: Int,
    weights: Float,
    richardson: float,
    error: NDArray[np.float32],
    start: int,
    stop: int,
) -> None:
    n_lane, n_time, n_mode = factors.shape
    # rows outside of times, so that what is interpolated from stays in cache
    for lane in range(n_lane):
        for row in range(start, stop):
            for time in range(n_time):
                x = y = z = 0.0
                for mode in range(n_mode):
                    factor = factors[lane, time, mode]
                    # modes that a source lacks are no numbers
                    if factor != 0.0:
                        x += factor * fine[lane, mode, row, 0]
                        y += factor * fine[lane, mode, row, 1]
                        z += factor * fine[lane, mode, row, 2]
                for k in range(nodes.shape[1]):
                    weight, node = weights[row, k], nodes[row, k]
                    x -= weight * coarse[lane, time, node, 0]
                    y -= weight * coarse[lane, time, node, 1]
                    z -= weight * coarse[lane, time, node, 2]
                length = np.sqrt(x * x + y * y + z * z)
                error[lane, time, row] = length / richardson


def leave_out_trace(error: NDArray[np.floating[Any]], faces: Int, rows: Int) -> None:
    """Replace the error on a fault's trace by the largest beside it, in place.

    Meshes do not agree on which side a point on the trace is.

    Parameters
    ----------
    error : (..., n_trace). faces : (n_face, 6) rows of the trace.
    rows : those on the fault's trace.
    """
    if not len(rows):
        return
    on_trace = np.zeros(error.shape[-1], dtype=np.bool_)
    on_trace[rows] = True
    touching = faces[on_trace[faces].any(axis=1)]
    beside = np.where(on_trace[touching], -np.inf, error[..., touching])
    largest = beside.max(axis=-1)
    error[..., rows] = 0.0
    target = np.moveaxis(error, -1, 0)
    for column in touching.T:
        chosen = on_trace[column]
        np.maximum.at(target, column[chosen], np.moveaxis(largest[..., chosen], -1, 0))
