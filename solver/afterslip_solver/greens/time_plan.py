"""How a group is solved in time: the scheme, its steps and its shift.

The one place where this is decided, from how fast a body relaxes and the settings.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, inf, log
from typing import Literal

import numpy as np

from afterslip_solver.model import Float, SolverSettings
from afterslip_solver.rheology import RelaxingBody

Scheme = Literal["elastic", "polynomial", "shift_invert", "stepping"]

# measured: below this ratio of curve to shortest relaxation time the polynomial
# scheme needs about as few solves, and no second operator
_POLYNOMIAL_UP_TO = 2.0


@dataclass(frozen=True, slots=True)
class TimePlan:
    """A decision for all groups of a model.

    Attributes
    ----------
    scheme : how time is treated.
    until : s, last time; 0 where only the elastic response is asked for.
    times : (n_time,) s, positive output times and the last time, ascending.
    span : length of the curve in shortest relaxation times; 0 for stepping.
    shift : s, gamma of shift-invert; else 0.
    step : s, of stepping; else 0. n_step : number of steps.
    limit : number of modes, or of recorded steps, at most.
    """

    scheme: Scheme
    until: float
    times: Float
    limit: int
    span: float = 0.0
    shift: float = 0.0
    step: float = 0.0
    n_step: int = 0

    def recorded(self) -> list[int]:
        """Numbers of the steps that stepping records."""
        return recorded_steps(self.times, self.step, self.n_step, self.limit)

    def modes(self, tolerance: float) -> int:
        """Lanczos modes, beside the elastic one, that do for a curve; at most `limit`.

        By a bound of the error of Lanczos in exp(-t A), rates of A from 0 to span / t
        (Hochbruck & Lubich 1997, SIAM J. Numer. Anal. 34, 1911, theorem 2). One or two
        fewer were taken. Shift-invert takes fewer than this where it is chosen, and
        below that no more than there.

        Parameters
        ----------
        tolerance : largest error over largest change of the curve.
        """
        span = self.span
        if self.scheme == "shift_invert":
            span = max(span, _POLYNOMIAL_UP_TO)
        return next(
            (m for m in range(1, self.limit) if lanczos_error(m, span) <= tolerance),
            self.limit,
        )


def lanczos_error(steps: int, span: float) -> float:
    """Bound of the error after some Lanczos steps, see `TimePlan.modes`."""
    quarter = span / 4.0
    if steps >= 2.0 * quarter:
        share = steps * log(exp(1.0) * quarter / steps) - quarter
        return 10.0 / quarter * exp(share)
    if steps**2 >= 4.0 * quarter:
        return 10.0 * exp(-(steps**2) / (5.0 * quarter))
    return inf


def plan_time(body: RelaxingBody, settings: SolverSettings) -> TimePlan:
    """Decide how the groups of a model are solved in time.

    Parameters
    ----------
    body : how fast stress relaxes in the model.
    settings : that `check_settings` has passed.
    """
    until = _until(settings)
    if until == 0.0 or not body.anywhere:
        return TimePlan("elastic", until, _times(settings), settings.max_modes)
    if settings.integrator == "stepping":
        return plan_steps(settings)
    span = until * body.fastest
    wanted = settings.scheme
    if wanted == "auto":
        wanted = "shift_invert" if span > _POLYNOMIAL_UP_TO else "polynomial"
    shift = 0.0
    if wanted == "shift_invert":
        shift = best_shift(until, 1.0 / body.softening(0.1 * until))
    times, limit = _times(settings), settings.max_modes
    return TimePlan(wanted, until, times, limit, span=span, shift=shift)


def plan_steps(settings: SolverSettings) -> TimePlan:
    """Plan of stepping, which is the same for all models that creep."""
    until = _until(settings)
    n_step = int(np.ceil(until / settings.step - 1e-9))
    times, limit = _times(settings), settings.max_modes
    step = until / n_step
    return TimePlan("stepping", until, times, limit, step=step, n_step=n_step)


def _until(settings: SolverSettings) -> float:
    return max(settings.until, *settings.times, 0.0)


def _times(settings: SolverSettings) -> Float:
    times = np.unique([*settings.times, _until(settings)])
    return np.asarray(times[times > 0.0])


def best_shift(until: float, shortest: float) -> float:
    """Shift gamma of the shift-invert scheme, s.

    A tenth of the curve needs fewest solves, but a large shift against the shortest
    relaxation time makes K^v nearly incompressible, and its solves expensive. Measured
    at until / shortest of 2, 21, 211 and 1054.

    Parameters
    ----------
    until : s, last time. shortest : s, relaxation time.
    """
    return min(0.1 * until, 0.45 * float(np.sqrt(until * shortest)))


def recorded_steps(times: Float, step: float, n_step: int, limit: int) -> list[int]:
    """Choose the steps that are recorded: around the output times, then others.

    Parameters
    ----------
    times : s, output times. step : s. n_step : last step.
    limit : number of steps at most.
    """
    position = np.clip(np.asarray(times) / step, 0, n_step)
    nearest = np.round(position).astype(int)
    wanted = [int(k) for k in nearest]
    away = np.abs(position - nearest) > 1e-6
    wanted += [int(k) for k in np.floor(position[away])]
    wanted += [int(k) for k in np.ceil(position[away])]
    # early steps change most: spread the others evenly in the square root of time
    filling = np.unique(
        np.round(n_step * np.linspace(0.0, 1.0, limit) ** 2).astype(int)
    )
    keep = list(dict.fromkeys([0, n_step, *wanted]))[:limit]
    for k in filling:
        if len(keep) >= limit:
            break
        if int(k) not in keep:
            keep.append(int(k))
    return sorted(keep)
