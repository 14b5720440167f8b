"""Displacement of a solved group at any time."""

from __future__ import annotations

import numpy as np

from afterslip_common.curve import mode_weights, step_intervals
from afterslip_solver.model import Float, GroupResult


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


def curve_weights(result: GroupResult, times: Float) -> Float:
    """Weights of what a solved group recorded in the displacement at any times.

    Returns
    -------
    (n_lane, n_time, n_mode) float64; a lane's modes that do not exist weigh nothing.
    """
    times = np.asarray(times, dtype=np.float64)
    out = np.zeros((len(result.response), len(times), result.response.shape[1]))
    if len(result.step_times) > 1:
        after, part = step_intervals(result.step_times, times)
        rows = np.arange(len(times))
        out[:, rows, after - 1] = 1.0 - part
        out[:, rows, after] += part
        return out
    out[:, :, 0] = 1.0
    if len(result.step_times):
        return out
    for lane, count in enumerate(result.mode_count):
        known = result.recurrence[lane, 1:count], float(result.start_norm[lane])
        out[lane, :, 1:count] = mode_weights(*known, float(result.shift[lane]), times)
    return out


def _between_steps(response: Float, steps: Float, times: Float) -> Float:
    if len(steps) == 1:
        return np.repeat(response[:, :1], len(times), axis=1)
    after, part = step_intervals(steps, times)
    part = part[None, :, None, None]
    return (1.0 - part) * response[:, after - 1] + part * response[:, after]
