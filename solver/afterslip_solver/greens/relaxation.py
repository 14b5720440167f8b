"""Creep on top of an elastic model, and its integration in time."""

from __future__ import annotations

from copy import copy
from typing import Any

from afterslip_solver.greens.elastic_model import ElasticModel
from afterslip_solver.greens.exponential_step import ExponentialStep
from afterslip_solver.greens.source import Offsets
from afterslip_solver.greens.spectral import Spectral
from afterslip_solver.greens.stepping import Stepping
from afterslip_solver.greens.time_parallel import TimeParallel
from afterslip_solver.greens.time_plan import TimePlan, plan_time
from afterslip_solver.model import SolverSettings
from afterslip_solver.operators import Creep, Resolvent

Integrator = Spectral | Stepping


class Relaxation:
    """How an elastic model relaxes after slip.

    Parameters
    ----------
    elastic : the model. settings : that `check_settings` has passed.
    creep_kind : class of the operator on creep strains.

    Attributes
    ----------
    elastic : as given. creep : the operator. plan : how time is treated.
    integrator : of the plan; None where the response is elastic only.
    """

    def __init__(
        self,
        elastic: ElasticModel,
        settings: SolverSettings,
        creep_kind: type[Creep] = Creep,
    ) -> None:
        self.elastic = elastic
        backend, space = elastic.backend, elastic.space
        materials, order = elastic.model.materials, space.element_order
        branches = [branch.at(order) for branch in materials.branches]
        self.creep = creep_kind(backend, space, elastic.mu, branches)
        touching = elastic.loads.touching.items()
        self._rows = {
            name: backend.asarray(self.creep.rows(elements))
            for name, elements in touching
        }
        self._plan(settings)

    def adapted(
        self, settings: SolverSettings, twin: ElasticModel | None = None
    ) -> Relaxation:
        """Return the same under other settings; what they share is not redone.

        Parameters
        ----------
        twin : of the elastic model, to be solved with instead.
        """
        other = copy(self)
        other.elastic = twin or self.elastic
        other._plan(settings)  # noqa: SLF001
        return other

    @property
    def bytes(self) -> int:
        """Memory on the backend beside the elastic model's."""
        own = self.creep.bytes
        if self.integrator and self.integrator.system is not self.elastic.system:
            own += self.integrator.system.bytes
        return own

    def strain(self, u: Any, offsets: dict[str, Offsets]) -> Any:
        """Deviatoric strain of the elastic solution, offsets of slip included."""
        out = self.creep.strain(u)
        backend = self.elastic.backend
        for name, own in offsets.items():
            rows = self._rows[name][own.at]
            creeps = backend.xp.flatnonzero(rows >= 0)
            if len(creeps):
                backend.add_offset_strain(
                    self.creep.tets, rows[creeps], own.values[creeps], out
                )
        return out

    def _plan(self, settings: SolverSettings) -> None:
        self.plan = plan_time(self.creep, settings)
        self.integrator = self._make(self.plan, settings)

    def _make(self, plan: TimePlan, settings: SolverSettings) -> Integrator | None:
        backend, creep = self.elastic.backend, self.creep
        if plan.scheme == "elastic":
            return None
        if plan.scheme == "stepping":
            local = ExponentialStep(creep, plan.step)
            system = self.elastic.softened(creep.which, local.softened)
            kind = TimeParallel if settings.predictor == "four_steps" else Stepping
            return kind(backend, creep, local, system, plan, settings.predictor)
        system = self.elastic.system
        if plan.scheme == "shift_invert":
            softened = Resolvent(creep, plan.shift).softened
            system = self.elastic.softened(creep.which, softened)
        return Spectral(backend, creep, system, plan, settings.time_tolerance)
