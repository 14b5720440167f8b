"""Draws of slip with its signs, its smoothness and the data's variances."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg

from afterslip_solver.inversion.convex import nearest, nearest_by_covariance
from afterslip_solver.inversion.earths import bilinear_groups
from afterslip_solver.inversion.hierarchy import Chain, Hierarchy, conditional, sample
from afterslip_solver.inversion.marginal import State, draw_free
from afterslip_solver.inversion.normal import (
    Normal,
    Quadratic,
    known_rows,
    normal_of,
    together,
)
from afterslip_solver.inversion.nuisance import nuisance_of
from afterslip_solver.inversion.problem import InversionProblem
from afterslip_solver.inversion.settings import InversionSettings
from afterslip_solver.model import Float

WARM_UP = 0.3  # of the draws, discarded before them where they walk


@dataclass(frozen=True, slots=True)
class Posterior:
    """Draws of everything that is not known.

    Attributes
    ----------
    slip : (n_draw, n_par) float64, m.
    nuisance : (n_draw, n_nuisance) float64.
    variance : (n_draw, n_dataset) float64, factors of the stated variances.
    smoothness : (n_draw,) float64, lambda of the data divided by those factors.
    effective : independent draws that say as much, the least over all unknowns.
    earth : (n_draw, n_change) float64, changes of the earth in standard deviations.
    free : (n_draw, n_par) float64, m, slip before it was taken to its bounds.
    held : (n_draw, n_par) float64, m, the same, each coefficient cut at its own bounds.
    """

    slip: Float
    nuisance: Float
    variance: Float
    smoothness: Float
    effective: float
    earth: Float
    free: Float
    held: Float

    @property
    def sigma(self) -> Float:
        """(n_par,) float64, m, standard deviation of slip."""
        return np.asarray(self.held.std(axis=0, ddof=1))

    def interval(self, share: float = 0.95) -> tuple[Float, Float]:
        """(n_par,) float64, m, equal-tailed limits of slip."""
        return limits(self.held, self.slip, share)


def interval(draws: Float, share: float = 0.95) -> tuple[Float, Float]:
    """Equal-tailed limits that hold a share of the draws along the first axis."""
    outside = 0.5 * (1.0 - share)
    low, high = np.quantile(draws, (outside, 1.0 - outside), axis=0)
    return low, high


def limits(free: Float, within: Float, share: float = 0.95) -> tuple[Float, Float]:
    """Outer limits of what draws make without bounds and within them.

    Parameters
    ----------
    free, within : (n_draw, ...) float64, of the same draws.
    """
    low, high = interval(free, share)
    least, most = interval(within, share)
    return np.minimum(low, least), np.maximum(high, most)


def draw_posterior(
    problem: InversionProblem,
    normal: Normal,
    settings: InversionSettings,
    smoothness: float | None,
    report: Callable[[int, float], None] | None = None,
) -> Posterior | None:
    """Draw slip and scales; None where data and prior leave slip undetermined.

    Parameters
    ----------
    smoothness : lambda where it is given; None: estimated.
    report : called now and then with the number of draws and the misfit per datum.
    """
    model = hierarchy_of(problem, normal, smoothness)
    rng = np.random.default_rng(settings.seed)
    start = start_of(normal, *normal.bounds)
    try:
        chain, inside = to_bounds(model, start, settings.draws, rng, report)
    except scipy.linalg.LinAlgError:
        return None
    return _posterior(chain, inside, problem, normal)


def to_bounds(
    model: Hierarchy,
    start: Float,
    draws: int,
    rng: np.random.Generator,
    report: Callable[[int, float], None] | None = None,
) -> tuple[Chain, Float]:
    """Draw without bounds, and take the nearest slip within them for each draw.

    Nearest in the metric of slip's precision given the draw's scales: the bounded
    least-squares solution of data and prior with errors added to both (Everink, Dong
    & Andersen 2023, SIAM/ASA J. Uncertain. Quantif. 11, 1025). Zero slip is then zero
    in many draws, where a density cut off at the bounds pushes every slip away from
    them (docs/decisions/0011-draws-between-bounds.md).

    Parameters
    ----------
    model, start, draws, rng, report : as of `marginal.draw_free`.

    Returns
    -------
    The draws without bounds, and (n_draw, n) float64 the values within them.

    Raises
    ------
    scipy.linalg.LinAlgError
        Where data and prior together leave an unknown undetermined.
    """
    if model.earths:
        return _through_earths(model, start, draws, rng, report)
    if (beside := nuisance_of(model)) is not None:
        slip = start[: len(model.precision)]
        return beside.drawn(*to_bounds(beside.model, slip, draws, rng, report), rng)
    n = len(start)
    chain = Chain(
        np.empty((draws, n)),
        np.empty((draws, len(model.groups))),
        np.empty(draws),
        np.empty((draws, 0)),
    )
    value, inside = np.clip(start, model.lower, model.upper), np.empty((draws, n))
    for k, (state, drawn) in enumerate(draw_free(model, start, draws, rng, report)):
        if ((model.lower <= drawn) & (drawn <= model.upper)).all():
            value = drawn
        else:
            value = _inside(model, state, drawn, value)
        chain.value[k], inside[k] = drawn, value
        chain.variance[k], chain.precision_scale[k] = state.variance, state.tau
    return chain, inside


def _through_earths(
    model: Hierarchy,
    start: Float,
    draws: int,
    rng: np.random.Generator,
    report: Callable[[int, float], None] | None,
) -> tuple[Chain, Float]:
    """Draw slip, scales and earth in turn, as slip does not integrate out with it."""
    none = np.full(len(model.lower), np.inf)
    free = replace(model, lower=-none, upper=none)
    warm_up = int(np.ceil(WARM_UP * draws))
    chain = sample(free, start, draws, warm_up, rng, report)
    value, inside = np.clip(start, model.lower, model.upper), chain.value.copy()
    for k, drawn in enumerate(chain.value):
        if ((model.lower <= drawn) & (drawn <= model.upper)).all():
            continue
        scales = chain.variance[k], float(chain.precision_scale[k])
        given = conditional(model.at(chain.earth[k]), *scales)
        value = nearest(given.matrix, drawn, model.lower, model.upper, value)
        inside[k] = value
    return chain, inside


def _inside(model: Hierarchy, state: State, drawn: Float, start: Float) -> Float:
    """Return the slip between bounds that is nearest to a draw."""
    sides = (model.lower, model.upper, start)
    try:
        return nearest_by_covariance(state.covariance, drawn, *sides)
    except scipy.linalg.LinAlgError:
        # hardly any smoothness: the covariance has too many sizes to be inverted
        precision = conditional(model, state.variance, state.tau).matrix
        return nearest(precision, drawn, *sides)


def hierarchy_of(
    problem: InversionProblem, normal: Normal, smoothness: float | None
) -> Hierarchy:
    """Return the posterior that is drawn from.

    Parameters
    ----------
    normal : of the problem, its groups by data set.
    smoothness : lambda where it is given; None: estimated.
    """
    lower, upper = normal.bounds
    sums = tuple(_known_sum(*row, len(lower)) for row in known_rows(problem))
    return Hierarchy(
        groups=(*normal.groups, *sums),
        free=np.append(problem.free_variances, np.zeros(len(sums), dtype=bool)),
        precision=normal.roughness,
        lower=lower,
        upper=upper,
        smoothness=smoothness,
        sums=len(sums),
        earths=bilinear_groups(problem),
    )


def start_of(normal: Normal, lower: Float, upper: Float) -> Float:
    """Return a point inside the bounds, of the size of a damped solution."""
    matrix = normal.with_roughness(normal.smoothness_scale, normal.roughness)
    matrix[np.diag_indices(len(matrix))] += 1e-9 * np.trace(matrix) / len(matrix)
    value = np.linalg.solve(matrix, normal.right)
    slip = value[: normal.n_par]
    size = max(float(np.sqrt(np.mean(slip**2))), 1e-9)
    inner = 0.1 * size
    with np.errstate(invalid="ignore"):
        away = np.minimum(inner, 0.25 * (upper - lower))
    return np.clip(value, lower + away, upper - away)


def _known_sum(row: Float, value: float, n: int) -> Quadratic:
    """Return a known sum as a data set of one row, without unknowns beside slip."""
    whole = np.zeros(n)
    whole[: len(row)] = row
    return Quadratic(np.outer(whole, whole), whole * value, value**2, 1)


def _posterior(
    chain: Chain, inside: Float, problem: InversionProblem, normal: Normal
) -> Posterior:
    n = normal.n_par
    lower, upper = (side[:n] for side in normal.bounds)

    def slip(value: Float) -> Float:
        return problem.slip_of(value[:, :n].T).T

    return Posterior(
        slip=slip(inside),
        nuisance=inside[:, n:],
        variance=chain.variance[:, : len(normal.groups)],
        smoothness=chain.precision_scale,
        effective=chain.effective(),
        earth=chain.earth,
        free=slip(chain.value),
        held=slip(np.clip(chain.value[:, :n], lower, upper)),
    )


def medians(posterior: Posterior) -> tuple[Float, float]:
    """(n_dataset,) factors of the variances, and lambda, at the posterior's median."""
    return np.median(posterior.variance, axis=0), float(np.median(posterior.smoothness))


def reweigh(
    problem: InversionProblem, normal: Normal, variance: Float
) -> tuple[InversionProblem, Normal]:
    """Return the problem whose errors have the estimated variances."""
    changed = problem.reweighted(variance)
    groups = tuple(
        together((group,), np.array([factor]))
        for group, factor in zip(normal.groups, variance, strict=True)
    )
    return changed, normal_of(changed, normal.roughness, groups)
