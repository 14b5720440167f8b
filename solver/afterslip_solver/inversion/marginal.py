"""Draws where nothing bounds slip: scales from their own posterior, slip given them.

Without bounds slip integrates out of the posterior of `Hierarchy`. With the precision Q
and the mean m of slip given the scales, N_k data in set k and n slips,

    log p(v, tau | d) = sum_k -N_k/2 log v_k + n/2 log tau - 1/2 log det Q
                        - 1/2 (sum_k misfit_k(m) / v_k + tau m' L m) + log prior

is left, of as many numbers as there are scales. They are proposed from Student's t
about the mode and accepted by Metropolis and Hastings' rule (the independence chain of
Tierney 1994, Ann. Stat. 22, 1701): draws next to each other are hardly correlated,
where steps that alternate between slip and scales walk. In logarithms of the scales the
posterior falls like an exponential or faster, which the t's tails exceed everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.linalg

from afterslip_solver.inversion.convex import inverse_of_factor
from afterslip_solver.inversion.hierarchy import (
    LEAST_ROWS,
    Hierarchy,
    conditional,
    first_scale,
)
from afterslip_solver.model import Float

FREEDOM = 5.0  # degrees of the t's
WARM_UP = 10  # proposals before the first draw: the mode, where they begin, is likely
ROUNDS = 40  # of Newton's method
STEP = 1e-2  # of differences of the slope, in logarithms
FAR = 2.0  # in logarithms, that Newton's method goes at once
NEAR = 1e-2  # standard deviations squared, from the mode
MANY_UNKNOWNS = 1000
SLIPS_OF_MANY = 5
"""Slips drawn for each draw of the scales of many unknowns. They are independent given
the scales, which move slips little, and cost n² each where scales cost n³."""


@dataclass(frozen=True)
class State:
    """Scales, and slip given them.

    Attributes
    ----------
    theta : (n_free,) float64, logarithms of the scales that are estimated.
    density : their posterior's logarithm, up to a constant.
    variance : (n_group,) float64. tau : precision of the prior.
    factor : (n, n) float64, lower Cholesky factor of slip's precision.
    mean : (n,) float64, of slip.
    """

    theta: Float
    density: float
    variance: Float
    tau: float
    factor: Float
    mean: Float

    def draw(self, rng: np.random.Generator) -> Float:
        """(n,) float64, slip, independent of every other draw."""
        noise = rng.standard_normal(len(self.mean))
        away, _ = scipy.linalg.lapack.dtrtrs(self.factor, noise, lower=True, trans=True)
        return np.asarray(self.mean + away)

    @cached_property
    def covariance(self) -> Float:
        """(n, n) float64, of slip."""
        return inverse_of_factor(self.factor)


class Scales:
    """The posterior of the scales of a hierarchy without bounds.

    Parameters
    ----------
    model : whose bounds are not looked at.
    """

    def __init__(self, model: Hierarchy) -> None:
        self.model = model
        groups, data = len(model.groups), len(model.data)
        count = np.array([group.count for group in model.groups], dtype=float)
        self._weight = np.append(-0.5 * count, 0.5 * len(model.precision))
        if model.smoothness is None:
            free = np.flatnonzero(model.free & (count >= LEAST_ROWS))
            self._of_theta = np.zeros((groups + 1, len(free) + 1))
            self._of_theta[np.append(free, groups), np.arange(len(free) + 1)] = 1.0
            # flat in standard deviations, of data and of slip
            self._prior = np.append(np.full(len(free), 0.5), -0.5)
            self._tau = 1.0
        else:
            # one variance of all data, and the prior's precision in its units
            self._of_theta = np.zeros((groups + 1, int(model.free.any())))
            self._of_theta[:data], self._of_theta[-1] = 1.0, -1.0
            self._prior = np.full(self._of_theta.shape[1], 0.5)
            self._tau = model.smoothness

    @property
    def count(self) -> int:
        """Number of scales that are estimated."""
        return len(self._prior)

    def first(self, value: Float) -> Float:
        """(n_free,) float64, scales that slip of about the right size suggests."""
        groups = self.model.groups
        rms = [max(g.misfit(value) / max(g.count, 1), 1e-300) for g in groups]
        tau = first_scale(self.model, value[: len(self.model.precision)]) / self._tau
        found = np.linalg.lstsq(self._of_theta, np.log([*rms, tau]), rcond=None)[0]
        return np.asarray(found)

    def at(self, theta: Float) -> State:
        """Return density and slip at some scales.

        Raises
        ------
        scipy.linalg.LinAlgError
            Where data and prior together leave an unknown undetermined.
        """
        logs = self._of_theta @ theta
        variance, tau = np.exp(logs[:-1]), self._tau * float(np.exp(logs[-1]))
        given = conditional(self.model, variance, tau)
        # symmetric: the transpose is in the driver's order, and needs no copy
        factor, wrong = scipy.linalg.lapack.dpotrf(
            given.matrix.T, lower=True, overwrite_a=True
        )
        if wrong or not np.isfinite(factor[-1, -1]):
            raise scipy.linalg.LinAlgError("the precision is not positive definite")
        half, _ = scipy.linalg.lapack.dtrtrs(factor, given.right, lower=True)
        mean, _ = scipy.linalg.lapack.dtrtrs(factor, half, lower=True, trans=True)
        density = float((self._weight @ self._of_theta + self._prior) @ theta)
        density -= float(np.log(np.diag(factor)).sum())
        density -= 0.5 * (given.power - float(half @ half))
        return State(theta, density, variance, tau, factor, mean)

    def slope(self, state: State) -> Float:
        """(n_free,) float64, derivative of the density."""
        covariance, mean, n = state.covariance, state.mean, len(self.model.precision)
        rise = self._weight.copy()
        for k, group in enumerate(self.model.groups):
            trace = float(np.einsum("ij,ij->", covariance, group.matrix))
            rise[k] += 0.5 * (trace + group.misfit(mean)) / state.variance[k]
        rough = float(mean[:n] @ self.model.precision @ mean[:n])
        rough += float(np.einsum("ij,ij->", covariance[:n, :n], self.model.precision))
        rise[-1] -= 0.5 * state.tau * rough
        return np.asarray(self._of_theta.T @ rise + self._prior)

    def mode(self, theta: Float) -> tuple[State, Float]:
        """Find the most probable scales by Newton's method.

        Returns
        -------
        The state there, and (n_free, n_free) float64, a root S of the covariance S S'
        of the Gaussian that touches the density at its top.
        """
        state = self.at(theta)
        for _ in range(ROUNDS):
            slope = self.slope(state)
            columns = [
                (self.slope(self.at(state.theta + STEP * one)) - slope) / STEP
                for one in np.eye(self.count)
            ]
            curvature = -0.5 * (np.array(columns) + np.array(columns).T)
            value, vector = np.linalg.eigh(curvature)
            # away from saddles too, and no further than the curvature is good for
            value = np.maximum(np.abs(value), 1e-2)
            root = vector / np.sqrt(value)
            step = root @ (root.T @ slope)
            if float(step @ slope) < NEAR:
                break
            step *= min(1.0, FAR / float(np.abs(step).max()))
            reached = self._climb(state, step)
            if reached is None:
                break
            state = reached
        return state, root

    def _climb(self, state: State, step: Float) -> State | None:
        for _ in range(12):
            tried = self._try(state.theta + step)
            if tried is not None and tried.density > state.density:
                return tried
            step = 0.5 * step
        return None

    def _try(self, theta: Float) -> State | None:
        try:
            return self.at(theta)
        except scipy.linalg.LinAlgError:
            return None

    def chain(
        self, start: Float, count: int, rng: np.random.Generator
    ) -> Iterator[State]:
        """Yield draws of the scales.

        Parameters
        ----------
        start : (n,) float64, slip of about the right size.

        Raises
        ------
        scipy.linalg.LinAlgError
            Where data and prior together leave an unknown undetermined.
        """
        if not self.count:
            state = self.at(np.zeros(0))
            yield from (state for _ in range(count))
            return
        state, root = self.mode(self.first(start))
        centre, proposed = state.theta, _height(np.zeros(self.count))
        for step in range(-WARM_UP, count):
            away = rng.standard_normal(self.count)
            away /= np.sqrt(rng.chisquare(FREEDOM) / FREEDOM)
            height, tried = _height(away), self._try(centre + root @ away)
            if tried is not None:
                gain = tried.density - state.density - height + proposed
                if np.log(rng.uniform()) < gain:
                    state, proposed = tried, height
            if step >= 0:
                yield state


def _height(away: Float) -> float:
    """Logarithm of the t's density, up to a constant."""
    return -0.5 * (FREEDOM + len(away)) * float(np.log1p(away @ away / FREEDOM))


def draw_free(
    model: Hierarchy,
    start: Float,
    draws: int,
    rng: np.random.Generator,
    report: Callable[[int, float], None] | None = None,
) -> Iterator[tuple[State, Float]]:
    """Yield scales and slip from the posterior without bounds.

    Parameters
    ----------
    start : (n,) float64, slip of about the right size.
    report : called every hundredth draw with its number and its misfit per datum.

    Raises
    ------
    scipy.linalg.LinAlgError
        Where data and prior together leave an unknown undetermined.
    """
    slips = SLIPS_OF_MANY if len(start) > MANY_UNKNOWNS else 1
    drawn = 0
    for state in Scales(model).chain(start, -(-draws // slips), rng):
        for _ in range(min(slips, draws - drawn)):
            value = state.draw(rng)
            if report is not None and drawn % 100 == 0:
                rows = sum(group.count for group in model.data)
                report(drawn, sum(g.misfit(value) for g in model.data) / rows)
            drawn += 1
            yield state, value
