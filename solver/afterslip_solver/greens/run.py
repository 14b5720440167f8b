"""One run of `Prepared.solve`: solves, their reports and how it may end early."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from afterslip_solver.backend import LANES, Backend
from afterslip_solver.krylov import SolveResult, pcg
from afterslip_solver.krylov.result import Outcome
from afterslip_solver.model import Float, Progress, ShouldStop
from afterslip_solver.multigrid import Cycle
from afterslip_solver.operators import Elasticity


@dataclass(frozen=True, slots=True)
class Solvable:
    """A stiffness matrix and its preconditioner."""

    operator: Elasticity
    cycle: Cycle

    @property
    def bytes(self) -> int:
        """Memory on the backend."""
        return self.operator.bytes + self.cycle.bytes


class Run:
    """Solves one right-hand side after the other and keeps the account.

    Parameters
    ----------
    tolerance, max_iterations : of every linear solve.
    trace : positions of the trace in the solver's nodes.
    progress, should_stop : the caller's hooks, or None.
    """

    def __init__(
        self,
        backend: Backend,
        tolerance: float,
        max_iterations: int,
        trace: NDArray[Any],
        progress: Progress | None,
        should_stop: ShouldStop | None,
    ) -> None:
        self.backend = backend
        self._tolerance = tolerance
        self._max_iterations = max_iterations
        self._trace = backend.asarray(trace)
        self._progress = progress
        self._should_stop = should_stop
        self.history: list[dict[str, Any]] = []
        self.iterations = 0
        self.expected = 1
        self.outcome: Outcome = "converged"
        self.advice = ""
        self.residual = np.zeros(LANES)

    def solve(
        self,
        system: Solvable,
        f: Any,
        phase: str,
        guess: Any = None,
        reference: Float | None = None,
    ) -> SolveResult:
        """Solve K u = f; look at ``self.outcome`` before using the result."""
        started = time.perf_counter()

        def watch(iteration: int, relative: NDArray[np.float64]) -> bool:
            self._report(phase, iteration, relative)
            return self._should_stop is not None and self._should_stop()

        result = pcg(
            system.operator,
            system.cycle,
            f,
            guess=guess,
            reference=reference,
            tolerance=self._tolerance,
            max_iterations=self._max_iterations,
            watch=watch,
        )
        self.iterations += result.iterations
        self.residual = np.maximum(self.residual, result.relative)
        self.history.append(
            {
                "phase": phase,
                "iterations": result.iterations,
                "seconds": time.perf_counter() - started,
                "residuals": result.relative.tolist(),
            }
        )
        self.outcome, self.advice = result.outcome, result.advice
        if watch(result.iterations, result.relative) and self.going():
            self.stop("stopped", "the solve was asked to stop")
        return result

    def going(self) -> bool:
        """Whether nothing has ended the run yet."""
        return self.outcome == "converged"

    def stop(self, outcome: Outcome, advice: str) -> None:
        """End the run early."""
        self.outcome, self.advice = outcome, advice

    def trace_of(self, u: Any) -> Float:
        """Values on the trace, (lane, n_trace, 3) on the host."""
        return np.ascontiguousarray(
            self.backend.to_host(u[self._trace]).transpose(2, 0, 1)
        )

    def _report(self, phase: str, iteration: int, relative: Float) -> None:
        if self._progress is None:
            return
        solves = len(self.history)
        self._progress(
            {
                "phase": phase,
                "solve": solves,
                "solves_expected": max(self.expected, solves),
                "iteration": iteration,
                "residual": float(relative.max()),
                "lane_residuals": relative.tolist(),
            }
        )


@dataclass(slots=True)
class Modes:
    """What an integrator hands back; lanes as solved, idle ones included.

    Attributes
    ----------
    response : per mode (lane, n_trace, 3), the elastic one first.
    recurrence : per mode (lane, 2).
    """

    response: list[Float]
    recurrence: list[Float] = field(default_factory=list)
    start_norm: Float = field(default_factory=lambda: np.zeros(LANES))
    shift: float = 0.0
    mode_count: NDArray[np.int64] = field(
        default_factory=lambda: np.ones(LANES, dtype=np.int64)
    )
    step_times: list[float] = field(default_factory=list)
    time_error: Float = field(default_factory=lambda: np.zeros(LANES))
