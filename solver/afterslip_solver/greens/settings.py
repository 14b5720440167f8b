"""Which settings make sense."""

from __future__ import annotations

import numpy as np

from afterslip_common.errors import InputError
from afterslip_solver.model import SolverSettings


class SettingsError(InputError, ValueError):
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
