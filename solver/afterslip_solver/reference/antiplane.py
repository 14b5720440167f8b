"""Infinitely long strike-slip fault in an elastic plate over a Maxwell half-space.

Nur, A. and Mavko, G. (1974), Postseismic viscoelastic rebound, Science 183, 204-206;
Savage, J. C. and Prescott, W. H. (1978), Asthenosphere readjustment and the earthquake
cycle, J. Geophys. Res. 83, 3369-3376. Plate and half-space have the same rigidity. By
the method of images each image of the fault is weighted by a power of the reflection
coefficient; with mu(p) = mu p / (p + mu/eta) that is 1 / (1 + tau p), tau = 2 eta / mu,
whose nth power is, after a step, the incomplete gamma function P(n, t / tau).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import gammainc

from afterslip_solver.model import Float


@dataclass(frozen=True, slots=True)
class LongFault:
    """A vertical fault that slips from the surface to a depth.

    Attributes
    ----------
    depth : m, lower edge of the slip, at most ``plate``.
    plate : m, thickness of the elastic plate.
    tau : s, 2 viscosity / rigidity.
    """

    depth: float
    plate: float
    tau: float

    def step(self, x: Float, times: Float, images: int = 400) -> Float:
        """Displacement along strike after unit slip at t = 0 that then stays.

        Parameters
        ----------
        x : (n_x,) m, distance from the fault, not 0. times : (n_time,) s.
        images : terms of the series; those beyond times / tau count for little.

        Returns
        -------
        (n_time, n_x) m per metre of slip, positive at x > 0 for left-lateral slip.
        """
        return self._sum(x, times, gammainc, images)

    def ramp(self, x: Float, times: Float, images: int = 400) -> Float:
        """Displacement after slip at unit rate from t = 0 on: the integral of `step`.

        Returns
        -------
        (n_time, n_x) m per m/s of slip rate. The integral of P(n, t) from 0 is
        t P(n, t) - n P(n + 1, t).
        """

        def integral(n: int, t: Float) -> Float:
            return np.asarray(t * gammainc(n, t) - n * gammainc(n + 1, t))

        times = np.asarray(times, dtype=np.float64)
        later = self._sum(x, times, integral, images) - self._elastic(x)[None]
        return np.asarray(self.tau * later + times[:, None] * self._elastic(x)[None])

    def cycles(self, x: Float, after: Float, period: float, count: int) -> Float:
        """Motion after the last of ``count`` earthquakes, relative to that moment.

        Earthquakes of slip 1 m, a period apart, the first at a period after the plates
        began to move; the fault below the slip creeps with the plates. Block motion
        (half a unit of slip per period on each side) plus earthquakes less steady slip
        at the same mean rate on the same part of the fault.

        Parameters
        ----------
        after : (n_time,) s, times since the last earthquake, below ``period``.

        Returns
        -------
        (n_time, n_x) m per metre of slip in an earthquake.
        """
        after = np.asarray(after, dtype=np.float64)

        def at(t: Float) -> Float:
            total = (t[:, None] * 0.5 * np.sign(x) - self.ramp(x, t)) / period
            for k in range(1, count + 1):
                total = total + self.step(x, t - k * period)
            return np.asarray(total)

        return at(count * period + after) - at(np.array([count * period]))

    def _elastic(self, x: Float) -> Float:
        return np.asarray(np.arctan(self.depth / np.asarray(x)) / np.pi)

    def _sum(
        self, x: Float, times: Float, weight: Callable[[int, Float], Float], images: int
    ) -> Float:
        """Elastic part, and pairs of images weighted by functions of t / tau."""
        x, scaled = np.asarray(x), np.asarray(times, dtype=np.float64) / self.tau
        total = np.repeat(self._elastic(x)[None], len(scaled), axis=0)
        for n in range(1, images + 1):
            far = 2.0 * n * self.plate
            pair = np.arctan((self.depth + far) / x) + np.arctan((self.depth - far) / x)
            total += weight(n, scaled)[:, None] * pair[None] / np.pi
        return np.asarray(total)
