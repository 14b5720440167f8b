"""Evaluation of a relaxation curve at any time from its modes.

With the creep strain's Lanczos matrix T the curve is
u(t) = u_0 + sum_j y_j(t) v_j, y(t) = |c_0| t phi_1(-t T) e_1, phi_1(z) = (e^z - 1)/z.
Shift-invert keeps the Lanczos matrix S of (1 + gamma A)^-1 instead: then
T = (S^-1 - 1)/gamma, and its v_j belong to S^-1 y.
"""

from __future__ import annotations

import numpy as np

from afterslip_solver.model import Float, GroupResult


def mode_weights(
    recurrence: Float, start_norm: float, shift: float, times: Float
) -> Float:
    """Factors of the modes at each time.

    Parameters
    ----------
    recurrence : (n_mode, 2) float64, (alpha, beta) of the modes after the elastic
        one; beta couples a mode with the next.
    start_norm : norm of the first creep rate.
    shift : gamma of shift-invert, s; 0 for the polynomial scheme.
    times : (n_time,) s.

    Returns
    -------
    (n_time, n_mode) float64.
    """
    times = np.asarray(times, dtype=np.float64)
    alpha, beta = recurrence[:, 0], recurrence[:-1, 1]
    if len(alpha) == 0:
        return np.zeros((len(times), 0))
    matrix = np.diag(alpha) + np.diag(beta, 1) + np.diag(beta, -1)
    values, vectors = np.linalg.eigh(matrix)
    rates, factors = values, np.ones_like(values)
    if shift > 0.0:
        # rounding may leave a tiny negative value: an infinitely fast mode
        values = np.maximum(values, 1e-14)
        rates, factors = (1.0 / values - 1.0) / shift, 1.0 / values
    rates = np.maximum(rates, 0.0)
    decay = times[:, None] * rates[None, :]
    small = decay < 1e-8
    safe = np.where(small, 1.0, decay)
    growth = times[:, None] * np.where(
        small, 1.0 - 0.5 * decay, -np.expm1(-safe) / safe
    )
    weights: Float = start_norm * (growth * (factors * vectors[0])[None, :]) @ vectors.T
    return weights


def evaluate_curve(result: GroupResult, times: Float) -> Float:
    """Displacement of the trace at any times.

    Parameters
    ----------
    result : of `Prepared.solve`.
    times : (n_time,) s. Stepping results are interpolated between recorded steps.

    Returns
    -------
    (n_lane, n_time, n_trace, 3) float64, m.
    """
    times = np.asarray(times, dtype=np.float64)
    response = result.response
    if len(result.step_times):
        return _between_steps(response, result.step_times, times)
    out = np.repeat(response[:, :1], len(times), axis=1)
    for lane, count in enumerate(result.mode_count):
        weights = mode_weights(
            result.recurrence[lane, 1:count],
            float(result.start_norm[lane]),
            float(result.shift[lane]),
            times,
        )
        out[lane] += np.einsum("tm,mnc->tnc", weights, response[lane, 1:count])
    return out


def _between_steps(response: Float, steps: Float, times: Float) -> Float:
    after = np.clip(np.searchsorted(steps, times), 1, max(len(steps) - 1, 1))
    if len(steps) == 1:
        return np.repeat(response[:, :1], len(times), axis=1)
    span = steps[after] - steps[after - 1]
    part = ((times - steps[after - 1]) / span)[None, :, None, None]
    return (1.0 - part) * response[:, after - 1] + part * response[:, after]
