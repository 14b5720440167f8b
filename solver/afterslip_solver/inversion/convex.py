"""One convex problem: interior point from a library, then exact on its support."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import clarabel
import numpy as np
import scipy.linalg
import scipy.sparse as sp

from afterslip_solver.model import Float, Int


@dataclass(frozen=True, slots=True)
class ConvexResult:
    """Minimiser, or the reason why there is none.

    Attributes
    ----------
    value : (n,) float64.
    converged : whether the optimality conditions hold to the solver's tolerance.
    status : the solver's word for the outcome.
    iterations : of the interior-point method, 0 for a linear solve.
    """

    value: Float
    converged: bool
    status: str
    iterations: int


def minimise(
    Q: Float, b: Float, l1: Float, sign: Int, max_iterations: int = 200
) -> ConvexResult:
    """Minimise ``a' Q a - 2 b' a + sum l1 |a|`` under the sign constraints.

    Parameters
    ----------
    Q : (n, n) float64, symmetric, positive semidefinite.
    b : (n,) float64.
    l1 : (n,) float64, not negative.
    sign : (n,) int64, 1 for a >= 0, -1 for a <= 0, 0 for any.
    """
    if not sign.any() and not l1.any():
        return ConvexResult(solve_symmetric(Q, b), True, "linear", 0)
    # scaled unknowns and objective: the library's tolerances then mean something
    width = np.sqrt(np.diag(Q))
    width = np.where(width > 0, width, 1.0)
    size = max(float(np.abs(b / width).max()), 1e-300)
    scaled = (Q / np.outer(width, width), b / width / size, l1 / width / size, sign)
    result = _interior_point(*scaled, max_iterations)
    value = _polish(*scaled, result.value) if result.converged else result.value
    return replace(result, value=value * size / width)


def solve_symmetric(Q: Float, b: Float) -> Float:
    """Solution of ``Q a = b``; the smallest one where Q is singular."""
    try:
        factor = scipy.linalg.cho_factor(Q, check_finite=False)
    except scipy.linalg.LinAlgError:
        return np.asarray(scipy.linalg.lstsq(Q, b)[0])
    return np.asarray(scipy.linalg.cho_solve(factor, b, check_finite=False))


def _interior_point(
    Q: Float, b: Float, l1: Float, sign: Int, max_iterations: int
) -> ConvexResult:
    """Clarabel on the smooth form: |a| <= t where the sign is free."""
    n = len(b)
    bounded = np.flatnonzero(sign)
    split = np.flatnonzero((sign == 0) & (l1 > 0))
    m = len(split)
    q = np.concatenate((-2.0 * b, l1[split]))
    q[bounded] += l1[bounded] * sign[bounded]
    P = sp.block_diag((sp.csc_matrix(np.triu(2.0 * Q)), sp.csc_matrix((m, m))), "csc")
    eye, one = sp.identity(n, format="csr"), sp.identity(m, format="csr")
    below = sp.diags(-sign[bounded].astype(np.float64)) @ eye[bounded]
    rows = [sp.hstack((below, sp.csr_matrix((len(bounded), m))))]
    if m:
        rows += [sp.hstack((eye[split], -one)), sp.hstack((-eye[split], -one))]
    A = sp.csc_matrix(sp.vstack(rows))
    settings: Any = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_iter = max_iterations
    settings.max_threads = 1
    cones = [clarabel.NonnegativeConeT(A.shape[0])]
    solver = clarabel.DefaultSolver(P, q, A, np.zeros(A.shape[0]), cones, settings)
    found = solver.solve()
    status = str(found.status)
    value = np.array(found.x[:n])
    # feasible to the last bit, whatever the tolerance
    value = np.where(sign * value < 0, 0.0, value)
    return ConvexResult(
        value, status in ("Solved", "AlmostSolved"), status, found.iterations
    )


def _polish(Q: Float, b: Float, l1: Float, sign: Int, value: Float) -> Float:
    """Exact minimiser by active sets, started from a nearly optimal point.

    Returns the start where rounding keeps the sets from settling.
    """
    penalised = (sign != 0) | (l1 > 0)
    tiny = 1e-6 * float(np.abs(value).max(initial=0.0))
    side = np.where(np.abs(value) > tiny, np.sign(value), 0.0)
    slack = 1e-10
    for _ in range(30):
        free = (side != 0) | ~penalised
        trial = np.zeros(len(b))
        index = np.flatnonzero(free)
        if len(index):
            right = b[index] - 0.5 * l1[index] * side[index]
            trial[index] = solve_symmetric(Q[np.ix_(index, index)], right)
        gradient = 2.0 * (Q @ trial - b)
        wrong = penalised & (side != 0) & (trial * side < 0)
        # a zero unknown wants to grow where the slope beats its weight
        pull = np.where(np.abs(gradient) > l1 + slack, -np.sign(gradient), 0.0)
        bounded = sign != 0
        grow = np.where(-gradient * sign > l1 + slack, sign, 0)
        pull = np.where(bounded, grow, pull)
        wake = penalised & (side == 0) & (pull != 0)
        if not wrong.any() and not wake.any():
            return trial
        side = np.where(wrong, 0.0, np.where(wake, pull, side))
    return value
