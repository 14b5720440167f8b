"""What the data resolve: matrices, lengths, and slip that is restored."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr

from afterslip.restoration import checkerboard
from afterslip_solver.inversion import (
    InversionProblem,
    InversionSettings,
    InversionSolution,
    Regulariser,
    invert,
    with_data_of,
)
from afterslip_solver.model import Float, Int

MOST_SOURCES = 2000  # 64 MB of matrices before compression


def resolution_variables(
    problem: InversionProblem,
    solution: InversionSolution,
    regulariser: Regulariser,
    place: Float,
) -> dict[str, xr.Variable]:
    """Variables of the result; none beyond a number of sources.

    Parameters
    ----------
    problem : with the errors as stated, the weights of data far off in them.
    place : (n_par, 3) m, of the sources.
    """
    if len(place) > MOST_SOURCES:
        return {}
    square = ("source", "true_source")
    made = {
        "resolution_matrix": xr.Variable(square, solution.resolution),
        "covariance_matrix": xr.Variable(square, solution.covariance, {"units": "m2"}),
        "resolution_length": xr.Variable(
            ("source",),
            resolution_length(solution.resolution, problem.grid[:, :2], place),
            {"units": "m"},
        ),
    }
    lower, upper = (side[: len(place)] for side in problem.bounds)
    if not problem.basis.size and (np.isfinite(lower) | np.isfinite(upper)).any():
        made["slip_bounds"] = xr.Variable(
            ("source", "limit"), np.column_stack((lower, upper)), {"units": "m"}
        )
    held = InversionSettings(
        smoothness=solution.smoothness,
        sparsity=solution.sparsity,
        folds=0,
        draws=0,
        regulariser=regulariser,
    )
    weighed = problem.reweighted(solution.variance)
    most = float(np.abs(solution.slip).max())
    side = max(1, int(problem.grid[:, 2:].max(axis=0).min() + 1) // 3)
    squares = checkerboard(problem.grid, problem.sign, side, most)
    tests = {f"checkerboard of {side}": squares, "own model": solution.slip}
    restored = [
        invert(with_data_of(weighed, slip), held).slip for slip in tests.values()
    ]
    by_test = ("test", "source")
    made["test"] = xr.Variable(("test",), np.array(list(tests), dtype=object))
    made["test_slip"] = xr.Variable(
        by_test, np.stack([*tests.values()]), {"units": "m"}
    )
    made["test_restored"] = xr.Variable(by_test, np.stack(restored), {"units": "m"})
    return made


def resolution_length(
    resolution: Float, block: Int, place: Float, chosen: Sequence[int] | None = None
) -> Float:
    """Distance over which each estimate averages the truth, m.

    Root of the mean squared distance from the source, weighed by the squares of its
    row of the resolution matrix within its own fault and component: zero where only
    the source itself speaks (the spread of Backus & Gilbert 1968, Geophys. J. R.
    Astron. Soc. 16, 169, without its constant).

    Parameters
    ----------
    resolution : (n, n) float64. block : (n, 2) fault and component.
    place : (n, 3) m.
    chosen : sources; None: all.
    """
    which = range(len(place)) if chosen is None else chosen
    length = np.empty(len(which))
    for j, k in enumerate(which):
        mine = (block == block[k]).all(axis=1)
        weight = resolution[k, mine] ** 2
        apart = ((place[mine] - place[k]) ** 2).sum(axis=1)
        total = float(weight.sum())
        length[j] = np.sqrt(weight @ apart / total) if total > 0 else np.inf
    return length
