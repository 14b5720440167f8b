"""Preconditioned conjugate gradients, lanes in lockstep with their own scalars."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from afterslip_solver.krylov.result import Outcome, SolveResult
from afterslip_solver.multigrid.preconditioner import Preconditioner
from afterslip_solver.operators.elasticity import Elasticity

Watch = Callable[[int, NDArray[np.float64]], bool]
REPORT_EVERY = 10


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
    """
    return _Lockstep(operator, preconditioner, f, reference, tolerance, needed).run(
        guess, max_iterations, watch
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
    ) -> None:
        self.operator = operator
        self.preconditioner = preconditioner
        self.backend = operator.backend
        self.f = f
        norm = np.sqrt(self.backend.dot(f, f))
        self.reference = norm if reference is None else np.asarray(reference)
        self.idle = norm == 0.0
        # an idle lane may not divide by zero nor ever be waited for
        self.unit = np.where(self.reference > 0.0, self.reference, 1.0)
        self.tolerance = tolerance
        self.needed = np.ones(len(norm), dtype=np.bool_) if needed is None else needed
        self.history: list[list[float]] = []
        self.iterations = 0

    def run(self, guess: Any, max_iterations: int, watch: Watch | None) -> SolveResult:
        xp = self.backend.xp
        u = xp.zeros_like(self.f)
        r = self.f.copy()
        if guess is not None:
            u[...] = guess
            r = self.operator.check(u, self.f)
        outcome: Outcome = "converged"
        initial = relative = np.sqrt(self.backend.dot(r, r)) / self.unit
        while True:
            if not np.isfinite(relative).all():
                outcome = "nan"
            if outcome != "converged" or self._done(relative):
                break
            before = self.iterations
            outcome = self._iterate(u, r, max_iterations, watch)
            r = self.operator.check(u, self.f)
            relative = np.sqrt(self.backend.dot(r, r)) / self.unit
            if self.iterations == before:
                break
        return SolveResult(
            u, r, outcome, relative, initial, self.history, self.iterations
        )

    def _iterate(
        self, u: Any, r: Any, max_iterations: int, watch: Watch | None
    ) -> Outcome:
        """One run of conjugate gradients from the residual r, both updated."""
        backend = self.backend
        z, q = backend.xp.empty_like(r), backend.xp.empty_like(r)
        relative = np.sqrt(backend.dot(r, r)) / self.unit
        active = relative > self.tolerance
        # sizes for the FP32 preconditioner; constant, so that it stays linear
        size = np.where(relative > 0.0, relative, 1.0) * self.unit
        self.preconditioner.apply(r, size, z)
        p = z.copy()
        rz = backend.dot(r, z)
        while (active & self.needed).any():
            if self.iterations >= max_iterations:
                return "not_converged"
            self.operator.apply(p, q)
            pq = backend.dot(p, q)
            if not np.isfinite(pq).all():
                return "nan"
            if (pq[active] <= 0.0).any():
                return "not_converged"
            alpha = np.where(active, rz / np.where(active, pq, 1.0), 0.0)
            backend.axpy(u, alpha, p)
            backend.axpy(r, -alpha, q)
            relative = np.sqrt(backend.dot(r, r)) / self.unit
            self.iterations += 1
            self.history.append(relative.tolist())
            if not np.isfinite(relative).all():
                return "nan"
            active &= relative > self.tolerance
            if self._asked_to_stop(relative, watch):
                return "stopped"
            if not (active & self.needed).any():
                break
            self.preconditioner.apply(r, size, z)
            new = backend.dot(r, z)
            top, bottom = new, rz
            if self.preconditioner.varies:
                # conjugate to the last direction, whatever made z (Golub & Ye 1999)
                top, bottom = -backend.dot(z, q), pq
            beta = np.where(active, top / np.where(bottom > 0.0, bottom, 1.0), 0.0)
            backend.xpay(z, beta, p)
            rz = new
        return "converged"

    def _done(self, relative: NDArray[np.float64]) -> bool:
        return bool((relative[self.needed] <= self.tolerance).all())

    def _asked_to_stop(
        self, relative: NDArray[np.float64], watch: Watch | None
    ) -> bool:
        if watch is None or self.iterations % REPORT_EVERY:
            return False
        return watch(self.iterations, relative)
