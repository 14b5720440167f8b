"""Exact draws from a Gaussian between bounds."""

from __future__ import annotations

import math

import numpy as np
import scipy.linalg

from afterslip_solver.jit.compiling import compiled
from afterslip_solver.model import Float


class TruncatedGaussian:
    """Gaussian restricted to a box, drawn from without a step length or rejection.

    Hamiltonian dynamics of a Gaussian are rotations, so that the time at which a
    trajectory meets a wall is known in closed form (Pakman & Paninski 2014, J. Comput.
    Graph. Stat. 23, 518, section 2). Position and velocity are held in the space of
    the unknowns: a reflection then needs one column of the covariance.

    Parameters
    ----------
    precision : (n, n) float64, symmetric, positive definite.
    linear : (n,) float64; the mean of the free Gaussian is precision^-1 linear.
    lower, upper : (n,) float64, infinite where there is no bound.

    Raises
    ------
    scipy.linalg.LinAlgError
        Where the precision is not positive definite.
    """

    def __init__(
        self, precision: Float, linear: Float, lower: Float, upper: Float
    ) -> None:
        # the drivers alone: their wrappers cost more than a small problem
        self._factor, wrong = scipy.linalg.lapack.dpotrf(precision, lower=True)
        if wrong:
            raise scipy.linalg.LinAlgError("the precision is not positive definite")
        self._mean, _ = scipy.linalg.lapack.dpotrs(self._factor, linear, lower=True)
        self._lower, self._upper = lower - self._mean, upper - self._mean
        self._bounded = np.flatnonzero(np.isfinite(lower) | np.isfinite(upper))
        self._covariance = np.zeros((0, 0))
        if len(self._bounded):
            inverse, _ = scipy.linalg.lapack.dpotri(self._factor, lower=True)
            lower_part = np.tril(inverse)
            self._covariance = lower_part + lower_part.T
            self._covariance[np.diag_indices(len(linear))] *= 0.5

    def draw(self, start: Float, rng: np.random.Generator) -> Float:
        """(n,) float64, the end of a trajectory of a quarter turn from ``start``.

        Without bounds the draw does not depend on the start.

        Parameters
        ----------
        start : (n,) float64, between the bounds.
        """
        noise = rng.standard_normal(len(self._mean))
        velocity, _ = scipy.linalg.lapack.dtrtrs(
            self._factor, noise, lower=True, trans=True
        )
        if not len(self._bounded):
            return np.asarray(self._mean + velocity)
        place = start - self._mean
        _travel(
            place, velocity, self._covariance, self._bounded, self._lower, self._upper
        )
        return np.asarray(self._mean + place)


@compiled()
def _ahead(time, outward):  # type: ignore[no-untyped-def]
    """Next time that a wall is met; at once where rounding has put it just behind."""
    if time >= 0.0:
        return time
    return 0.0 if outward and time > -1e-9 else time + 2.0 * math.pi


@compiled()
def _travel(place, velocity, covariance, bounded, lower, upper):  # type: ignore[no-untyped-def]
    """Move for a quarter of a turn, reflected by the walls; changes its arguments."""
    left = 0.5 * math.pi
    while True:
        step, wall, limit = left, -1, 0.0
        sine, cosine = math.sin(step), math.cos(step)
        for j in bounded:
            y, v = place[j], velocity[j]
            # what is out of reach until the next wall so far needs no angles
            near = min(y, y * cosine) + min(v, 0.0) * sine < lower[j]
            if near and math.hypot(y, v) > -lower[j]:
                turn = math.acos(min(1.0, lower[j] / math.hypot(y, v)))
                time = _ahead(math.atan2(v, y) + turn, v < 0.0)
                if time < step:
                    step, wall, limit = time, j, lower[j]
                    sine, cosine = math.sin(step), math.cos(step)
            near = max(y, y * cosine) + max(v, 0.0) * sine > upper[j]
            if near and math.hypot(y, v) > upper[j]:
                turn = math.acos(max(-1.0, upper[j] / math.hypot(y, v)))
                time = _ahead(math.atan2(v, y) - turn, v > 0.0)
                if time < step:
                    step, wall, limit = time, j, upper[j]
                    sine, cosine = math.sin(step), math.cos(step)
        for k in range(len(place)):
            here = place[k]
            place[k] = here * cosine + velocity[k] * sine
            velocity[k] = velocity[k] * cosine - here * sine
        if wall < 0:
            break
        left -= step
        push = 2.0 * velocity[wall] / covariance[wall, wall]
        for k in range(len(place)):
            velocity[k] -= push * covariance[wall, k]
        place[wall] = limit
    # rounding may leave a coordinate by its wall on the far side
    for j in bounded:
        place[j] = min(max(place[j], lower[j]), upper[j])
