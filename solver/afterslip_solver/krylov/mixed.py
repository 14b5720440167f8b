"""Conjugate gradients in FP32 around residuals in FP64.

A correction x is sought in FP32 while its residual is updated by the recurrence. When
that has fallen far enough x is added to the iterate in FP64 and the residual computed
anew, so that rounding counts relative to the residual and not to the load (residual
replacement: van der Vorst & Ye 2000, SIAM J. Sci. Comput. 22, 835-852). The direction
stays, so no iteration is lost.
"""

from __future__ import annotations

from typing import Any, Protocol, cast

import numpy as np

from afterslip_solver.backend import Backend, Blocks
from afterslip_solver.backend.protocols import DeviceIteration
from afterslip_solver.krylov.iteration import AHEAD, Iterate, Look, ratio
from afterslip_solver.model import Bool, Float
from afterslip_solver.multigrid.cycle import Cycle
from afterslip_solver.multigrid.preconditioner import Preconditioner
from afterslip_solver.operators.elasticity import Elasticity

# fall of the residual after which it is computed anew. What FP32 leaves of a residual
# grows as (length / element)^2, to about 3e-6 of the load at 32 million unknowns.
DROP = 1e-3
# a residual that was computed anew and has not fallen so far shows rounding only
_GAIN = 0.5
# the same over what the recurrence said: from here on the recurrence starts anew
_DRIFT = 2.0
# iterations in which it should have fallen far. Where they are not enough, rounding in
# FP32 costs directions their conjugacy: such solves took two to four times as many.
_PATIENCE = 64


def applies(operator: Elasticity, preconditioner: Preconditioner) -> bool:
    """Say whether there is an FP32 matrix of the same stiffness to iterate with."""
    if operator.single is None or operator.springs is not None:
        return False
    if not isinstance(preconditioner, Cycle):
        return False
    return preconditioner.levels[0].matrix is operator.single


class SingleIteration(Protocol):
    """Iterations in FP32 on x and ``cycle.right``, its residual.

    Attributes
    ----------
    x : (n_node, 3, lane) float32, what was found. p : the last direction.
    begun : an iteration was begun that `step` has not returned.
    """

    x: Any
    p: Any

    @property
    def begun(self) -> bool:
        """See the class."""

    def step(self, look: Look, ahead: bool = False) -> tuple[Float, Float]:
        """See `Iteration`."""

    def hold(self, lanes: Bool) -> None:
        """See `Iteration`."""

    def rescale(self, factor: Float, unit: Float) -> None:
        """Go on with a residual in other units.

        Parameters
        ----------
        factor : (lane,) old units in new ones, in which p would be so many times what
            it is; 0 forgets it. unit : (lane,) new reference norms.
        """


class SingleStepwise:
    """Iterations of the backend's operations on vectors; see `SingleIteration`.

    Parameters
    ----------
    matrix : the stiffness of the cycle's first level.
    unit : (lane,) reference norms. active : (lane,) lanes that move.
    tolerance : at which one stops.
    """

    begun = False

    def __init__(
        self,
        backend: Backend,
        matrix: Blocks,
        cycle: Cycle,
        unit: Float,
        active: Bool,
        tolerance: float,
    ) -> None:
        self._backend, self._matrix, self._cycle = backend, matrix, cycle
        self._unit, self._tolerance = unit, tolerance
        self._active = active.copy()
        zeros = backend.xp.zeros_like
        self.x, self.p, self._q = (zeros(cycle.right) for _ in range(3))
        self._rz = np.zeros(len(unit))

    def hold(self, lanes: Bool) -> None:
        """See `Iteration`."""
        self._active &= ~lanes

    def rescale(self, factor: Float, unit: Float) -> None:
        """See `SingleIteration`."""
        # p stays in the old units, so that what it is multiplied by takes a factor
        self._rz, self._unit = self._rz * factor, unit

    def step(self, look: Look, ahead: bool = False) -> tuple[Float, Float]:
        """See `Iteration`."""
        del ahead
        backend, b, p, q = self._backend, self._cycle.right, self.p, self._q
        z = self._cycle.descend()
        new = backend.dot(b, z)
        backend.xpay(z, ratio(new, self._rz, self._active & (self._rz > 0.0)), p)
        self._rz = new
        backend.multiply(self._matrix, p, q)
        pq = np.asarray(backend.dot(p, q))
        # a lane that breaks down stays as it is
        alpha = ratio(new, pq, self._active & (pq > 0.0) & np.isfinite(pq))
        backend.axpy(self.x, alpha, p)
        backend.axpy(b, -alpha, q)
        relative = np.sqrt(backend.dot(b, b)) / self._unit
        self._active &= relative > self._tolerance
        look()
        return relative, pq


class Mixed:
    """Iterations in FP32 whose residual is computed anew when it has fallen far.

    Parameters
    ----------
    operator, cycle : that `applies` to.
    f : (n_node, 3, lane) float64. u, r : like f, iterate and residual, both updated.
    unit : (lane,) reference norms. size : (lane,) sizes of r.
    active : (lane,) lanes that move. tolerance : at which one stops.

    Attributes
    ----------
    exhausted : FP32 is not enough: the residual, computed anew, has not fallen, or
        falls too slowly.
    """

    def __init__(
        self,
        operator: Elasticity,
        cycle: Cycle,
        f: Any,
        u: Any,
        r: Any,
        unit: Float,
        size: Float,
        active: Bool,
        tolerance: float,
    ) -> None:
        self._operator, self._cycle, self._backend = operator, cycle, operator.backend
        self._f, self._u, self._r = f, u, r
        self._unit, self._tolerance = unit, tolerance
        self._active = active.copy()
        self._resize(size)
        self.exhausted = False
        self._since = 0
        self._far = True
        self._backend.scale_into(r, 1.0 / size, cycle.right)
        self._inner = self._iteration(size)

    def _resize(self, size: Float) -> None:
        self._size = size
        self._factor = self._backend.asarray(size / self._cycle.unit)

    def _iteration(self, size: Float) -> SingleIteration:
        matrix, backend = cast("Blocks", self._operator.single), self._backend
        cycle, limits = self._cycle, (self._unit / size, self._active, self._tolerance)
        if not backend.capabilities.device_iteration:
            return SingleStepwise(backend, matrix, cycle, *limits)
        if cycle.iteration is None:
            device = cast("DeviceIteration", backend)
            cycle.iteration = device.single_iteration(matrix, cycle)
        cycle.iteration.begin(*limits)
        return cast("SingleIteration", cycle.iteration)

    @property
    def iterate(self) -> Iterate:
        """See `Iteration`."""
        return Iterate(self._u, self._inner.x, self._factor)

    def hold(self, lanes: Bool) -> None:
        """See `Iteration`."""
        self._active &= ~lanes
        self._inner.hold(lanes)

    def step(self, look: Look, ahead: bool = False) -> tuple[Float, Float]:
        """See `Iteration`."""
        relative, curvature = self._inner.step(look, ahead and self._far)
        self._active &= relative > self._tolerance
        left, end = relative * self._unit, DROP * self._size
        self._since += 1
        # an iteration that was begun ends with the residual that it began with
        if not self._inner.begun and (left < end)[self._active].any():
            self._since = 0
            relative = self._renew(relative)
            self._far = True
        else:
            self.exhausted = self._since >= _PATIENCE
            self._far = bool((left > AHEAD * end)[self._active].all())
        return relative, curvature

    def finish(self) -> None:
        """Put everything that was found into u."""
        factor = self._size / self._cycle.unit
        self._backend.axpy(self._u, factor, self._inner.x)
        self._inner.x[...] = 0.0

    def _renew(self, expected: Float) -> Float:
        """Compute the residual anew and go on from it."""
        backend = self._backend
        self.finish()
        self._operator.apply(self._u, self._r)
        minus = -np.ones(len(self._size))
        backend.xpay(self._f, minus, self._r)
        norm = np.sqrt(backend.dot(self._r, self._r))
        self.exhausted = bool((norm > _GAIN * self._size)[self._active].any())
        new = np.where(np.isfinite(norm) & (norm > 0.0), norm, self._size)
        backend.scale_into(self._r, 1.0 / new, self._cycle.right)
        # the direction belongs to a residual that was there
        there = norm <= _DRIFT * expected * self._unit
        factor = np.where(there, self._size / new, 0.0)
        self._inner.rescale(factor, self._unit / new)
        self._resize(new)
        return np.asarray(norm / self._unit)
