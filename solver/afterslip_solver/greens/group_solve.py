"""Solution of one group: its solves, their reports and how it may end early."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from math import isqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from afterslip_solver.backend import LANES, Backend
from afterslip_solver.greens.checkpoint import Checkpointer, State, StateError
from afterslip_solver.greens.elastic_model import Solvable
from afterslip_solver.jit.threads import over
from afterslip_solver.krylov import SolveResult, SurfaceErrorCriterion, pcg
from afterslip_solver.krylov.result import Outcome, Precision
from afterslip_solver.model import Float, Progress, ShouldStop

# what the history says of a solve
_ENTRY = (
    "phase",
    "iterations",
    "seconds",
    "residuals",
    "initial",
    "inner",
    "predictor",
)
# points of a solve's convergence that are stored, and solves of which they are
CURVE, CURVES = 12, 30


class GroupSolve:
    """Solves one right-hand side after the other and records them.

    Parameters
    ----------
    tolerance, max_iterations : of every linear solve.
    trace : positions of the trace in the solver's nodes.
    progress, should_stop : the caller's hooks, or None.
    checkpointer : where states are left, or None.
    digest : makes the digest of the problem, for the checkpointer.
    precision : of the iterations, see `pcg`.
    guesses : of solves that are given no other guess, by their number; or None.
    keep : called with the number of each solve that was given no guess and its
        solution, or None.

    Attributes
    ----------
    trace : as given, on the backend.
    """

    def __init__(
        self,
        backend: Backend,
        tolerance: float,
        max_iterations: int,
        trace: NDArray[Any],
        progress: Progress | None,
        should_stop: ShouldStop | None,
        checkpointer: Checkpointer | None,
        digest: Callable[[], NDArray[np.uint8]],
        precision: Precision = "mixed",
        guesses: Callable[[int], Any] | None = None,
        keep: Callable[[int, Any], None] | None = None,
    ) -> None:
        self.backend = backend
        self._guesses, self._keep = guesses, keep
        self._precision = precision
        self.tolerance = tolerance
        self._max_iterations = max_iterations
        self.trace = backend.asarray(trace)
        self._progress = progress
        self._should_stop = should_stop
        self._keeper = checkpointer
        self._make_digest = digest
        self.history: list[dict[str, Any]] = []
        self.iterations = 0
        # solves in all; 0 while nobody can know
        self.expected = 0
        self.outcome: Outcome = "converged"
        self.advice = ""
        self.residual = np.zeros(LANES)
        self.predictor_bytes = 0

    def solve(
        self,
        system: Solvable,
        f: Any,
        phase: str,
        guess: Any = None,
        reference: Float | None = None,
        source: int | None = None,
        criterion: SurfaceErrorCriterion | None = None,
    ) -> SolveResult:
        """Solve K u = f; look at ``self.outcome`` before using the result.

        Parameters
        ----------
        source : the lane whose steps all lanes are, of which the first must converge;
            None where every lane is a source of its own.
        criterion : what may end a lane before its tolerance; its residual then counts
            by what the criterion allows.
        """
        started = time.perf_counter()
        lanes = np.arange(LANES)

        def of_sources(relative: NDArray[np.float64]) -> NDArray[np.float64]:
            if source is None:
                return relative
            return np.where(lanes == source, relative[0], 0.0)

        def counted(relative: NDArray[np.float64]) -> NDArray[np.float64]:
            if criterion is not None:
                relative = np.minimum(relative, self.tolerance * criterion.progress())
            return of_sources(relative)

        points = [(0, 1.0)]

        def watch(iteration: int, relative: NDArray[np.float64]) -> bool:
            points.append((iteration, float(counted(relative).max())))
            self._report(phase, iteration, counted(relative))
            return self._should_stop is not None and self._should_stop()

        alone, number = guess is None, len(self.history)
        nested = alone and self._guesses is not None
        if nested and self._guesses is not None:
            guess = self._guesses(number)
        result = pcg(
            system.operator,
            system.cycle,
            f,
            guess=guess,
            reference=reference,
            tolerance=self.tolerance,
            max_iterations=self._max_iterations,
            watch=watch,
            needed=None if source is None else lanes == 0,
            criterion=criterion,
            precision=self._precision,
            fitted=nested,
        )
        # the others, steps, are many
        if self._keep is not None and alone:
            self._keep(number, result.values)
        # what was not enough for one solve would be tried in vain by the next ones
        self._precision = result.precision
        self.iterations += result.iterations
        relative = counted(result.relative)
        self.residual = np.maximum(self.residual, relative)
        points[0] = (0, float(of_sources(result.initial).max()))
        self.history.append(
            {
                "phase": phase,
                "iterations": result.iterations,
                "seconds": time.perf_counter() - started,
                "residuals": relative.tolist(),
                "initial": of_sources(result.initial).tolist(),
                "inner": system.cycle.inner_iterations(),
                "predictor": self.predictor_bytes,
                "curve": self._curve(points, result.iterations, relative),
            }
        )
        self.outcome, self.advice = result.outcome, result.advice
        if watch(result.iterations, result.relative) and self.going():
            self.stop("stopped", "the solve was asked to stop")
        return result

    def _curve(
        self, points: list[tuple[int, float]], iterations: int, relative: Float
    ) -> list[tuple[int, float]]:
        """Return some points of a solve's convergence, none of the later solves."""
        if len(self.history) >= CURVES:
            return []
        step = -(-len(points) // CURVE) or 1
        return [*points[::step], (iterations, float(relative.max()))]

    @cached_property
    def _digest(self) -> NDArray[np.uint8]:
        return self._make_digest()

    def maybe_save(self, state: Callable[[], State]) -> None:
        """Save the state after a solve, if the checkpointer wants one."""
        if self._keeper is None or not self._keeper.due():
            return
        account = {
            f"history.{key}": np.array([entry[key] for entry in self.history])
            for key in _ENTRY
        }
        account["solves"] = np.array(len(self.history))
        account["digest"] = self._digest
        self._keeper.save({**account, **state()})

    def resumed(self) -> State | None:
        """Restore the history of a checkpoint, and return its state.

        Raises
        ------
        StateError
            If the state is of another problem.
        """
        state = None if self._keeper is None else self._keeper.load()
        if state is None:
            return None
        if not np.array_equal(state.get("digest", ()), self._digest):
            raise StateError("the checkpoint is of another problem or another solver")
        columns = [state[f"history.{key}"].tolist() for key in _ENTRY]
        entries = zip(*columns, strict=True)
        self.history = [dict(zip(_ENTRY, entry, strict=True)) for entry in entries]
        self.iterations = sum(entry["iterations"] for entry in self.history)
        self.residual = state["history.residuals"].max(axis=0)
        return state

    def going(self) -> bool:
        """Whether nothing has ended the run yet."""
        return self.outcome == "converged"

    def stop(self, outcome: Outcome, advice: str) -> None:
        """End the run early."""
        self.outcome, self.advice = outcome, advice

    def ready(self, response: list[Float]) -> None:
        """Hear of modes' responses, (lane, n_trace, 3), that do not change any more."""

    def gathered(self, response: list[Float], n_lane: int) -> Float:
        """(n_lane, mode, n_trace, 3) responses of all modes."""
        n_mode = len(response)
        out = np.empty((n_lane, n_mode, *response[0].shape[1:]))

        def copy(first: int, last: int) -> None:
            for k in range(first, last):
                number, lane = divmod(k, n_lane)
                out[lane, number] = response[number][lane]

        # memory that was never written to is had page by page, which takes one thread
        # long
        over(n_mode * n_lane, copy, few=1, per_thread=1)
        return out

    def on_trace(self, u: Any) -> Any:
        """Values on the trace, (n_trace, 3, lane) on the backend."""
        return u[self.trace]

    def largest(self, values: list[Any]) -> Float:
        """(len, lane) largest size of each of some values of the trace."""
        return self.backend.to_host(self.sizes_of(values))

    def sizes_of(self, values: list[Any]) -> Any:
        """Do the same, and leave it on the backend."""
        xp = self.backend.xp
        if values[0].size == 0:
            return xp.zeros((len(values), LANES))
        together = xp.stack(values)
        xp.abs(together, out=together)
        return _largest(xp, together.reshape(len(values), -1, LANES))

    def sizes(self, weights: Float, values: list[Any]) -> Float:
        """(k, lane) largest values of weighted sums of values on the trace.

        Parameters
        ----------
        weights : (k, m, lane). values : m of `on_trace`.
        """
        sums = []
        for row in weights:
            total = self.backend.xp.zeros_like(values[0])
            for factors, own in zip(row, values, strict=True):
                if factors.any():
                    total += own * self.backend.asarray(factors)
            sums.append(total)
        return self.largest(sums)

    def trace_of(self, u: Any) -> Float:
        """Values on the trace, (lane, n_trace, 3) on the host."""
        return self.from_trace(self.on_trace(u))

    def to_trace(self, values: Float) -> Any:
        """Undo `from_trace`."""
        return self.backend.asarray(np.ascontiguousarray(values.transpose(1, 2, 0)))

    def from_trace(self, values: Any) -> Float:
        """Copy values of `on_trace` to the host, (lane, n_trace, 3)."""
        by_lane = values.transpose(2, 0, 1)
        # put in order where that is fast
        found: Float = self.backend.to_host(self.backend.xp.ascontiguousarray(by_lane))
        return found

    def _report(self, phase: str, iteration: int, relative: Float) -> None:
        if self._progress is None:
            return
        solves = len(self.history)
        self._progress(
            {
                "phase": phase,
                "solve": solves,
                "solves_expected": self.expected and max(self.expected, solves),
                "iteration": iteration,
                "residual": float(relative.max()),
                "lane_residuals": relative.tolist(),
            }
        )


def _largest(xp: Any, rows: Any) -> Any:
    """(k, lane) largest of (k, n, lane) on a backend.

    In two steps of which the first has many results: a device that is asked for four
    numbers at once leaves most of its multiprocessors idle.
    """
    k, n, _ = rows.shape
    side = max(isqrt(n), 1)
    whole = n - n % side
    found = rows[:, :whole].reshape(k, side, -1, LANES).max(axis=1).max(axis=1)
    if whole < n:
        found = xp.maximum(found, rows[:, whole:].max(axis=1))
    return found


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

    def packed(self) -> State:
        """Everything but the shift, for a checkpointer."""
        return {
            "modes.response": np.array(self.response),
            "modes.recurrence": np.array(self.recurrence),
            "modes.start_norm": self.start_norm,
            "modes.mode_count": self.mode_count,
            "modes.step_times": np.array(self.step_times),
            "modes.time_error": self.time_error,
        }

    @classmethod
    def unpacked(cls, state: State, shift: float) -> Modes:
        """Modes as they were `packed`."""
        return cls(
            list(state["modes.response"]),
            list(state["modes.recurrence"]),
            state["modes.start_norm"].copy(),
            shift,
            state["modes.mode_count"].copy(),
            state["modes.step_times"].tolist(),
            state["modes.time_error"].copy(),
        )
