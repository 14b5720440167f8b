"""The shape of a campaign's store, known before anything is solved."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from afterslip.archive import Sizes
from afterslip.archive.layout import Integrator
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


@dataclass(frozen=True, slots=True)
class Template:
    """What a group needs to know of its campaign's store.

    Attributes
    ----------
    crc32c : whether its chunks end in a checksum, as those of 0.1.0 do not.
    """

    sizes: Sizes
    integrator: Integrator
    crc32c: bool = True

    def as_json(self) -> dict[str, Any]:
        """Return plain values, for ``model.json``."""
        return asdict(self)


def template_of(facts: dict[str, Any]) -> Template:
    """Read the template from a campaign's ``model.json``."""
    crc32c = bool(facts.get("crc32c", False))
    return Template(Sizes(**facts["sizes"]), facts["integrator"], crc32c)
