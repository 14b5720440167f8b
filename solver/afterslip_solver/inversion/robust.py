"""Data far off the others weigh less: Huber's loss by reweighting.

Huber 1964, Ann. Math. Stat. 35, 73; Huber 1981, Robust Statistics, Wiley.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import scipy.special

from afterslip_solver.inversion.covariance import Block, whiten
from afterslip_solver.inversion.problem import InversionProblem
from afterslip_solver.model import Bool, Float

# residuals beyond this many standard deviations count by their size, not its square;
# 95 % efficient where the errors are Gaussian
KNEE = 1.345
_WITHIN = 2.0 * float(scipy.special.ndtr(KNEE)) - 1.0
CUT_SQUARE = (
    _WITHIN
    - 2.0 * KNEE * float(np.exp(-0.5 * KNEE**2) / np.sqrt(2.0 * np.pi))
    + KNEE**2 * (1.0 - _WITHIN)
)
"""Mean of min(|z|, KNEE)² of Gaussian z, 0.710: a datum that is cut at the knee counts
as so many, so that the variance of Gaussian errors stays as it is (proposal 2 of Huber
1964; Huber 1981, section 6.4)."""
ROUNDS = 20
SETTLED = 0.01  # change of the weights


def huber_weights(problem: InversionProblem, residual: Float, robust: Bool) -> Float:
    """Weights of rows from their residuals.

    Residuals are whitened and measured by the median of their own data set, so the
    weights do not depend on a factor on its sigmas.

    Parameters
    ----------
    residual : (n_obs,) float64, m.
    robust : (n_obs,) bool, rows that may weigh less.

    Returns
    -------
    (n_obs,) float64, 1 for rows within the knee, less beyond.
    """
    size = np.abs(whiten(problem.covariance, problem.sigma, residual))
    weight = np.ones(len(residual))
    for dataset in np.unique(problem.dataset_of_row[robust]):
        mine = robust & (problem.dataset_of_row == dataset)
        scale = 1.4826 * float(np.median(size[mine]))
        if scale > 0:
            limit = KNEE * scale
            weight[mine] = np.minimum(1.0, limit / np.maximum(size[mine], limit))
    return weight


def without_common(problem: InversionProblem, residual: Float) -> Float:
    """Take from a residual what the errors in common most probably are.

    An error that all rows have is no outlier of those that it moves most. Its causes
    are unknowns that are N(0, 1), at their mean given the residual.

    Parameters
    ----------
    residual : (n_obs,) float64, m.
    """
    if not problem.common.size:
        return residual
    columns = whiten(problem.covariance, problem.sigma, problem.common.T)
    white = whiten(problem.covariance, problem.sigma, residual)
    precision = columns.T @ columns + np.eye(columns.shape[1])
    return residual - np.linalg.solve(precision, columns.T @ white) @ problem.common


def reweighted(problem: InversionProblem, weight: Float) -> InversionProblem:
    """Return the problem with the errors of rows divided by the root of a weight."""
    root = 1.0 / np.sqrt(weight)
    blocks = tuple(
        Block(b.rows, b.matrix * np.outer(root[b.rows], root[b.rows]))
        for b in problem.covariance
    )
    return replace(problem, sigma=problem.sigma * root, covariance=blocks)


def cut(problem: InversionProblem, weight: Float, robust: Bool) -> InversionProblem:
    """Return the problem in which data beyond the knee count in variances by the knee.

    With errors over the root of Huber's weight, a single blunder would grow in the sum
    of squares, and with it every interval. Over the weight itself its square is that
    of the knee, however far off it is; and draws with these errors and the variance of
    `CUT_SQUARE` are 1 % wider than Huber's estimate scatters (Huber 1981, section 7.6)
    where errors are Gaussian.

    Parameters
    ----------
    weight : (n_obs,) float64, Huber's.
    robust : (n_obs,) bool, rows that may weigh less.
    """
    posed = reweighted(problem, weight**2)
    return replace(posed, counted=np.where(robust, CUT_SQUARE, 1.0))


def robust_weights(
    problem: InversionProblem,
    robust: Bool,
    fit: Callable[[InversionProblem], Float],
) -> Float:
    """Weights at which the fit and its residuals agree.

    Parameters
    ----------
    fit : returns the residual (n_obs,), m, of the problem it is given.

    Returns
    -------
    (n_obs,) float64; the last ones where they do not settle in some rounds.
    """
    weight = np.ones(len(problem.data))
    for _ in range(ROUNDS):
        posed = reweighted(problem, weight)
        residual = without_common(posed, fit(posed))
        fresh = huber_weights(problem, residual, robust)
        settled = float(np.abs(fresh - weight).max(initial=0.0)) < SETTLED
        weight = fresh
        if settled:
            break
    return weight
