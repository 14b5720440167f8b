"""The whole relaxation curve by Lanczos in the creep strain.

Linear creep obeys e' = c_0 - A e with A e = (mu/eta) (e - dev B K^-1 int B^T 2 mu e),
self-adjoint and non-negative in <a, b> = int 2 eta a : b (for Burgers bodies see
`Creep`). A few Lanczos steps from c_0, each one elastic solve, give e at every time.
The shift-invert variant runs on (1 + gamma A)^-1, one solve with the softened K^v per
step: fewer steps where the curve is long compared with the shortest relaxation time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from afterslip_solver.backend import LANES, Backend
from afterslip_solver.greens.accuracy import (
    TIGHTEST,
    SolveBudget,
    probe_weights,
    rounding,
    truncation,
)
from afterslip_solver.greens.checkpoint import State, pack, unpack
from afterslip_solver.greens.elastic_model import Solvable
from afterslip_solver.greens.group_solve import GroupSolve, Modes
from afterslip_solver.greens.time_plan import TimePlan
from afterslip_solver.krylov import SurfaceErrorCriterion
from afterslip_solver.model import Float
from afterslip_solver.operators import Creep, Resolvent

# a new direction this small against the last product is rounding
_BREAKDOWN = 1e-10
# entries of the recurrence before the number of solves is guessed
_KNOWN = 3
Solve = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Spectral:
    """Lanczos in the creep strain, ready for many groups.

    Attributes
    ----------
    creep : the state space. system : K, or K^v for shift-invert.
    plan : the times where the curve must hold, the shift and the limit on steps.
    tolerance : largest error over largest change of the trace.
    """

    backend: Backend
    creep: Creep
    system: Solvable
    plan: TimePlan
    tolerance: float

    def integrate(self, run: GroupSolve, elastic: Float, strain: Any) -> Modes:
        """Add modes to the elastic response.

        Parameters
        ----------
        elastic : (lane, n_trace, 3) the elastic response.
        strain : deviatoric strain of the elastic solution, offsets included.
        """
        modes = Modes([elastic], [np.zeros((LANES, 2))], shift=self.plan.shift)
        q = self.creep.driven(strain)
        modes.start_norm = norm = self.creep.norm(q)
        active = norm > 0.0
        budget = self._budget()
        q = self._scaled(q, active, norm, budget.narrow)
        return self._go_on(run, modes, budget, [], q, active)

    def _budget(self) -> SolveBudget:
        fastest = self.creep.fastest
        return SolveBudget(self.plan.shift, self.plan.times, self.tolerance, fastest)

    def resume(self, run: GroupSolve, state: State) -> Modes:
        """Go on from a checkpoint."""
        backend = self.backend
        modes = Modes.unpacked(state, self.plan.shift)
        basis = unpack(backend, "basis", state)
        q = backend.asarray(state["direction"].copy())
        budget = self._budget()
        budget.restore(state)
        return self._go_on(run, modes, budget, basis, q, state["active"].copy())

    def _go_on(
        self,
        run: GroupSolve,
        modes: Modes,
        budget: SolveBudget,
        basis: list[Any],
        q: Any,
        active: NDArray[np.bool_],
    ) -> Modes:
        """Lanczos steps from the next direction q on."""
        traces = [run.to_trace(response) for response in modes.response[1:]]
        backend, apply = self.backend, self._apply
        if self.plan.shift > 0:
            resolvent = Resolvent(self.creep, self.plan.shift)
            apply = partial(self._apply_inverse, resolvent)

        def state() -> State:
            return {
                **modes.packed(),
                **pack(backend, "basis", basis),
                "direction": backend.to_host(q),
                "active": active,
                **budget.packed(),
            }

        while active.any() and run.going():
            run.maybe_save(state)
            if len(modes.response) > self.plan.limit:
                run.stop(
                    "not_converged",
                    f"the curve needs more than {self.plan.limit} modes: loosen "
                    "solver.time_tolerance, or end it earlier (times.until)",
                )
                break
            solve = partial(self._solve, run, modes, budget)
            r, response = apply(run, solve, q)
            if not run.going():
                break
            basis.append(q)
            alpha, left = self._orthogonalise(r, basis)
            traces.append(response)
            modes.response.append(run.from_trace(response))
            run.ready(modes.response)
            modes.recurrence.append(np.stack([alpha, left], axis=1))
            modes.mode_count[active] += 1
            active = self._still_active(modes, traces, budget, active, run)
            q = self._scaled(r, active, left, budget.narrow)
        modes.time_error += budget.error()
        if budget.narrow:
            for lane in np.flatnonzero(modes.mode_count > 1):
                count, norm = int(modes.mode_count[lane]), modes.start_norm[lane]
                recurrence = np.array(modes.recurrence)[1:count, lane]
                modes.time_error[lane] += rounding(
                    recurrence, float(norm), self.plan.shift, self.plan.times
                )
        return modes

    def _solve(self, run: GroupSolve, modes: Modes, budget: SolveBudget, f: Any) -> Any:
        """Solve for the next mode as exactly as its weight in the curve asks."""
        self.system.operator.hold(f)
        load = np.sqrt(self.backend.dot(f, f))
        weight = budget.weights(np.array(modes.recurrence[1:]), modes.start_norm)
        allowed = partial(budget.allowed, weight)
        criterion = SurfaceErrorCriterion(self.backend, run.trace, allowed)
        reference = TIGHTEST * load
        result = run.solve(
            self.system, f, "relaxation", reference=reference, criterion=criterion
        )
        budget.add(criterion.error)
        return result.values

    def _apply(self, run: GroupSolve, solve: Solve, q: Any) -> tuple[Any, Any]:
        """Return A q, and the elastic response of the creep strain q on the trace."""
        creep = self.creep
        u = solve(creep.load(q))
        return creep.relaxation(q, u), run.on_trace(u)

    def _apply_inverse(
        self, resolvent: Resolvent, run: GroupSolve, solve: Solve, q: Any
    ) -> tuple[Any, Any]:
        """Return S q, S = (1 + shift A)^-1, and the elastic response of S q."""
        u = solve(resolvent.load(q))
        return resolvent.state(q, u), run.on_trace(u)

    def _orthogonalise(
        self, r: Any, basis: list[Any]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Take the basis out of r; return <q_last, r> and the norm that is left.

        Solves are accurate to their tolerance only, which Lanczos amplifies once a
        Ritz value has converged; full orthogonalisation costs far less than a solve.
        Directions in FP32 are not quite orthogonal, for which once is not enough.
        """
        creep = self.creep
        alpha, taken = np.zeros(LANES), np.zeros(LANES)
        for _ in range(2):
            factors = creep.energy_dots(basis, r)
            alpha += factors[-1]
            taken += (factors**2).sum(axis=0)
            self.backend.combine(r, -factors, basis)
        left = creep.norm(r)
        # the norm of r before: the basis is orthonormal
        whole = np.sqrt(left**2 + taken)
        return alpha, np.where(left > _BREAKDOWN * whole, left, 0.0)

    def _scaled(
        self, state: Any, active: NDArray[np.bool_], norm: Float, narrow: bool
    ) -> Any:
        """Return a direction of norm one, in the precision of the basis."""
        factor = np.where(active, 1.0 / np.where(norm > 0.0, norm, 1.0), 0.0)
        real = np.float32 if narrow else np.float64
        out = self.backend.xp.empty(state.shape, dtype=real)
        self.backend.scale_into(state, factor, out)
        return out

    def _still_active(
        self,
        modes: Modes,
        traces: list[Any],
        budget: SolveBudget,
        active: NDArray[np.bool_],
        run: GroupSolve,
    ) -> NDArray[np.bool_]:
        """Lanes that need another mode; updates the error estimates."""
        recurrence = np.array(modes.recurrence)
        lanes = np.flatnonzero(active)
        own, norm = recurrence[1:, lanes].swapaxes(0, 1), modes.start_norm[lanes]
        curves = own, norm, self.plan.shift, self.plan.times
        weights = np.zeros((3, len(traces), LANES))
        weights[:, :, lanes] = np.moveaxis(probe_weights(*curves), 0, -1)
        sizes = run.sizes(weights, traces)[:, lanes]
        before, error = modes.time_error[lanes], truncation(*curves, sizes)
        modes.time_error[lanes] = error
        # of what is not known yet, take less
        budget.settle(lanes, own, norm, sizes[0] / (1.0 + error))
        wanted = budget.enough()[lanes]
        exact = own[:, -1, 1] == 0.0
        # the first diagonal entry of shift-invert predicts too little
        early = self.plan.shift > 0.0 and len(recurrence) < 3
        goes_on = ((error > wanted) | early) & ~exact
        remaining = 0
        for k in np.flatnonzero(goes_on):
            left = _remaining(
                float(before[k]) or 1.0, float(error[k]), float(wanted[k])
            )
            budget.to_come[lanes[k]] = left
            remaining = max(remaining, left)
        go_on = np.zeros_like(active)
        go_on[lanes] = goes_on
        if len(recurrence) >= _KNOWN:
            fresh = len(run.history) + remaining
            # two errors in a row say little: half of what was expected stays
            run.expected = -(-(fresh + (run.expected or fresh)) // 2)
        return go_on


def _remaining(before: float, error: float, tolerance: float) -> int:
    """Solves still to come if errors go on to shrink as they did."""
    gain = np.log(before / error) if before > error > 0.0 else 1.0
    return max(1, int(np.ceil(np.log(max(error / tolerance, 1.0)) / max(gain, 0.5))))
