"""Moment rate and times of slip that comes in windows behind a rupture front."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from afterslip_solver.inversion.problem import InversionProblem
from afterslip_solver.inversion.solution import moment_weights
from afterslip_solver.model import Float

Share = Callable[[Float], Float]


def moment_rate(
    problem: InversionProblem, slip: Float, delay: Float, share: Share, times: Float
) -> Float:
    """Moment rate of several ruptures, between times.

    Each source counts along the direction in which its whole fault slips in the end
    (`moment_parts`), so that the rates sum up to the moment.

    Parameters
    ----------
    problem : for one window.
    slip : (n, n_window, n_par) float64, m, of each window.
    delay : (n_window, n_par) float64, s, when windows begin.
    share : of a window's slip that is done, of (...) s after its begin.
    times : (n_time,) float64, s, rising.

    Returns
    -------
    (n, n_time - 1) float64, N m/s, means over the intervals.
    """
    weight = moment_weights(problem, slip.sum(axis=1))
    moment = (weight[:, None, :] * slip).reshape(len(slip), -1)
    done = np.stack([share(time - delay).ravel() for time in times], axis=1)
    return np.asarray(moment @ np.diff(done, axis=1) / np.diff(times))


def share_times(
    slip: Float, delay: Float, share: Share, times: Float, shares: Float
) -> Float:
    """When sources have done shares of their slip.

    Parameters
    ----------
    slip : (n_window, n_par) float64, m.
    delay, share, times : as for `moment_rate`; times to the end of all slip.
    shares : (n_share,) float64, above 0 and below 1.

    Returns
    -------
    (n_share, n_par) float64, s, the first time of each; nan where a source does not
    slip.
    """
    done = np.stack([(slip * share(t - delay)).sum(axis=0) for t in times])
    final = slip.sum(axis=0)
    found = np.full((len(shares), slip.shape[1]), np.nan)
    for k in np.flatnonzero(np.abs(final) > 0.0):
        grown = done[:, k] / final[k]
        for row, wanted in enumerate(shares):
            after = int(np.argmax(grown >= wanted))
            if after == 0:
                continue
            low, high = grown[after - 1], grown[after]
            part = (wanted - low) / (high - low)
            step = times[after] - times[after - 1]
            found[row, k] = times[after - 1] + part * step
    return found
