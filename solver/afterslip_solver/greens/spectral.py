"""The whole relaxation curve by Lanczos in the creep strain.

Linear creep obeys e' = c_0 - A e with A e = (mu/eta) (e - dev B K^-1 int B^T 2 mu e),
self-adjoint and non-negative in <a, b> = int 2 eta a : b (for Burgers bodies see
`Creep`). A few Lanczos steps from c_0, each one elastic solve, give e at every time.
The shift-invert variant runs on (1 + gamma A)^-1, one solve with the softened K^v per
step: fewer steps where the curve is long compared with the shortest relaxation time.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from afterslip_solver.backend import LANES, Backend
from afterslip_solver.greens.curve import mode_weights
from afterslip_solver.greens.keeper import State, pack, unpack
from afterslip_solver.greens.run import Modes, Run, Solvable
from afterslip_solver.model import Float
from afterslip_solver.operators import Creep, Resolvent

# a new direction this small against the last product is rounding
_BREAKDOWN = 1e-10
# rounding a direction to FP32 acts like a change of A by 2^-24 of its coupling to the
# next one, so the curve changes by less than 2e-7 of what it moves
_SINGLE = 1e-6
# measured: the bare estimate is 0.5 to 10 times the true error
_SAFETY = 2.5


@dataclass(frozen=True, slots=True)
class Spectral:
    """Lanczos in the creep strain, ready for many groups.

    Attributes
    ----------
    creep : the state space. system : K, or K^v for shift-invert.
    times : (n_time,) s, where the curve must hold; all positive.
    shift : gamma, s; 0 for the polynomial scheme.
    tolerance : largest error over largest change of the trace.
    max_modes : limit on Lanczos steps.
    """

    backend: Backend
    creep: Creep
    system: Solvable
    times: Float
    shift: float
    tolerance: float
    max_modes: int

    def integrate(self, run: Run, elastic: Float, strain: Any) -> Modes:
        """Add modes to the elastic response.

        Parameters
        ----------
        elastic : (lane, n_trace, 3) the elastic response.
        strain : deviatoric strain of the elastic solution, offsets included.
        """
        modes = Modes([elastic], [np.zeros((LANES, 2))], shift=self.shift)
        q = self.creep.driven(strain)
        modes.start_norm = norm = self.creep.norm(q)
        active = norm > 0.0
        return self._go_on(run, modes, [], self._scaled(q, active, norm), active)

    def resume(self, run: Run, state: State) -> Modes:
        """Go on from a kept state."""
        backend = self.backend
        modes = Modes.unpacked(state, self.shift)
        basis = unpack(backend, "basis", state)
        q = backend.asarray(state["direction"].copy())
        return self._go_on(run, modes, basis, q, state["active"].copy())

    def _go_on(
        self,
        run: Run,
        modes: Modes,
        basis: list[Any],
        q: Any,
        active: NDArray[np.bool_],
    ) -> Modes:
        """Lanczos steps from the next direction q on."""
        backend, apply = self.backend, self._apply
        if self.shift > 0:
            resolvent = Resolvent(self.creep, self.shift)
            apply = partial(self._apply_inverse, resolvent)

        def state() -> State:
            return {
                **modes.packed(),
                **pack(backend, "basis", basis),
                "direction": backend.to_host(q),
                "active": active,
            }

        while active.any() and run.going():
            run.offer(state)
            if len(modes.response) > self.max_modes:
                run.stop(
                    "not_converged",
                    "the curve needs more modes: raise max_modes, loosen "
                    "time_tolerance, or choose the shift_invert scheme",
                )
                break
            r, response = apply(run, q)
            if not run.going():
                break
            basis.append(q)
            alpha, left = self._orthogonalise(r, basis)
            modes.response.append(response)
            modes.recurrence.append(np.stack([alpha, left], axis=1))
            modes.mode_count[active] += 1
            active = self._still_active(modes, active, run)
            q = self._scaled(r, active, left)
        return modes

    def _apply(self, run: Run, q: Any) -> tuple[Any, Float]:
        """Return A q, and the elastic response of the creep strain q on the trace."""
        creep = self.creep
        f = creep.divergence(self.backend.asarray(2.0 * creep.mu), creep.total(q))
        f *= self.system.operator.free
        u = run.solve(self.system, f, "relaxation").values
        return creep.relaxation(q, u), run.trace_of(u)

    def _apply_inverse(
        self, resolvent: Resolvent, run: Run, q: Any
    ) -> tuple[Any, Float]:
        """Return S q, S = (1 + shift A)^-1, and the elastic response of S q."""
        f = resolvent.load(q)
        f *= self.system.operator.free
        u = run.solve(self.system, f, "relaxation").values
        return resolvent.state(q, u), run.trace_of(u)

    def _orthogonalise(
        self, r: Any, basis: list[Any]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Take the basis out of r; return <q_last, r> and the norm that is left.

        Solves are accurate to their tolerance only, which Lanczos amplifies once a
        Ritz value has converged; full orthogonalisation costs far less than a solve.
        """
        creep = self.creep
        alpha = np.zeros(LANES)
        before = creep.norm(r)
        for _ in range(2):
            factors = creep.energy_dots(basis, r)
            alpha += factors[-1]
            self.backend.combine(r, -factors, basis)
        left = creep.norm(r)
        return alpha, np.where(left > _BREAKDOWN * before, left, 0.0)

    def _scaled(self, state: Any, active: NDArray[np.bool_], norm: Float) -> Any:
        """Return a direction of norm one, in the precision of the basis."""
        factor = np.where(active, 1.0 / np.where(norm > 0.0, norm, 1.0), 0.0)
        real = np.float32 if self.tolerance >= _SINGLE else np.float64
        out = self.backend.xp.empty(state.shape, dtype=real)
        self.backend.scale_into(state, factor, out)
        return out

    def _still_active(
        self, modes: Modes, active: NDArray[np.bool_], run: Run
    ) -> NDArray[np.bool_]:
        """Lanes that need another mode; updates the error estimates."""
        recurrence = np.array(modes.recurrence)
        response = np.array(modes.response)
        remaining = 0
        go_on = active.copy()
        for lane in np.flatnonzero(active):
            before = float(modes.time_error[lane])
            error = estimate_error(
                recurrence[1:, lane],
                float(modes.start_norm[lane]),
                self.shift,
                self.times,
                response[1:, lane],
            )
            modes.time_error[lane] = error
            exact = recurrence[-1, lane, 1] == 0.0
            # the first diagonal entry of shift-invert foretells too little
            early = self.shift > 0.0 and len(recurrence) < 3
            go_on[lane] = (error > self.tolerance or early) and not exact
            if go_on[lane]:
                remaining = max(remaining, _remaining(before, error, self.tolerance))
        run.expected = len(run.history) + remaining
        return go_on


def estimate_error(
    recurrence: Float, start_norm: float, shift: float, times: Float, response: Float
) -> float:
    """Error of the curve on the trace, over its largest change.

    The next mode's coefficient is foretold from the known coupling and the last
    diagonal entry; its response is taken to be as large as those of the last two
    modes. What follows it is summed as a geometric series.

    Parameters
    ----------
    recurrence : (m, 2) of one lane. response : (m, n_trace, 3) of its modes.
    """
    m = len(recurrence)
    if recurrence[-1, 1] == 0.0:
        return 0.0
    now = mode_weights(recurrence, start_norm, shift, times)
    longer = np.vstack([recurrence, [recurrence[-1, 0], 0.0]])
    then = mode_weights(longer, start_norm, shift, times)
    flat = response.reshape(m, -1)
    change = float(np.abs(now @ flat).max(initial=0.0))
    sizes = np.abs(flat).max(axis=1, initial=0.0)
    size = float(sizes[-2:].max())
    step = np.abs((then[:, :m] - now) @ flat).max(axis=1, initial=0.0)
    step += np.abs(then[:, m]) * size
    last = np.abs(then[:, m - 1]) * sizes[-1]
    ratio = np.minimum(step / np.maximum(last, 1e-300), 0.9)
    worst = _SAFETY * float((step / (1.0 - ratio)).max())
    return worst / change if change > 0.0 else 0.0


def _remaining(before: float, error: float, tolerance: float) -> int:
    """Solves still to come, for the progress report only."""
    gain = np.log(before / error) if before > error > 0.0 else 1.0
    return max(1, int(np.ceil(np.log(max(error / tolerance, 1.0)) / max(gain, 0.5))))
