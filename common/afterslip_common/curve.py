"""Evaluation of a relaxation curve at any time from what is stored of it.

A source's displacement is u(t) = u_0 + sum_j y_j(t) v_j with the elastic response u_0.
The v_j follow from the Lanczos recurrence of the creep strain's operator A, whose small
matrix T gives y(t) = |c_0| t phi_1(-t T) e_1, phi_1(z) = (e^z - 1)/z (Hochbruck and
Lubich 1997 for the error of such functions). Shift-invert stores the matrix S of
(1 + gamma A)^-1 instead: then T = (S^-1 - 1)/gamma, and its v_j belong to S^-1 y.
Curves that were stepped are interpolated between their steps.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Float = NDArray[np.float64]
Int = NDArray[np.int64]


def tridiagonal(recurrence: ArrayLike) -> Float:
    """Return the matrices T, or S of shift-invert, (..., n_mode, n_mode) float64.

    Parameters
    ----------
    recurrence : as in `mode_weights`.
    """
    pairs = np.asarray(recurrence, dtype=np.float64)
    every = np.arange(pairs.shape[-2])
    matrix = np.zeros((*pairs.shape[:-1], len(every)))
    matrix[..., every, every] = pairs[..., 0]
    matrix[..., every[1:], every[:-1]] = pairs[..., :-1, 1]
    matrix[..., every[:-1], every[1:]] = pairs[..., :-1, 1]
    return matrix


def mode_weights(
    recurrence: ArrayLike, start_norm: ArrayLike, shift: float, times: ArrayLike
) -> Float:
    """Return the weights of the modes after the elastic one, of one curve or several.

    Parameters
    ----------
    recurrence : (..., n_mode, 2) float64, (alpha, beta) of the modes after the elastic
        one; beta couples a mode with the next.
    start_norm : (...,) norm of the first creep rate.
    shift : gamma of shift-invert, s; 0 for the polynomial scheme.
    times : (n_time,) s.

    Returns
    -------
    (..., n_time, n_mode) float64.
    """
    norm = np.asarray(start_norm, dtype=np.float64)[..., None, None]
    times = np.atleast_1d(np.asarray(times, dtype=np.float64))
    matrix = tridiagonal(recurrence)
    if matrix.shape[-1] == 0:
        return np.zeros((*matrix.shape[:-2], len(times), 0))
    values, vectors = np.linalg.eigh(matrix)
    rates, factors = values, np.ones_like(values)
    if shift > 0.0:
        # rounding may leave a tiny negative value: an infinitely fast mode
        values = np.maximum(values, 1e-14)
        rates, factors = (1.0 / values - 1.0) / shift, 1.0 / values
    # nothing grows: a negative rate is rounding, too
    rates = np.maximum(rates, 0.0)
    decay = times[:, None] * rates[..., None, :]
    small = decay < 1e-8
    safe = np.where(small, 1.0, decay)
    growth = times[:, None] * np.where(
        small, 1.0 - 0.5 * decay, -np.expm1(-safe) / safe
    )
    first = (factors * vectors[..., 0, :])[..., None, :]
    weights: Float = norm * (growth * first) @ vectors.swapaxes(-1, -2)
    return weights


def spectral_weights(
    recurrence: ArrayLike, start_norm: float, shift: float, times: ArrayLike
) -> Float:
    """Return the weights of all modes of a spectral curve, as they are stored.

    Parameters
    ----------
    recurrence : (m + 1, 2) float64; row 0 belongs to the elastic response and is not
        used, the others are those of `mode_weights`.
    start_norm, shift, times : as in `mode_weights`.

    Returns
    -------
    (n_time, m + 1) float64, the first column 1.
    """
    after = mode_weights(
        np.asarray(recurrence, dtype=np.float64)[1:], start_norm, shift, times
    )
    return np.hstack([np.ones((len(after), 1)), after])


def step_intervals(step_times: ArrayLike, times: ArrayLike) -> tuple[Int, Float]:
    """Return where times lie between steps, for linear interpolation.

    Parameters
    ----------
    step_times : (n_step,) s, increasing, at least two.
    times : (n_time,) s, between the first and the last step.

    Returns
    -------
    (n_time,) int64, the step that ends each time's interval, and (n_time,) float64,
    its weight; the step before has the rest.
    """
    steps = np.asarray(step_times, dtype=np.float64)
    t = np.atleast_1d(np.asarray(times, dtype=np.float64))
    after = np.clip(np.searchsorted(steps, t), 1, len(steps) - 1)
    span = steps[after] - steps[after - 1]
    return after, np.clip((t - steps[after - 1]) / span, 0.0, 1.0)


def step_weights(step_times: ArrayLike, times: ArrayLike) -> Float:
    """Return the weights of a curve's steps.

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
    if len(steps) == 1:
        found[:, 0] = 1.0
        return found
    after, part = step_intervals(steps, t)
    rows = np.arange(len(t))
    found[rows, after] = part
    found[rows, after - 1] = 1.0 - part
    return found
