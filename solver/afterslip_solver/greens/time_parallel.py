"""Four time steps at once for a single source (Yamaguchi et al. 2018).

The lanes are steps i to i + 3 of one source. Step i is solved to the tolerance; the
others come along with loads that follow from the estimates before them, and start
their own turn from what they reached. The step that joins is extrapolated from the
solved ones. Sources of a group are marched one after the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from afterslip_solver.backend import LANES, Backend
from afterslip_solver.greens.checkpoint import State, pack, unpack
from afterslip_solver.greens.group_solve import GroupSolve, Modes
from afterslip_solver.greens.stepping import Stepping
from afterslip_solver.model import Float

# solved steps of the regression line
_REGRESSION = 7


def trend_weights(known: int, ahead: int) -> Float:
    """Factors of past increments, newest last, that predict one ahead.

    The straight line through the last two; from seven on their regression line
    (section 2.1).

    Parameters
    ----------
    known : number of past increments, at least one. ahead : steps beyond the last.
    """
    if known == 1:
        return np.ones(1)
    count = _REGRESSION if known >= _REGRESSION else 2
    place = np.arange(1.0 - count, 1.0)
    centre = place - place.mean()
    weights = 1.0 / count + (ahead - place.mean()) * centre / (centre**2).sum()
    return np.asarray(weights)


@dataclass(slots=True)
class _Window:
    """Where the march of one source stands.

    Attributes
    ----------
    stress : before each of the window's steps.
    guess : (n_node, 3, lane) increments of the steps, as known so far.
    total : (n_node, 3, 1) sum of the solved increments.
    remainder : (n_node, 3, 1) what the last solve left unbalanced.
    past : the last solved increments (n_node, 3, 1), newest last.
    reference : norm of the first load. step : number of steps solved.
    """

    stress: Any
    guess: Any
    total: Any
    remainder: Any
    past: list[Any]
    reference: float = 0.0
    step: int = 0

    def packed(self, backend: Backend) -> State:
        whole = [self.stress, self.guess, self.total, self.remainder]
        return {
            **pack(backend, "window", whole),
            **pack(backend, "past", self.past),
            "reference": np.array(self.reference),
            "step": np.array(self.step),
        }

    @classmethod
    def unpacked(cls, backend: Backend, state: State) -> _Window:
        whole, past = (unpack(backend, name, state) for name in ("window", "past"))
        reference, step = float(state["reference"]), int(state["step"])
        return cls(whole[0], whole[1], whole[2], whole[3], past, reference, step)


class TimeParallel(Stepping):
    """Stepping of each source by itself, its next four steps in lockstep."""

    __slots__ = ()

    def integrate(self, run: GroupSolve, elastic: Float, strain: Any) -> Modes:
        """See `Stepping.integrate`."""
        state = self.local.start(strain)
        response = np.repeat(elastic[None], len(self.plan.recorded()), axis=0)
        return self._sources(run, self.backend.to_host(state), response, 0, None)

    def resume(self, run: GroupSolve, state: State) -> Modes:
        """Go on from a checkpoint."""
        window = _Window.unpacked(self.backend, state)
        response, source = state["response"].copy(), int(state["source"])
        return self._sources(run, state["start"], response, source, window)

    def _sources(
        self,
        run: GroupSolve,
        start: Any,
        response: Float,
        first: int,
        window: _Window | None,
    ) -> Modes:
        """March the sources from ``first`` on; ``start`` is their first state."""
        f = self.local.load(self.backend.asarray(start))
        self.system.operator.hold(f)
        norm = self.backend.dot(f, f)
        moves = [lane for lane in range(first, LANES) if norm[lane] > 0.0]
        run.expected = len(run.history) + self.plan.n_step * len(moves)
        for source in moves:
            if window is None:
                window = self._open(start, source)
            self._march(run, start, response, source, window)
            window = None
        recorded = self.plan.recorded()
        if not run.going():
            recorded = recorded[:1]
        modes = Modes(list(response[: len(recorded)]))
        modes.step_times = [self.plan.step * number for number in recorded]
        modes.mode_count[:] = len(recorded)
        return modes

    def _open(self, start: Any, source: int) -> _Window:
        backend, xp = self.backend, self.backend.xp
        one = np.repeat(start[..., source : source + 1], LANES, axis=-1)
        shape = self.system.operator.shape
        total = xp.zeros((*shape[:2], 1))
        zero = xp.zeros_like(total)
        return _Window(backend.asarray(one), xp.zeros(shape), total, zero, [])

    def _march(
        self, run: GroupSolve, start: Any, response: Float, source: int, window: _Window
    ) -> None:
        backend = self.backend
        recorded = {number: row for row, number in enumerate(self.plan.recorded())}

        def state() -> State:
            whole = {"start": start, "response": response, "source": np.array(source)}
            return {**window.packed(backend), **whole}

        while window.step < self.plan.n_step and run.going():
            run.maybe_save(state)
            f = self.local.load(window.stress)
            self.system.operator.hold(f)
            f[:, :, :1] += window.remainder
            if window.step == 0:
                window.reference = float(np.sqrt(backend.dot(f, f)[0]))
            reference = np.full(LANES, window.reference)
            result = run.solve(
                self.system, f, "stepping", window.guess, reference, source
            )
            if not run.going():
                return
            window.remainder = result.remainder[:, :, :1].copy()
            self._shift(window, result.values)
            if window.step in recorded:
                response[recorded[window.step], source] += run.trace_of(window.total)[0]

    def _shift(self, window: _Window, increments: Any) -> None:
        """Let the window begin one step later."""
        solved = increments[:, :, :1].copy()
        window.total += solved
        window.past = [*window.past[1 - _REGRESSION :], solved]
        window.step += 1
        strain = self.creep.strain(increments)
        stress = window.stress[..., :1].copy()
        for lane in range(LANES):
            self.local.advance(stress, strain[..., lane : lane + 1])
            window.stress[..., lane : lane + 1] = stress
        window.guess[:, :, :-1] = increments[:, :, 1:]
        weights = trend_weights(len(window.past), LANES)
        known = window.past[-len(weights) :]
        joining = sum(w * d for w, d in zip(weights.tolist(), known, strict=True))
        window.guess[:, :, -1:] = joining
