"""Which settings make sense, and what follows from them."""

from __future__ import annotations

import numpy as np

from afterslip_solver.model import SolverSettings

# measured: below this ratio of curve to shortest relaxation time the polynomial
# scheme needs about as few solves, and no second operator
POLYNOMIAL_UP_TO = 2.0


class SettingsError(ValueError):
    """The solver's settings make no sense together; the message says why."""


def check_settings(settings: SolverSettings) -> None:
    """Raise `SettingsError` for settings that cannot be followed."""
    times = np.asarray(settings.times, dtype=np.float64)
    if not np.isfinite(times).all() or (times < 0).any():
        raise SettingsError("output times must be finite and not negative")
    if not np.isfinite(settings.until) or settings.until < 0:
        raise SettingsError("until must be finite and not negative")
    if not 0 < settings.tolerance < 1 or not 0 < settings.time_tolerance < 1:
        raise SettingsError("tolerances must lie between 0 and 1")
    if settings.max_modes < 2 or settings.max_iterations < 1:
        raise SettingsError("max_modes must be at least 2, max_iterations at least 1")
    stepped = settings.integrator == "stepping" and settings.until > 0
    if stepped and not 0 < settings.step <= settings.until:
        raise SettingsError("stepping needs a step above 0 and at most until")


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
