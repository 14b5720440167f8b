"""Preconditioned conjugate gradients, lanes in lockstep with their own scalars."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from afterslip_solver.backend.protocols import DeviceIteration
from afterslip_solver.krylov.iteration import AHEAD, Iteration, Stepwise, ratio
from afterslip_solver.krylov.mixed import Mixed, applies
from afterslip_solver.krylov.result import Ending, Precision, SolveResult
from afterslip_solver.krylov.surface_error import StoppingCriterion
from afterslip_solver.multigrid.cycle import Cycle
from afterslip_solver.multigrid.preconditioner import Preconditioner
from afterslip_solver.operators.elasticity import Elasticity

Watch = Callable[[int, NDArray[np.float64]], bool]
REPORT_EVERY = 10
# a run of iterations that shrinks the residual by less has met the rounding
_GAIN = 0.5


def pcg(
    operator: Elasticity,
    preconditioner: Preconditioner,
    f: Any,
    guess: Any = None,
    reference: NDArray[np.float64] | None = None,
    tolerance: float = 1e-8,
    max_iterations: int = 400,
    watch: Watch | None = None,
    needed: NDArray[np.bool_] | None = None,
    criterion: StoppingCriterion | None = None,
    precision: Precision = "mixed",
    fitted: bool = False,
) -> SolveResult:
    """Solve K u = f for four lanes.

    A lane is done when its residual norm is at most ``tolerance`` times its
    reference norm; it is then frozen while others go on. When all are done the
    residual is computed anew, element by element; lanes that miss the tolerance
    start again from that residual.

    Parameters
    ----------
    f : (n_node, 3, lane) float64, zero on fixed components; a lane of zeros costs
        nothing and gives zeros.
    guess : initial u like f, or None for zero. It is copied.
    reference : (lane,) norms that residuals are measured against; default norm of f.
    watch : called every ten iterations with the count and the relative residuals;
        returning True stops the solve.
    needed : (lane,) lanes that must reach the tolerance, default all; others only
        come along while these need it.
    criterion : may find a lane exact enough before it reaches the tolerance; it may
        only take rows of the iterate that it is given.
    precision : "mixed" iterates in FP32 around residuals in FP64 (see `Mixed`) where
        the preconditioner has the stiffness in FP32, and in FP64 where that is not
        enough; "double" always does. The residual at the end is the same.
    fitted : take as much of the guess, lane by lane, as leaves least energy in the
        error: never more than without a guess.
    """
    limits = reference, tolerance, needed, criterion, precision
    return _Lockstep(operator, preconditioner, f, *limits).run(
        guess, max_iterations, watch, fitted
    )


class _Lockstep:
    def __init__(
        self,
        operator: Elasticity,
        preconditioner: Preconditioner,
        f: Any,
        reference: NDArray[np.float64] | None,
        tolerance: float,
        needed: NDArray[np.bool_] | None,
        criterion: StoppingCriterion | None,
        precision: Precision,
    ) -> None:
        self.operator = operator
        self.mixed = precision == "mixed" and applies(operator, preconditioner)
        self.criterion = criterion
        self.preconditioner = preconditioner
        self.backend = operator.backend
        self.f = f
        self.norm = norm = np.sqrt(self.backend.dot(f, f))
        self.reference = norm if reference is None else np.asarray(reference)
        # lanes that were found exact enough
        self.enough = np.zeros(len(norm), dtype=np.bool_)
        # an idle lane may not divide by zero nor ever be waited for
        self.unit = np.where(self.reference > 0.0, self.reference, 1.0)
        self.tolerance = tolerance
        self.needed = np.ones(len(norm), dtype=np.bool_) if needed is None else needed
        self.history: list[list[float]] = []
        self.iterations = 0

    def run(
        self, guess: Any, max_iterations: int, watch: Watch | None, fitted: bool
    ) -> SolveResult:
        xp = self.backend.xp
        u = xp.zeros_like(self.f)
        r, norm = self.f.copy(), self.norm
        if guess is not None:
            u[...] = guess
            r = self.operator.check(u, self.f)
            if fitted:
                self._fit(u, r)
            norm = np.sqrt(self.backend.dot(r, r))
        ending: Ending = "converged"
        initial = relative = norm / self.unit
        while True:
            if not np.isfinite(relative).all():
                ending = "nan"
            if ending != "converged" or self._done(relative):
                break
            before, last = self.iterations, relative
            ending = self._iterate(u, r, relative, max_iterations, watch)
            r = self.operator.check(u, self.f)
            relative = np.sqrt(self.backend.dot(r, r)) / self.unit
            if self.mixed and ending in ("indefinite", "stagnated"):
                # rounding of FP32 may be the cause
                self.mixed, ending = False, "converged"
                self.enough[:] = False
                continue
            if self.iterations == before:
                break
            # who was found by a residual that was not there is found again
            self.enough &= relative <= np.array(self.history[-1]) / _GAIN
            if ending == "converged" and not self._done(relative):
                worst = [np.max(v[self.needed]) for v in (relative, last)]
                # the recurrence says converged, the elements say no: rounding
                if worst[0] > _GAIN * worst[1]:
                    ending = "converged" if self.mixed else "stagnated"
                    self.mixed = False
        precision: Precision = "mixed" if self.mixed else "double"
        return SolveResult(
            u, r, ending, relative, initial, self.history, self.iterations, precision
        )

    def _fit(self, u: Any, r: Any) -> None:
        """Scale an iterate so that its error has the least energy."""
        work = self.backend.dot(u, self.f)
        energy = work - self.backend.dot(u, r)
        factor = ratio(work, energy, (energy > 0.0) & np.isfinite(energy))
        self.backend.scale_into(u, factor, u)
        self.backend.scale_into(r, factor, r)
        self.backend.axpy(r, 1.0 - factor, self.f)

    def _iterate(
        self,
        u: Any,
        r: Any,
        relative: NDArray[np.float64],
        max_iterations: int,
        watch: Watch | None,
    ) -> Ending:
        """One run of conjugate gradients from the residual r; u is updated."""
        active = relative > self.tolerance
        self.enough[:] = False
        if self.criterion is not None:
            self.criterion.begin(u, relative)
        # sizes for the FP32 preconditioner; constant, so that it stays linear
        size = np.where(relative > 0.0, relative, 1.0) * self.unit
        if not self.mixed:
            iteration = self._iteration(u, r, size, active)
            return self._run(iteration, relative, active, max_iterations, watch)
        parts = self.operator, cast("Cycle", self.preconditioner), self.f, u, r
        mixed = Mixed(*parts, self.unit, size, active, self.tolerance)
        ending = self._run(mixed, relative, active, max_iterations, watch)
        mixed.finish()
        return ending

    def _run(
        self,
        iteration: Iteration,
        relative: NDArray[np.float64],
        active: NDArray[np.bool_],
        max_iterations: int,
        watch: Watch | None,
    ) -> Ending:
        def look() -> None:
            if self.criterion is not None:
                self.criterion.look(iteration.iterate)

        while (active & self.needed).any():
            if self.iterations >= max_iterations:
                return "not_converged"
            more = self.iterations + 1 < max_iterations
            ahead = more and self._far(relative, active)
            relative, curvature = iteration.step(look, ahead)
            if not np.isfinite(curvature).all():
                return "nan"
            if (curvature[active] <= 0.0).any():
                return "indefinite"
            self.iterations += 1
            self.history.append(relative.tolist())
            if not np.isfinite(relative).all():
                return "nan"
            moved = active.copy()
            active &= relative > self.tolerance
            if self.criterion is not None:
                found = self.criterion.enough(relative, moved)
                self.enough |= active & found
                if (active & self.enough).any():
                    active &= ~self.enough
                    iteration.hold(self.enough)
            if iteration.exhausted:
                return "stagnated"
            if self._asked_to_stop(relative, watch):
                return "stopped"
        return "converged"

    def _far(self, relative: NDArray[np.float64], active: NDArray[np.bool_]) -> bool:
        """Whether no lane will be done after one iteration more."""
        far = relative > AHEAD * self.tolerance
        if self.criterion is not None:
            far &= self.criterion.progress() > AHEAD
        return bool(far[active].all())

    def _iteration(
        self, u: Any, r: Any, size: NDArray[Any], active: NDArray[Any]
    ) -> Iteration:
        """Let the device iterate alone where the backend can, else step by step."""
        on_device = self.backend.capabilities.device_iteration
        if on_device and isinstance(self.preconditioner, Cycle):
            vectors = (self.operator, self.preconditioner, u, r)
            device = cast("DeviceIteration", self.backend)
            found: Iteration = device.iteration(
                *vectors, self.unit, size, active, self.tolerance
            )
            return found
        return Stepwise(
            self.operator,
            self.preconditioner,
            u,
            r,
            self.unit,
            size,
            active,
            self.tolerance,
        )

    def _done(self, relative: NDArray[np.float64]) -> bool:
        done = self.enough | (relative <= self.tolerance)
        return bool(done[self.needed].all())

    def _asked_to_stop(
        self, relative: NDArray[np.float64], watch: Watch | None
    ) -> bool:
        if watch is None or self.iterations % REPORT_EVERY:
            return False
        return watch(self.iterations, relative)
