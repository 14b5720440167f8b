"""Runs of thirty daily steps with any preconditioner and any predictor."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from afterslip_common.record import Record, record
from afterslip_solver import backend as backends
from afterslip_solver.backend import LANES
from afterslip_solver.benchmarks.timing import DAY, STEPS, Clock, wait
from afterslip_solver.greens import Prepared
from afterslip_solver.greens.elastic_model import ElasticModel, Solvable
from afterslip_solver.greens.stepping import Stepping
from afterslip_solver.greens.time_parallel import TimeParallel
from afterslip_solver.model import Float, GroupResult, Model, SolverSettings
from afterslip_solver.multigrid import (
    Cycle,
    Preconditioner,
    ThreeLevel,
    build_three_level,
)
from afterslip_solver.operators import Elasticity, check_model


@dataclass(frozen=True, slots=True)
class March:
    """One run: its result and the seconds of each step."""

    result: GroupResult
    steps: Float

    @property
    def solves(self) -> list[dict[str, Any]]:
        """Account of the steps."""
        return self.result.history[1:]

    def inner(self) -> Float:
        """Count iterations per level in each step, (n_step, level)."""
        return np.array([entry["inner"] for entry in self.solves])

    def outer(self) -> Float:
        """Count iterations of each step."""
        return np.array([entry["iterations"] for entry in self.solves], dtype=float)

    def initial(self) -> Float:
        """Residual that each guess left, of the worst lane."""
        return np.array([max(entry["initial"]) for entry in self.solves])


class _OneCycle(ElasticModel):
    """A model whose elastic K and K^v of a day, much alike, share one cycle."""

    _cycle: Preconditioner | None = None

    def preconditioner(self, operator: Elasticity) -> Preconditioner:
        """See `ElasticModel`."""
        if self._cycle is None:
            self._cycle = super().preconditioner(operator)
        return self._cycle


class Marches:
    """A model whose thirty days can be stepped through in many ways.

    Attributes
    ----------
    made : the prepared model. operator : its K^v of a day.
    cycle, three : our preconditioner of it and the published one.
    records : what was measured.
    """

    def __init__(
        self,
        model: Model,
        slip: dict[str, Float],
        settings: SolverSettings,
        name: str,
        report: Callable[[Record], None] | None = None,
    ) -> None:
        self.model, self.slip = model, slip
        self._report = report
        self.backend = backends.get(name)
        until = STEPS * DAY
        steps = replace(
            settings,
            times=(until,),
            until=until,
            integrator="stepping",
            step=DAY,
            predictor="galerkin",
            preconditioner="multigrid",
        )
        check_model(model)
        self.made = Prepared(_OneCycle(model, self.backend), steps)
        chosen = self.made.relaxation.integrator
        if not isinstance(chosen, Stepping) or not isinstance(
            chosen.system.cycle, Cycle
        ):
            raise TypeError("the comparison needs a viscoelastic model and our cycle")
        self.stepping = chosen
        self.operator = chosen.system.operator
        self.cycle: Cycle = chosen.system.cycle
        self.three: ThreeLevel = build_three_level(self.operator)
        self.records: list[Record] = []
        self.size = f"{self.made.n_unknowns} unknowns"

    def say(
        self, metric: str, value: float, unit: str, baseline: float | None, note: str
    ) -> None:
        """Keep a figure."""
        self.records.append(record(metric, float(value), unit, baseline, note))
        if self._report is not None:
            self._report(self.records[-1])

    def milliseconds(self, call: Callable[[], Any], repeats: int = 7) -> float:
        """Median time of a call."""
        call()
        times = []
        for _ in range(repeats):
            wait(self.backend)
            begin = time.perf_counter()
            call()
            wait(self.backend)
            times.append(time.perf_counter() - begin)
        return 1e3 * float(np.median(times))

    def march(
        self, preconditioner: Cycle | ThreeLevel, predictor: str, lanes: int = LANES
    ) -> March:
        """Thirty days with one preconditioner and one predictor."""
        kind = TimeParallel if predictor == "four_steps" else Stepping
        values = {f.name: getattr(self.stepping, f.name) for f in fields(Stepping)}
        values["system"] = Solvable(self.operator, preconditioner)
        values["predictor"] = predictor
        self.made.relaxation.integrator = kind(**values)
        slip = {name: part[:, :, :lanes] for name, part in self.slip.items()}
        clock = Clock(self.backend)
        nodes = self.model.surface.nodes
        result = self.made.solve(slip, nodes, checkpointer=clock)
        wait(self.backend)
        if result.outcome != "converged":
            raise RuntimeError(f"{predictor}: {result.outcome}; {result.advice}")
        marks = [*clock.marks, time.perf_counter()]
        return March(result, np.diff(marks))
