"""Slip, its smoothness and the data's variances from one posterior."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import scipy.special

from afterslip_solver.inversion.earths import Bilinear, draw_earth
from afterslip_solver.inversion.normal import Quadratic, together
from afterslip_solver.inversion.truncated import TruncatedGaussian
from afterslip_solver.model import Bool, Float

LEAST_SHARE = 1e-12
LEAST_ROWS = 2  # a variance estimated from fewer rows has no proper posterior


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """The posterior that is drawn from.

    d_k = G_k a + e_k, e_k ~ N(0, v_k W_k^-1); slip a ~ N(0, (tau L)^-1) within its
    bounds; flat priors of the standard deviations sqrt(v_k) and tau^-1/2 (Gelman
    2006, Bayesian Anal. 1, 515), which have proper posteriors and no scale. Bounds at
    zero do not change with scale, so the normalisation of the bounded prior stays
    tau^(n/2) and the conditionals are exact (Fukuda & Johnson 2008, Bull. Seismol.
    Soc. Am. 98, 1128, sample the same posterior by Metropolis steps). With other
    bounds tau's prior is the flat one times the probability of the bounds given tau.

    Attributes
    ----------
    groups : data sets. free : (n_group,) bool, variances that are estimated.
    precision : (n_par, n_par) float64, L, of the first n_par unknowns; the others
        (offsets, ramps) have a flat prior.
    lower, upper : (n,) float64, m, bounds of the unknowns.
    smoothness : lambda, where it is given: tau is then lambda / v with one common v.
    sums : number of the last groups that are no data; their variances are as stated.
    earths : the data sets in every earth, where Green's functions are uncertain; the
        groups are then those of one earth.
    """

    groups: tuple[Quadratic, ...]
    free: Bool
    precision: Float
    lower: Float
    upper: Float
    smoothness: float | None = None
    sums: int = 0
    earths: tuple[Bilinear, ...] = ()

    def at(self, earth: Float) -> Hierarchy:
        """Return the posterior in one earth (n_change,)."""
        groups = (group.at(earth) for group in self.earths)
        return replace(self, groups=(*groups, *self.groups[len(self.earths) :]))

    @property
    def data(self) -> tuple[Quadratic, ...]:
        """The data sets among the groups."""
        return self.groups[: len(self.groups) - self.sums]


@dataclass(frozen=True, slots=True)
class Chain:
    """Draws from the posterior.

    Attributes
    ----------
    value : (n_draw, n) float64, unknowns.
    variance : (n_draw, n_group) float64, factors v_k of the stated variances.
    precision_scale : (n_draw,) float64, tau.
    earth : (n_draw, n_change) float64, in standard deviations.
    """

    value: Float
    variance: Float
    precision_scale: Float
    earth: Float

    def effective(self) -> float:
        """Least effective number of draws over unknowns, variances and scale."""
        with np.errstate(divide="ignore"):
            others = np.log(np.column_stack((self.variance, self.precision_scale)))
        columns = np.hstack((self.value, others, self.earth))
        moving = np.ptp(columns, axis=0) > 0
        return min((effective_size(c) for c in columns[:, moving].T), default=0.0)


def sample(
    model: Hierarchy,
    start: Float,
    draws: int,
    warm_up: int,
    rng: np.random.Generator,
    report: Callable[[int, float], None] | None = None,
) -> Chain:
    """Draw by Gibbs steps: slip given scales exactly, scales given slip exactly.

    The prior's scale moves twice, given slip and given slip over its scale, which
    mixes well whether the data say much or little (Yu & Meng 2011, J. Comput. Graph.
    Stat. 20, 531).

    Parameters
    ----------
    start : (n,) float64, between the bounds, not all zero.
    draws, warm_up : recorded and discarded steps.
    report : called every hundredth step with its number and its misfit per datum.

    Raises
    ------
    scipy.linalg.LinAlgError
        Where data and prior together leave an unknown undetermined.
    """
    n_par = len(model.precision)
    value = start.copy()
    variance = np.ones(len(model.groups))
    earths = model.earths
    earth = np.zeros(len(earths[0].right) - 1 if earths else 0)
    tau = first_scale(model, value[:n_par])
    recorded = Chain(
        np.empty((draws, len(value))),
        np.empty((draws, len(variance))),
        np.empty(draws),
        np.empty((draws, len(earth))),
    )
    for step in range(-warm_up, draws):
        variance = _draw_variances(model, value, variance, rng)
        tau = _draw_scale(model, value, variance, tau, rng)
        value = _gaussian(model, variance, tau).draw(value, rng)
        if model.smoothness is None:
            value, tau = _rescale(model, value, variance, tau, rng)
        if earths:
            earth = draw_earth(earths, value, variance, rng)
            model = model.at(earth)
        if step >= 0:
            recorded.earth[step] = earth
            recorded.value[step] = value
            recorded.variance[step] = variance
            recorded.precision_scale[step] = tau
        if report is not None and step % 100 == 0:
            rows = sum(group.count for group in model.data)
            misfit = sum(group.misfit(value) for group in model.data)
            report(step + warm_up, misfit / rows)
    return recorded


def _gaussian(model: Hierarchy, variance: Float, tau: float) -> TruncatedGaussian:
    """Slip given the scales."""
    given = conditional(model, variance, tau)
    return TruncatedGaussian(given.matrix, given.right, model.lower, model.upper)


def conditional(model: Hierarchy, variance: Float, tau: float) -> Quadratic:
    """Sum of squares of data and prior given the scales, without bounds."""
    n_par = len(model.precision)
    given = together(model.groups, variance)
    given.matrix[:n_par, :n_par] += tau * model.precision
    return given


def first_scale(model: Hierarchy, slip: Float) -> float:
    """Precision of a prior that makes slip (n_par,) likely, or the given one."""
    if model.smoothness is not None:
        return model.smoothness
    return len(slip) / max(float(slip @ model.precision @ slip), 1e-300)


def _draw_variances(
    model: Hierarchy, value: Float, variance: Float, rng: np.random.Generator
) -> Float:
    """Variances given slip: inverse gamma."""
    drawn = variance.copy()
    if model.smoothness is not None:
        if model.free.any():
            n_par = len(model.precision)
            slip = value[:n_par]
            total = sum(group.misfit(value) for group in model.data)
            total += model.smoothness * float(slip @ model.precision @ slip)
            rows = sum(group.count for group in model.data) + n_par
            drawn[: len(model.data)] = 0.5 * total / rng.gamma(0.5 * (rows - 1))
        return drawn
    for k in np.flatnonzero(model.free):
        group = model.groups[k]
        if group.count >= LEAST_ROWS:
            drawn[k] = 0.5 * group.misfit(value) / rng.gamma(0.5 * (group.count - 1))
    return drawn


def _draw_scale(
    model: Hierarchy,
    value: Float,
    variance: Float,
    tau: float,
    rng: np.random.Generator,
) -> float:
    """Prior's scale given slip: gamma."""
    if model.smoothness is not None:
        return model.smoothness / float(variance[0])
    n_par = len(model.precision)
    slip = value[:n_par]
    rough = float(slip @ model.precision @ slip)
    return float(rng.gamma(0.5 * (n_par - 1)) / (0.5 * rough)) if rough > 0 else tau


def _rescale(
    model: Hierarchy,
    value: Float,
    variance: Float,
    tau: float,
    rng: np.random.Generator,
) -> tuple[Float, float]:
    """Slip and tau^-1/2 scaled together by a factor: a Gaussian between limits."""
    n_par = len(model.precision)
    slip, other = value.copy(), value.copy()
    slip[n_par:], other[:n_par] = 0.0, 0.0
    curve = pull = 0.0
    for group, v in zip(model.groups, variance, strict=True):
        along = group.matrix @ slip / v
        curve += float(along @ slip)
        pull += float(slip @ group.right / v - along @ other)
    low, high = _factors(slip[:n_par], model.lower[:n_par], model.upper[:n_par])
    if not curve > 0.0:
        return value, tau
    # inverse of the distribution function; limits so far in a tail that it rounds to
    # nothing depend on the direction alone, so that staying there is as exact
    mean, width = pull / curve, 1.0 / np.sqrt(curve)
    below, above = scipy.special.ndtr((np.array([low, high]) - mean) / width)
    if above - below < LEAST_SHARE:
        return value, tau
    share = below + (above - below) * rng.uniform()
    factor = mean + width * float(scipy.special.ndtri(share))
    if not max(low, 0.0) < factor < high:
        return value, tau
    return factor * slip + other, tau / factor**2


def _factors(slip: Float, lower: Float, upper: Float) -> tuple[float, float]:
    """Least and largest factor, above zero, that leaves slip between its bounds."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ends = np.where(
            slip > 0, upper / slip, np.where(slip < 0, lower / slip, np.inf)
        )
        starts = np.where(slip > 0, lower / slip, np.where(slip < 0, upper / slip, 0.0))
    return max(0.0, float(starts.max(initial=0.0))), float(ends.min(initial=np.inf))


def effective_size(draws: Float) -> float:
    """Independent draws that say as much of the mean as these correlated ones.

    Autocorrelations are summed in pairs until a pair is negative (Geyer 1992, Stat.
    Sci. 7, 473, initial positive sequence).

    Parameters
    ----------
    draws : (n,) float64, in their order.
    """
    n = len(draws)
    centred = draws - draws.mean()
    spectrum = np.fft.rfft(centred, 2 * n)
    covariance = np.fft.irfft(np.abs(spectrum) ** 2)[:n]
    if covariance[0] <= 0.0:
        return 0.0
    correlation = covariance / covariance[0]
    pairs = correlation[: n - n % 2].reshape(-1, 2).sum(axis=1)
    ends = np.flatnonzero(pairs <= 0.0)
    total = pairs[: ends[0]].sum() if len(ends) else pairs.sum()
    return float(n / max(2.0 * total - 1.0, 1e-3))
