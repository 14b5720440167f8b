"""One convex problem: active sets, or an interior point where they cycle."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import clarabel
import numpy as np
import scipy.linalg
import scipy.sparse as sp

from afterslip_solver.model import Float, Int

EXCHANGES = 30  # solves after which sets that have not settled mostly cycle


@dataclass(frozen=True, slots=True)
class ConvexResult:
    """Minimiser, or the reason why there is none.

    Attributes
    ----------
    value : (n,) float64.
    converged : whether the optimality conditions hold to the solver's tolerance.
    status : the solver's word for the outcome.
    iterations : of active sets or of the interior point, 0 for a linear solve.
    gap : bound of the objective's excess over its minimum, from the dual objective.
    """

    value: Float
    converged: bool
    status: str
    iterations: int
    gap: float = np.inf


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
        value = solve_symmetric(Q, b)
        return ConvexResult(
            value, True, "linear", 0, duality_gap(Q, b, l1, sign, value)
        )
    # scaled unknowns and objective: the library's tolerances then mean something
    width = np.sqrt(np.diag(Q))
    width = np.where(width > 0, width, 1.0)
    size = max(float(np.abs(b / width).max()), 1e-300)
    scaled = (Q / np.outer(width, width), b / width / size, l1 / width / size, sign)
    # exchanging whole sets mostly settles in a few solves; where it cycles, an
    # interior point says which set is right
    value, steps = _exchange(*scaled, np.zeros(len(b)), max_iterations)
    result = ConvexResult(value, True, "exchange", steps)
    if steps > min(EXCHANGES, max_iterations):
        result = _interior_point(*scaled, max_iterations)
        value, steps = _exchange(*scaled, result.value, EXCHANGES)
        if not result.converged or steps > EXCHANGES:
            value = result.value
    value = value * size / width
    return replace(result, value=value, gap=duality_gap(Q, b, l1, sign, value))


def duality_gap(Q: Float, b: Float, l1: Float, sign: Int, value: Float) -> float:
    """Bound of the objective's excess over its minimum, for a value that is allowed.

    With g the gradient of the quadratic part, u the multiplier of |a| nearest to -g
    and z that of the sign constraint, the difference to the Lagrangian's minimum is
    l1 |a| - u a + z |a| + r' Q^-1 r / 4, r = g + u - z: a sum of terms that are
    not negative, so that rounding cannot hide it. Infinite where Q is singular and r
    is not in its range.
    """
    gradient = 2.0 * (Q @ value - b)
    # towards the allowed side |a| is sign a: one linear term, and one multiplier
    bounded = sign != 0
    slope = np.where(bounded, gradient * sign + l1, 0.0)
    push = np.maximum(slope, 0.0)
    dual = np.clip(-gradient, -l1, l1)
    rest = np.where(bounded, np.minimum(slope, 0.0) * sign, gradient + dual)
    linear = np.where(bounded, push * np.abs(value), l1 * np.abs(value) - dual * value)
    step = solve_symmetric(Q, rest)
    if not np.allclose(
        Q @ step, rest, atol=1e-6 * float(np.abs(b).max(initial=1e-300))
    ):
        return float(np.inf)
    return float(linear.sum() + 0.25 * rest @ step)


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


def _exchange(
    Q: Float, b: Float, l1: Float, sign: Int, start: Float, limit: int
) -> tuple[Float, int]:
    """Exact minimiser by active sets that change as a whole.

    Block pivoting of Portugal, Judice & Vicente 1994, Math. Comput. 63, 625, without
    their fall-back rule.

    Returns
    -------
    The value, and the number of solves; limit + 1 where the sets have not settled.
    """
    penalised = (sign != 0) | (l1 > 0)
    tiny = 1e-6 * float(np.abs(start).max(initial=0.0))
    side = np.where(np.abs(start) > tiny, np.sign(start), 0.0)
    slack = 1e-10
    trial = start
    limit = min(limit, EXCHANGES)
    for step in range(1, limit + 1):
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
            return trial, step
        side = np.where(wrong, 0.0, np.where(wake, pull, side))
    return trial, limit + 1
