"""One convex problem: active sets, or an interior point where they cycle."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import clarabel
import numpy as np
import scipy.linalg
import scipy.sparse as sp

from afterslip_solver.model import Float

MOST_ITERATIONS = 200  # of the interior point
EXCHANGES = 30  # solves after which sets that have not settled mostly cycle
MANY_UNKNOWNS = 500  # from which an inverse is worth its while
PATIENCE = 10  # exchanges of whole sets that make nothing better
MOST_EXCHANGES = 300


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
    Q: Float,
    b: Float,
    l1: Float,
    lower: Float,
    upper: Float,
    max_iterations: int = MOST_ITERATIONS,
) -> ConvexResult:
    """Minimise ``a' Q a - 2 b' a + sum l1 |a|`` between bounds.

    Parameters
    ----------
    Q : (n, n) float64, symmetric, positive semidefinite.
    b : (n,) float64.
    l1 : (n,) float64, not negative.
    lower, upper : (n,) float64, infinite where there is no bound.
    """
    if not (np.isfinite(lower) | np.isfinite(upper) | (l1 > 0)).any():
        value = solve_symmetric(Q, b)
        gap = duality_gap(Q, b, l1, lower, upper, value)
        return ConvexResult(value, True, "linear", 0, gap)
    result = settle(Q, b, l1, lower, upper, np.zeros(len(b)), max_iterations)
    gap = duality_gap(Q, b, l1, lower, upper, result.value)
    return replace(result, gap=gap)


def nearest(Q: Float, value: Float, lower: Float, upper: Float, start: Float) -> Float:
    """Return the point between bounds with the least ``(a - value)' Q (a - value)``.

    Parameters
    ----------
    Q : (n, n) float64, symmetric, positive definite.
    value : (n,) float64.
    lower, upper : (n,) float64, infinite where there is no bound.
    start : (n,) float64, between the bounds; its bounds are tried first.

    Raises
    ------
    scipy.linalg.LinAlgError
        Where the minimiser is not found.
    """
    if ((lower <= value) & (value <= upper)).all():
        return value
    none = np.zeros(len(value))
    found = settle(Q, Q @ value, none, lower, upper, start, MOST_ITERATIONS)
    if not found.converged:
        raise scipy.linalg.LinAlgError(f"no nearest point: {found.status}")
    return found.value


def nearest_by_covariance(
    covariance: Float, value: Float, lower: Float, upper: Float, start: Float
) -> Float:
    """Return what `nearest` does, from the inverse of its matrix.

    Few unknowns rest at a bound where slip is smooth, and only theirs are solved for.
    Sets change as a whole for as long as fewer and fewer unknowns are on the wrong
    side, then one by one, which ends (Portugal, Judice & Vicente 1994, Math. Comput.
    63, 625).

    Parameters
    ----------
    covariance : (n, n) float64, symmetric, positive definite.

    Raises
    ------
    scipy.linalg.LinAlgError
        Where the minimiser is not found.
    """
    width = np.sqrt(np.diag(covariance))
    slack = 1e-10 * width
    side = np.where(start <= lower, -1.0, np.where(start >= upper, 1.0, 0.0))
    fewest, patience = len(value) + 1, PATIENCE
    for _ in range(MOST_EXCHANGES):
        held = np.flatnonzero(side)
        end = np.where(side[held] < 0.0, lower[held], upper[held])
        rows = covariance[held]
        push = solve_symmetric(rows[:, held], end - value[held])
        trial = value + push @ rows
        trial[held] = end
        to = np.where(trial < lower - slack, -1.0, 0.0)
        to[trial > upper + slack] = 1.0
        # a bound pushes away from itself
        pulls = held[push * side[held] * width[held] > 1e-10]
        wrong = to != 0.0
        wrong[pulls] = True
        count = int(wrong.sum())
        if not count:
            return np.clip(trial, lower, upper)
        if count < fewest:
            fewest, patience = count, PATIENCE
        else:
            patience -= 1
        if patience < 0:
            wrong[: np.flatnonzero(wrong)[-1]] = False
        side = np.where(wrong, to, side)
    raise scipy.linalg.LinAlgError("no nearest point: the bounds do not settle")


def settle(
    Q: Float,
    b: Float,
    l1: Float,
    lower: Float,
    upper: Float,
    start: Float,
    max_iterations: int,
) -> ConvexResult:
    """Minimise as `minimise` does, from a start, without a bound of what is left."""
    # scaled unknowns and objective: the library's tolerances then mean something
    width = np.sqrt(np.diag(Q))
    width = np.where(width > 0, width, 1.0)
    size = max(float(np.abs(b / width).max()), 1e-300)
    scaled = (
        Q / np.outer(width, width),
        b / width / size,
        l1 / width / size,
        lower * width / size,
        upper * width / size,
    )
    # exchanging whole sets mostly settles in a few solves; where it cycles, an
    # interior point says which set is right
    begin = np.clip(start * width / size, *scaled[3:])
    rests = np.count_nonzero((begin == scaled[3]) | (begin == scaled[4]))
    if len(b) > MANY_UNKNOWNS and not l1.any() and 2 * rests <= len(b):
        begin = _by_covariance(scaled[0], scaled[1], *scaled[3:], begin)
    value, steps = _exchange(*scaled, begin, max_iterations)
    result = ConvexResult(value, True, "exchange", steps)
    if steps > min(EXCHANGES, max_iterations):
        result = _interior_point(*scaled, max_iterations)
        value, steps = _exchange(*scaled, result.value, EXCHANGES)
        if not result.converged or steps > EXCHANGES:
            value = result.value
    # the way there and back may round off a bound, or across it
    back = np.where(value == scaled[3], lower, value * size / width)
    value = np.clip(np.where(value == scaled[4], upper, back), lower, upper)
    return replace(result, value=value)


def _by_covariance(
    Q: Float, b: Float, lower: Float, upper: Float, start: Float
) -> Float:
    """Return the minimiser to the accuracy of an inverse, or the start.

    One inverse costs three of the solves for all unknowns that are free, of which
    exchanges need many; solving for the few that rest then costs next to nothing.
    """
    factor, wrong = scipy.linalg.lapack.dpotrf(Q.T, lower=True)
    if wrong:
        return start
    free, _ = scipy.linalg.lapack.dpotrs(factor, b, lower=True)
    try:
        return nearest_by_covariance(
            inverse_of_factor(factor), free, lower, upper, start
        )
    except scipy.linalg.LinAlgError:
        return start


def inverse_of_factor(factor: Float) -> Float:
    """(n, n) float64, inverse of L L' from its lower Cholesky factor L, zero above."""
    inverse, _ = scipy.linalg.lapack.dpotri(factor, lower=True)
    # the driver leaves the other triangle as it was: zero
    whole = np.asarray(inverse + inverse.T)
    whole[np.diag_indices(len(whole))] *= 0.5
    return whole


def duality_gap(
    Q: Float, b: Float, l1: Float, lower: Float, upper: Float, value: Float
) -> float:
    """Bound of the objective's excess over its minimum, for a value that is allowed.

    With g the gradient of the quadratic part, h the rest of the objective, h* its
    conjugate and y the point nearest to -g where that is finite, the difference to the
    dual objective is h(a) + h*(y) - y a + r' Q^-1 r / 4, r = g + y (Fenchel): a sum
    of terms that are not negative, so that rounding cannot hide it. Infinite where Q
    is singular and r is not in its range.
    """
    gradient = 2.0 * (Q @ value - b)
    least = np.where(np.isfinite(lower), -np.inf, -l1)
    most = np.where(np.isfinite(upper), np.inf, l1)
    dual = np.clip(-gradient, least, most)
    excess = np.zeros(len(b))
    # the largest of a piecewise linear function is at one of its corners
    for end in (lower, upper, np.clip(0.0, lower, upper)):
        there = np.where(np.isfinite(end), end, value)
        gain = dual * (there - value) - l1 * (np.abs(there) - np.abs(value))
        excess = np.maximum(excess, gain)
    rest = gradient + dual
    step = solve_symmetric(Q, rest)
    if not np.allclose(
        Q @ step, rest, atol=1e-6 * float(np.abs(b).max(initial=1e-300))
    ):
        return float(np.inf)
    return float(excess.sum() + 0.25 * rest @ step)


def solve_symmetric(Q: Float, b: Float) -> Float:
    """Solution of ``Q a = b``; the smallest one where Q is singular."""
    if not len(b):
        return np.zeros_like(b)
    # the driver alone: draws solve many small problems, and its wrappers cost more
    _, value, wrong = scipy.linalg.lapack.dposv(Q, b, lower=True)
    if wrong:
        return np.asarray(scipy.linalg.lstsq(Q, b)[0])
    return np.asarray(value)


def _interior_point(
    Q: Float, b: Float, l1: Float, lower: Float, upper: Float, max_iterations: int
) -> ConvexResult:
    """Clarabel on the smooth form: |a| <= t where the sign is free."""
    n = len(b)
    side = _side(lower, upper)
    split = np.flatnonzero((side == 0) & (l1 > 0))
    m = len(split)
    q = np.concatenate((l1 * side - 2.0 * b, l1[split]))
    P = sp.block_diag((sp.csc_matrix(np.triu(2.0 * Q)), sp.csc_matrix((m, m))), "csc")
    eye, one = sp.identity(n, format="csr"), sp.identity(m, format="csr")
    low, high = np.flatnonzero(np.isfinite(lower)), np.flatnonzero(np.isfinite(upper))
    box = sp.vstack((-eye[low], eye[high]))
    rows = [sp.hstack((box, sp.csr_matrix((len(low) + len(high), m))))]
    if m:
        rows += [sp.hstack((eye[split], -one)), sp.hstack((-eye[split], -one))]
    A = sp.csc_matrix(sp.vstack(rows))
    limits = np.concatenate((-lower[low], upper[high], np.zeros(2 * m)))
    settings: Any = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_iter = max_iterations
    settings.max_threads = 1
    # the usual 1e-8 leaves slip a hundred-thousandth from the minimum, and is enough
    # only where rounding allows no more
    settings.tol_gap_abs = settings.tol_gap_rel = 1e-12
    settings.reduced_tol_gap_abs = settings.reduced_tol_gap_rel = 1e-8
    cones = [clarabel.NonnegativeConeT(A.shape[0])]
    solver = clarabel.DefaultSolver(P, q, A, limits, cones, settings)
    found = solver.solve()
    status = str(found.status)
    # feasible to the last bit, whatever the tolerance
    value = np.clip(np.array(found.x[:n]), lower, upper)
    return ConvexResult(
        value, status in ("Solved", "AlmostSolved"), status, found.iterations
    )


def _side(lower: Float, upper: Float) -> Float:
    """1 and -1 for unknowns that are nowhere negative or nowhere positive, else 0."""
    return np.where(lower >= 0, 1.0, np.where(upper <= 0, -1.0, 0.0))


def _exchange(
    Q: Float,
    b: Float,
    l1: Float,
    lower: Float,
    upper: Float,
    start: Float,
    limit: int,
) -> tuple[Float, int]:
    """Exact minimiser by active sets that change as a whole.

    Block pivoting of Portugal, Judice & Vicente 1994, Math. Comput. 63, 625, without
    their fall-back rule. An unknown rests at a corner, which is a bound or the zero of
    its absolute value, or is free between two corners.

    Returns
    -------
    The value, and the number of solves; limit + 1 where the sets have not settled.
    """
    side = _side(lower, upper)
    split = (side == 0) & (l1 > 0)
    tiny = 1e-6 * float(np.abs(start).max(initial=0.0))
    # the piece in which an unknown is: of one that is split, below or above zero
    half = np.where(split, np.sign(start), side)
    corner = np.clip(np.where(split, 0.0, start), lower, upper)
    corner = np.where(np.abs(start - lower) <= tiny, lower, corner)
    corner = np.where(np.abs(start - upper) <= tiny, upper, corner)
    rests = np.abs(start - corner) <= tiny
    rests &= (corner == lower) | (corner == upper) | split
    slack = 1e-10
    trial = start
    limit = min(limit, EXCHANGES)
    for step in range(1, limit + 1):
        trial = np.where(rests, corner, 0.0)
        index = np.flatnonzero(~rests)
        if len(index):
            held = np.flatnonzero(rests & (corner != 0.0))
            right = b[index] - 0.5 * l1[index] * half[index]
            if len(held):
                right -= Q[np.ix_(index, held)] @ corner[held]
            trial[index] = solve_symmetric(Q[np.ix_(index, index)], right)
        gradient = 2.0 * (Q @ trial - b)
        low = np.where(split & (half > 0), 0.0, lower)
        high = np.where(split & (half < 0), 0.0, upper)
        under, over = ~rests & (trial < low), ~rests & (trial > high)
        # what rests wants to leave where the slope of that side falls
        at_zero = split & (corner == 0.0)
        up = np.where(at_zero, 1.0, np.where(split, np.sign(corner), side))
        down = np.where(at_zero, -1.0, up)
        rises = rests & (corner < upper) & (gradient + l1 * up < -slack)
        falls = rests & (corner > lower) & (gradient + l1 * down > slack)
        if not (under | over | rises | falls).any():
            return trial, step
        corner = np.where(under, low, np.where(over, high, corner))
        half = np.where(split & rises, up, np.where(split & falls, down, half))
        rests = (rests & ~rises & ~falls) | under | over
    return trial, limit + 1
