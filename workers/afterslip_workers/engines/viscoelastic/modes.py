"""How many modes a source will have, known before anything is solved."""

from __future__ import annotations

from dataclasses import dataclass

from afterslip.physics.viscoelastic.store import Integrator
from afterslip_solver.greens.time_plan import plan_steps, plan_time
from afterslip_solver.model import Model, SolverSettings


@dataclass(frozen=True, slots=True)
class Modes:
    """Second axis of the responses.

    Attributes
    ----------
    integrator : of the store; an elastic model has the one mode of "spectral".
    count : largest number of modes of a source.
    step_times : (count,) s, of stepping; None otherwise.
    """

    integrator: Integrator
    count: int
    step_times: tuple[float, ...] | None = None


def modes_of(model: Model, settings: SolverSettings) -> Modes:
    """Say how many modes a source of this model can have."""
    plan = plan_time(model.materials.rates, settings)
    if plan.scheme == "elastic":
        return Modes("spectral", 1)
    if plan.scheme == "stepping":
        return steps_of(settings)
    return Modes("spectral", plan.limit + 1)


def steps_of(settings: SolverSettings) -> Modes:
    """Return the steps that a source records where time is stepped through."""
    plan = plan_steps(settings)
    steps = tuple(plan.step * number for number in plan.recorded())
    return Modes("stepping", len(steps), steps)
