"""How to solve, from what a spec says."""

from __future__ import annotations

from afterslip.schemas.solver import Solver, Times
from afterslip_solver.model import SolverSettings

# a step is kept on either side of an output time
_STEPS_PER_TIME = 2
_MODES = 64


def settings_of(times: Times, solver: Solver) -> SolverSettings:
    """Return the solver's settings.

    Parameters
    ----------
    times : output times and the end of the curve, s.
    solver : integrator, tolerances and, for stepping, its step.
    """
    return SolverSettings(
        times=tuple(float(time) for time in times.output),
        until=float(times.until),
        integrator=solver.integrator,
        step=float(solver.step or 0.0),
        predictor=solver.predictor or "galerkin",
        preconditioner=solver.preconditioner,
        tolerance=solver.tolerance,
        time_tolerance=solver.time_tolerance,
        max_modes=_modes(times, solver),
    )


def _modes(times: Times, solver: Solver) -> int:
    if solver.integrator == "spectral":
        return _MODES
    return max(_MODES, _STEPS_PER_TIME * len(times.output) + 2)


def backend_of(solver: Solver, asked: str) -> str:
    """Return the backend: the spec's wish unless it leaves the choice to the worker."""
    return asked if solver.backend == "auto" else solver.backend
