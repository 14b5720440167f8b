"""Time stepping of creep, exact for a constant strain rate in each step.

Algorithm 1 of Murakami et al. (2023) in its exponential form (`ExponentialStep`):
second order in dt and stable for any dt.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from afterslip_solver.backend import LANES, Backend
from afterslip_solver.greens.accuracy import StepError
from afterslip_solver.greens.checkpoint import State
from afterslip_solver.greens.elastic_model import Solvable
from afterslip_solver.greens.exponential_step import ExponentialStep
from afterslip_solver.greens.group_solve import GroupSolve, Modes
from afterslip_solver.greens.predictor import Predictor, make_predictor
from afterslip_solver.greens.time_plan import TimePlan
from afterslip_solver.model import Float
from afterslip_solver.operators import Creep


@dataclass(slots=True)
class _March:
    """All that changes from step to step."""

    modes: Modes
    stress: Any
    total: Any
    remainder: Any
    predictor: Predictor
    error: StepError
    reference: Float | None = None
    step: int = 0

    def packed(self, backend: Backend) -> State:
        reference = np.zeros(LANES) if self.reference is None else self.reference
        return {
            **self.modes.packed(),
            **self.predictor.packed(),
            **self.error.packed(),
            "stress": backend.to_host(self.stress),
            "total": backend.to_host(self.total),
            "remainder": backend.to_host(self.remainder),
            "reference": reference,
            "step": np.array(self.step),
        }


@dataclass(frozen=True, slots=True)
class Stepping:
    """Exponential stepping with a predictor, ready for many groups.

    Attributes
    ----------
    local : the step at a point. system : its K^v. plan : the steps.
    """

    backend: Backend
    creep: Creep
    local: ExponentialStep
    system: Solvable
    plan: TimePlan
    predictor: str

    def integrate(self, run: GroupSolve, elastic: Float, strain: Any) -> Modes:
        """Step from the elastic solution; see `Spectral.integrate`."""
        # sum of increments on all nodes, FP64, and what the solves left unbalanced
        total = self.backend.xp.zeros(self.system.operator.shape)
        march = _March(
            Modes([elastic], step_times=[0.0]),
            self.local.start(strain),
            total,
            self.backend.xp.zeros_like(total),
            make_predictor(self.predictor, self.system.operator),
            self._error(),
        )
        return self._go_on(run, march)

    def resume(self, run: GroupSolve, state: State) -> Modes:
        """Go on from a checkpoint."""
        names = ("stress", "total", "remainder")
        vectors = [self.backend.asarray(state[name].copy()) for name in names]
        predictor = make_predictor(self.predictor, self.system.operator)
        predictor.restore(state)
        error = self._error()
        error.restore(state)
        march = _March(
            Modes.unpacked(state, 0.0),
            vectors[0],
            vectors[1],
            vectors[2],
            predictor,
            error,
            state["reference"].copy() if int(state["step"]) else None,
            int(state["step"]),
        )
        return self._go_on(run, march)

    def _go_on(self, run: GroupSolve, march: _March) -> Modes:
        backend, local, modes = self.backend, self.local, march.modes
        plan, recorded = self.plan, set(self.plan.recorded())
        run.expected = len(run.history) + plan.n_step - march.step
        while march.step < plan.n_step:
            run.maybe_save(lambda: march.packed(backend))
            f = local.load(march.stress)
            self.system.operator.hold(f)
            # what the last solve left unbalanced is not forgotten
            f += march.remainder
            if march.reference is None:
                march.reference = np.sqrt(backend.dot(f, f))
            guess = march.predictor.guess(f)
            result = run.solve(self.system, f, "stepping", guess, march.reference)
            if not run.going():
                break
            march.predictor.learn(result.values)
            run.predictor_bytes = march.predictor.bytes
            march.remainder = result.remainder
            march.total += result.values
            local.follow(march.stress, result.values)
            march.error.add(run.on_trace(result.values))
            march.step += 1
            if march.step in recorded:
                modes.response.append(modes.response[0] + run.trace_of(march.total))
                run.ready(modes.response)
                modes.step_times.append(march.step * plan.step)
        modes.mode_count[:] = len(modes.response)
        modes.time_error[:] = march.error.estimate()
        return modes

    def _error(self) -> StepError:
        position = np.asarray(self.plan.times) / self.plan.step
        between = bool((np.abs(position - np.round(position)) > 1e-6).any())
        return StepError(self.backend, self.plan.step, self.creep.fastest, between)
