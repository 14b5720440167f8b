"""Relaxation curves of one group: spectral against stepping, and their memory."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, get_args, get_type_hints

import numpy as np

from afterslip_common.record import Record, record
from afterslip_solver import backend as backends
from afterslip_solver.backend import LANES
from afterslip_solver.benchmarks.timing import DAY, STEPS, Clock, wait
from afterslip_solver.greens import Prepared, evaluate_curve, prepare
from afterslip_solver.greens.nested_guess import Guesses, NestedGuess, Solutions
from afterslip_solver.greens.space_error import loosened
from afterslip_solver.materials import restoring_force
from afterslip_solver.mesh import coarsened
from afterslip_solver.model import Float, GroupResult, Model, SolverSettings

log = logging.getLogger(__name__)
# steps whose time counts, as in Murakami et al. (2023)
MEASURED = slice(20, 30)
# Murakami et al. (2023), A100: seconds a function, steps 21 to 30, and four times the
# campaign's average of 112 s a function
PAPER_STEP_S = 0.886
PAPER_GROUP_S = 448.0
REFERENCE = 1e-9


def coarse_slip(coarse: Model, fine: Model, slip: dict[str, Float]) -> dict[str, Float]:
    """Return the slip of a model on the mesh that it was refined from.

    Parameters
    ----------
    slip : fault name → (n_fault_node, 3, lane) m.
    """
    # nodes have the same numbers in both
    rows = {
        name: np.searchsorted(fine.faults[name].nodes, fault.nodes)
        for name, fault in coarse.faults.items()
    }
    return {name: values[rows[name]] for name, values in slip.items()}


class Nested:
    """The coarse curve of a group, whose solutions are guesses of the fine one's.

    Parameters
    ----------
    coarse, fine : the model before its last refinement, and the model.
    slip : of the fine model.
    """

    def __init__(
        self, coarse: Prepared, fine: Prepared, slip: dict[str, Float]
    ) -> None:
        self.coarse, self._guess = coarse, NestedGuess(coarse.elastic, fine.elastic)
        self._slip = coarse_slip(coarse.model, fine.model, slip)
        self.iterations: list[int] = []

    def guesses(self) -> Guesses:
        """Solve the coarse curve."""
        keep, nodes = Solutions(), self.coarse.model.surface.nodes
        found = self.coarse.solve(self._slip, nodes, keep=keep)
        self.iterations = [entry["iterations"] for entry in found.history]
        return self._guess.guesses(keep)


class _Bench:
    def __init__(
        self, model: Model, slip: dict[str, Float], settings: SolverSettings, name: str
    ) -> None:
        self.model, self.slip = model, slip
        self.until = STEPS * DAY
        self.times = np.linspace(0.0, self.until, STEPS + 1)
        self.settings = replace(
            settings,
            times=tuple(self.times),
            until=self.until,
            integrator="spectral",
            time_tolerance=1e-6,
        )
        self.backend = backends.get(name)
        self.records: list[Record] = []

    def say(self, *figures: Any) -> None:
        self.records.append(record(*figures))
        log.info("%s %.4g %s: %s", figures[0], figures[1], figures[2], figures[4])

    def prepared(self) -> tuple[Prepared, float]:
        begin = time.perf_counter()
        made = prepare(self.model, self.settings, self.backend)
        wait(self.backend)
        return made, time.perf_counter() - begin

    def nested(self, made: Prepared) -> Nested | None:
        """Set up the mesh before its last refinement, as campaigns have it."""
        model = coarsened(self.model, restoring_force)
        if model is None:
            return None
        coarse = prepare(model, loosened(self.settings), self.backend)
        return Nested(coarse, made, self.slip)

    def adapted(self, made: Prepared, **changes: Any) -> Prepared:
        return made.adapted(replace(self.settings, **changes))

    def solved(
        self, made: Prepared, nested: Nested | None = None
    ) -> tuple[GroupResult, Float]:
        """Return the result, and the seconds of every solve with what belongs to it.

        Parameters
        ----------
        nested : the coarse model, solved first; its time is that of the first solve's.
        """
        clock = Clock(self.backend)
        wait(self.backend)
        begin = time.perf_counter()
        nodes = self.model.surface.nodes
        guesses = None if nested is None else nested.guesses()
        result = made.solve(self.slip, nodes, checkpointer=clock, guesses=guesses)
        wait(self.backend)
        marks = [begin, *clock.marks, time.perf_counter()]
        return result, np.diff(marks)

    def milliseconds(self, call: Callable[[], Any], repeats: int = 10) -> float:
        call()
        wait(self.backend)
        begin = time.perf_counter()
        for _ in range(repeats):
            call()
        wait(self.backend)
        return 1e3 * (time.perf_counter() - begin) / repeats

    def kernels(self, made: Prepared) -> None:
        """Operations on creep, beside the time in which a copy moves their bytes."""
        backend, creep, xp = self.backend, made.relaxation.creep, self.backend.xp
        n, rows = made.space.n_node, creep.shape[0]
        u = backend.asarray(np.random.default_rng(0).standard_normal((n, 3, LANES)))
        state = xp.empty(creep.shape)
        backend.strain(creep.tets, u, state[: len(creep.which)])
        narrow = [state.astype(np.float32) for _ in range(4)]
        factor = backend.asarray(creep.mu)
        again = xp.empty_like(state)
        moved = 2.0 * state.nbytes
        copy = self.milliseconds(lambda: xp.copyto(again, state)) / moved
        nodes, mesh = u.nbytes, creep.tets.bytes
        state_bytes, narrow_bytes = state.nbytes, 4 * narrow[0].nbytes
        coefficients = np.ones((4, LANES))
        cases: list[tuple[str, Callable[[], Any], float]] = [
            (
                "creep_strain_ms",
                lambda: creep.blended(factor, narrow[0], factor, u),
                nodes + mesh + state_bytes + narrow_bytes / 4,
            ),
            (
                "creep_divergence_ms",
                lambda: creep.divergence(factor, narrow[0]),
                nodes + mesh + narrow_bytes / 4,
            ),
            (
                "creep_energy_dots_ms",
                lambda: creep.energy_dots(narrow, state),
                state_bytes + narrow_bytes,
            ),
            (
                "creep_combine_ms",
                lambda: backend.combine(again, coefficients, narrow),
                2.0 * state_bytes + narrow_bytes,
            ),
        ]
        note = f"{rows} rows of a state, four FP32 vectors of a basis; baseline: copy"
        for name, call, size in cases:
            self.say(name, self.milliseconds(call), "ms", size * copy, note)

    def memory(self, what: str) -> None:
        """Most bytes that were taken from the device so far."""
        if self.backend.name == "gpu":
            pool = self.backend.xp.get_default_memory_pool()
            self.say("curve_memory_gb", pool.total_bytes() / 1e9, "GB", None, what)


def _effort(result: GroupResult) -> str:
    """Say how many iterations the solves of a curve took, and seconds."""
    per_solve = [entry["iterations"] for entry in result.history]
    solving = sum(entry["seconds"] for entry in result.history)
    return f"{result.solves} solves of {per_solve} iterations taking {solving:.3f} s"


def _after_coarse(bench: _Bench, made: Prepared, alone: float) -> None:
    """Time the same curve as campaigns that estimate the mesh's error have it."""
    nested = bench.nested(made)
    if nested is None:
        return
    bench.solved(made, nested)
    found, seconds = bench.solved(made, nested)
    bench.say(
        "group_curve_nested_30d_s",
        float(seconds.sum()),
        "s",
        alone,
        f"{_effort(found)}, after a coarse mesh's curve of {nested.iterations} "
        "iterations, which guesses them, tells the mesh's error and is in the time; "
        "baseline: without it",
    )


def records(
    model: Model,
    slip: dict[str, Float],
    settings: SolverSettings,
    backend: str = "auto",
    predictors: tuple[str, ...] = (),
) -> list[Record]:
    """Thirty days of relaxation after the slip of one group.

    Parameters
    ----------
    slip : fault name → (n_fault_node, 3, 4) float64, m.
    settings : tolerances; integrator and times are set here.
    predictors : of stepping; default all there are.
    """
    bench = _Bench(model, slip, settings, backend)
    made, setup = bench.prepared()
    # the first run compiles
    bench.solved(made)
    result, seconds = bench.solved(made)
    alone = float(seconds.sum())
    bench.memory("after set-up and two curves")
    creeping = len(made.relaxation.creep.which)
    size = f"{made.n_unknowns} unknowns, {creeping} viscoelastic elements"
    change = np.abs(evaluate_curve(result, bench.times[1:]) - result.response[:, :1])
    elastic = np.abs(result.response[:, 0]).max()
    bench.say(
        "group_curve_30d_s",
        alone,
        "s",
        PAPER_GROUP_S,
        f"{size}, four lanes, {made.scheme}, {_effort(result)}, estimated error "
        f"{result.time_error.max():.1e} of a change of {change.max() / elastic:.1e} of "
        f"the elastic response; set-up {setup:.1f} s; baseline: published, A100",
    )
    _after_coarse(bench, made, alone)
    bench.kernels(made)
    tight = bench.adapted(made, time_tolerance=REFERENCE, tolerance=1e-11)
    reference, _ = bench.solved(tight)

    def moved(found: GroupResult) -> Float:
        curve = evaluate_curve(found, bench.times)
        return curve - curve[:, :1]

    exact = moved(reference)

    def error(found: GroupResult) -> float:
        off = np.abs(moved(found) - exact).max(axis=(1, 2, 3))
        return float((off / np.abs(exact).max(axis=(1, 2, 3))).max())

    bench.say(
        "group_curve_error",
        error(result),
        "1",
        float(result.time_error.max()),
        f"of the change, against {reference.solves} solves to 1e-11; baseline: its own "
        "estimate",
    )
    hint = get_args(get_type_hints(SolverSettings)["predictor"])
    # it marches sources one after the other: `benchmarks.paper` has it
    lockstep = tuple(name for name in hint if name != "four_steps")
    best = np.inf
    stepper: Prepared | None = None
    for name in predictors or lockstep:
        stepper = bench.adapted(
            stepper or made,
            integrator="stepping",
            step=DAY,
            predictor=name,
            max_modes=STEPS + 1,
        )
        # the first run compiles
        bench.solved(stepper)
        stepped, seconds = bench.solved(stepper)
        step = float(seconds[1:][MEASURED].mean())
        best = min(best, float(seconds.sum()))
        iterations = [entry["iterations"] for entry in stepped.history[1:]]
        bench.say(
            "step_per_function_s",
            step / LANES,
            "s",
            PAPER_STEP_S,
            f"{size}, predictor {name}, steps 21 to 30 of 30 days, iterations "
            f"{iterations[MEASURED]} (all 30: {sum(iterations)}), curve "
            f"{seconds.sum():.2f} s, error {error(stepped):.1e} (estimated "
            f"{stepped.time_error.max():.1e}); baseline: published, A100",
        )
        bench.memory(f"{size}, stepping with predictor {name}")
    bench.say(
        "curve_vs_stepping_speedup",
        best / alone,
        "1",
        1.0,
        f"{size}, 30 daily steps with the fastest predictor ({best:.2f} s) over the "
        f"spectral curve ({alone:.2f} s), same solver and run, no coarse mesh",
    )
    return bench.records
