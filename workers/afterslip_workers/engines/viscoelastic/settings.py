"""How to solve, from what a spec says."""

from __future__ import annotations

from dataclasses import replace

from afterslip.physics.viscoelastic.solver import Solver
from afterslip.schemas.times import Times
from afterslip_solver.greens import Prepared, SettingsError, prepare
from afterslip_solver.mesh import placed
from afterslip_solver.model import Model, SolverSettings
from afterslip_solver.parallel import DistributedModel, prepare_on_gpus
from afterslip_workers.machine.setup_cache import SetupCache

# a step is stored on either side of an output time
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
        deterministic=solver.deterministic,
        precision=solver.precision,
    )


def stricter(settings: SolverSettings, times: int) -> SolverSettings:
    """Return settings for a group that did not converge some times before.

    Each time it may take four times the iterations, and the preconditioner is
    multigrid: the three-level scheme, the alternative, converges more slowly.
    """
    if times == 0:
        return settings
    most = settings.max_iterations * 4**times
    return replace(settings, max_iterations=most, preconditioner="multigrid")


def _modes(times: Times, solver: Solver) -> int:
    if solver.integrator == "spectral":
        return _MODES
    return max(_MODES, _STEPS_PER_TIME * len(times.output) + 2)


def backend_of(solver: Solver, asked: str) -> str:
    """Return the backend: the spec's wish unless it leaves the choice to the worker."""
    return asked if solver.backend == "auto" else solver.backend


def prepared_for(
    model: Model, settings: SolverSettings, solver: Solver, backend: str
) -> Prepared | DistributedModel:
    """Prepare a model on one device, or in parts on as many GPUs as the spec says.

    Parameters
    ----------
    backend : of `backend_of`.

    Raises
    ------
    SettingsError
        If several GPUs are asked for, but not a GPU.
    """
    if solver.gpus > 1 and backend == "cpu":
        message = f"solver.gpus is {solver.gpus}, but the backend here is cpu"
        raise SettingsError(message)
    on_earth = placed(model)
    if solver.gpus > 1:
        return prepare_on_gpus(on_earth, settings, solver.gpus, SetupCache.here())
    return prepare(on_earth, settings, backend, SetupCache.here())
