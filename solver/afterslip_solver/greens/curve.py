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


def _between_steps(response: Float, steps: Float, times: Float) -> Float:
    if len(steps) == 1:
        return np.repeat(response[:, :1], len(times), axis=1)
    after, part = step_intervals(steps, times)
    part = part[None, :, None, None]
    return (1.0 - part) * response[:, after - 1] + part * response[:, after]
