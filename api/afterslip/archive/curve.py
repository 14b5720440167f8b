"""From a few modes to the displacement at any time.

A source's displacement is u(t) = sum of coefficient_j(t) times mode j. Mode 0 is the
elastic response with coefficient 1; the others follow from the small matrix T of the
Lanczos recurrence (Hochbruck & Lubich 1997 for the error of such functions).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Float = NDArray[np.float64]


def curve_coefficients(
    recurrence: ArrayLike, start_norm: float, shift: float, times: ArrayLike
) -> Float:
    """Return what each mode of a spectral source contributes at given times.

    Parameters
    ----------
    recurrence : (m + 1, 2) float64; row j is (alpha_j, beta_j), beta_j couples modes
        j and j + 1; row 0 is not used.
    start_norm : norm of the first creep rate.
    shift : s, gamma of shift-invert; 0: polynomial.
    times : (n_time,) s.

    Returns
    -------
    (n_time, m + 1) float64, the first column 1.

    Notes
    -----
    Polynomial: y(t) = ‖c0‖ t phi1(−t T) e1 with phi1(z) = (e^z − 1)/z. Shift-invert
    has the recurrence of (I + gamma A)⁻¹, whose matrix S gives T = (S⁻¹ − I)/gamma,
    and its modes hold S times what they would be, so z(t) = S⁻¹ y(t).
    """
    pairs = np.asarray(recurrence, dtype=np.float64)
    t = np.atleast_1d(np.asarray(times, dtype=np.float64))[:, None]
    m = len(pairs) - 1
    found = np.ones((len(t), m + 1))
    if m == 0:
        return found
    alpha, beta = pairs[1:, 0], pairs[1:-1, 1]
    matrix = np.diag(alpha) + np.diag(beta, 1) + np.diag(beta, -1)
    value, vector = np.linalg.eigh(matrix)
    growth = t * _phi1(value * t) if shift == 0.0 else _shifted(value, shift, t)
    found[:, 1:] = start_norm * (growth * vector[0]) @ vector.T
    return found


def step_coefficients(step_times: ArrayLike, times: ArrayLike) -> Float:
    """Return the weights of steps for linear interpolation in time.

    Parameters
    ----------
    step_times : (n_step,) s, increasing.
    times : (n_time,) s, between the first and the last step.

    Returns
    -------
    (n_time, n_step) float64; a row is 1 at a step's own time.
    """
    steps = np.asarray(step_times, dtype=np.float64)
    t = np.atleast_1d(np.asarray(times, dtype=np.float64))
    found = np.zeros((len(t), len(steps)))
    rows = np.arange(len(t))
    if len(steps) == 1:
        found[:, 0] = 1.0
        return found
    upper = np.clip(np.searchsorted(steps, t), 1, len(steps) - 1)
    length = steps[upper] - steps[upper - 1]
    weight = np.clip((t - steps[upper - 1]) / length, 0.0, 1.0)
    found[rows, upper] = weight
    found[rows, upper - 1] = 1.0 - weight
    return found


def _phi1(z: Float) -> Float:
    """Return (1 − e^−z)/z, which is 1 at z = 0."""
    tiny = np.abs(z) < 1e-12
    safe = np.where(tiny, 1.0, z)
    return np.where(tiny, 1.0 - z / 2.0, -np.expm1(-safe) / safe)


def _shifted(value: Float, shift: float, t: Float) -> Float:
    """Return t phi1(−t T)/S for eigenvalues of S, without overflow at either end."""
    s = np.clip(value, 1e-30, 1.0)
    rate = (1.0 / s - 1.0) / shift
    fast = s < 0.5
    slow_part = t * _phi1(np.where(fast, 0.0, rate) * t) / np.where(fast, 1.0, s)
    fast_part = -shift * np.expm1(-rate * t) / np.where(fast, 1.0 - s, 1.0)
    return np.where(fast, fast_part, slow_part)
