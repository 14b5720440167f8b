"""How slip or moment grows with time after the event, from 0 to 1."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Float = NDArray[np.float64]

_POINTS, _WEIGHTS = np.polynomial.legendre.leggauss(48)


@dataclass(frozen=True, slots=True)
class SourceTime:
    """A source-time function.

    Attributes
    ----------
    fraction : from times (n,), s, to the share of slip that is done.
    end : s, when nearly all of it is done.
    """

    fraction: Callable[[Float], Float]
    end: float

    def __call__(self, times: ArrayLike) -> Float:
        """Return the share at (n,) times, s; 0 before the event."""
        t = np.atleast_1d(np.asarray(times, dtype=np.float64))
        return np.where(t > 0.0, self.fraction(np.maximum(t, 0.0)), 0.0)

    def beyond(self, frequency: float) -> float:
        """Largest amplitude of the rate's spectrum above a frequency, over that at 0.

        Of the spectrum up to 16 times the frequency, from samples of the share.
        """
        step = 1.0 / (64.0 * frequency)
        t = np.arange(0.0, 2.0 * self.end + 4.0 / frequency, step)
        rate = np.diff(self(t))
        spectrum = np.abs(np.fft.rfft(rate, 4 * len(rate)))
        above = np.fft.rfftfreq(4 * len(rate), step)
        chosen = (above >= frequency) & (above <= 16.0 * frequency)
        return float(spectrum[chosen].max() / spectrum[0])


def smooth_step(rise: float) -> SourceTime:
    """Rate of a raised cosine, 1 - cos(2 pi t / rise), over ``rise`` s."""

    def fraction(t: Float) -> Float:
        x = np.minimum(t / rise, 1.0)
        return np.asarray(x - np.sin(2.0 * np.pi * x) / (2.0 * np.pi))

    return SourceTime(fraction, rise)


def brune(tau: float) -> SourceTime:
    """Rate t/tau^2 exp(-t/tau), corner frequency 1/(2 pi tau): Brune (1970)."""

    def fraction(t: Float) -> Float:
        return np.asarray(-np.expm1(-t / tau) - t / tau * np.exp(-t / tau))

    # 1e-4 is left then
    return SourceTime(fraction, 11.8 * tau)


def yoffe(rise: float, acceleration: float) -> SourceTime:
    """Yoffe's slip rate smoothed by a triangle: Tinti et al. (2005), eq. 3-6.

    Parameters
    ----------
    rise : s, of the Yoffe function, tau_R.
    acceleration : s, half of the triangle's duration, tau_S; slip ends at
        rise + 2 acceleration.
    """

    def bare(t: Float) -> Float:
        # integral of 2/(pi tau_R) sqrt((tau_R - t)/t)
        x = np.clip(t / rise, 0.0, 1.0)
        root = np.arcsin(np.sqrt(x))
        return np.asarray((np.sqrt(x * (1.0 - x)) + root) * 2.0 / np.pi)

    def fraction(t: Float) -> Float:
        total = np.zeros(t.shape)
        for half in (0.0, 1.0):
            u = 0.5 * (_POINTS + 1.0) + half  # of the triangle, 0 to 2
            weight = 0.5 * _WEIGHTS * (u if half == 0.0 else 2.0 - u)
            total += bare(t[..., None] - acceleration * u) @ weight
        return total

    return SourceTime(fraction, rise + 2.0 * acceleration)


def tabulated(times: ArrayLike, shares: ArrayLike) -> SourceTime:
    """Linear between the rows of a table.

    Parameters
    ----------
    times : (n,) s, rising from 0. shares : (n,) from 0 to 1.

    Raises
    ------
    ValueError
        The times do not rise from 0, or the shares do not go from 0 to 1.
    """
    t, s = np.asarray(times, dtype=np.float64), np.asarray(shares, dtype=np.float64)
    if t.shape != s.shape or t.ndim != 1 or len(t) < 2:
        raise ValueError("needs two columns, time in s and share of slip, and two rows")
    if not (np.isfinite(t).all() and np.isfinite(s).all()):
        raise ValueError("has a number that is not finite")
    if t[0] != 0.0 or (np.diff(t) <= 0.0).any():
        raise ValueError("times must begin with 0 and rise")
    if abs(s[0]) > 1e-6 or abs(s[-1] - 1.0) > 1e-6:
        raise ValueError(
            f"shares must go from 0 to 1, these go from {s[0]:g} to {s[-1]:g}: divide "
            "by the last one"
        )
    return SourceTime(lambda at: np.interp(at, t, s), float(t[-1]))
