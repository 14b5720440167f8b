"""One iteration of conjugate gradients after the other, on vectors in FP64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from afterslip_solver.model import Bool, Float
from afterslip_solver.multigrid.preconditioner import Preconditioner
from afterslip_solver.operators.elasticity import Elasticity

Look = Callable[[], None]
# by how much few iterations let a residual or an error fall. After the first two of a
# solve it is 2.4 in the middle, and one in forty more than 5 (trench, 0.5 million
# unknowns). Where one does so just before its end, a lane takes an iteration more.
AHEAD = 5.0


class Iterate(NamedTuple):
    """The vector u + factor x, whose parts are not added.

    Attributes
    ----------
    u : (n_node, 3, lane) float64. x : the same in float32, or None.
    factor : (lane,) on the backend.
    """

    u: Any
    x: Any = None
    factor: Any = None


class Iteration(Protocol):
    """Conjugate gradients on an iterate and its residual.

    Attributes
    ----------
    iterate : as it is; see `Iterate`.
    exhausted : its precision lets the residual fall no further.
    """

    @property
    def iterate(self) -> Iterate:
        """See the class."""

    @property
    def exhausted(self) -> bool:
        """See the class."""

    def step(self, look: Look, ahead: bool = False) -> tuple[Float, Float]:
        """Do one iteration; returns relative residuals and p K p, both by lane.

        Parameters
        ----------
        look : called when ``iterate`` is what this iteration makes, which a device
            may still be computing.
        ahead : the next iteration will be wanted, so a device may begin it before
            the host sees what this one returns.
        """

    def hold(self, lanes: Bool) -> None:
        """Leave some lanes (lane,) as they are from now on."""


class Stepwise:
    """Iterations of the backend's operations on vectors.

    Parameters
    ----------
    u, r : (n_node, 3, lane) float64 iterate and residual, both updated.
    unit : (lane,) reference norms. size : (lane,) sizes of r.
    active : (lane,) lanes that move. tolerance : at which one stops.
    """

    exhausted = False

    def __init__(
        self,
        operator: Elasticity,
        preconditioner: Preconditioner,
        u: Any,
        r: Any,
        unit: Float,
        size: Float,
        active: Bool,
        tolerance: float,
    ) -> None:
        self._operator, self._preconditioner = operator, preconditioner
        self._backend, self._unit = operator.backend, unit
        self._tolerance = tolerance
        self._size, self._active = size, active.copy()
        self.iterate, self._u, self._r = Iterate(u), u, r
        xp = self._backend.xp
        self._z, self._p, self._q = (xp.zeros_like(r) for _ in range(3))
        self._rz = self._pq = np.zeros(len(size))

    def hold(self, lanes: Bool) -> None:
        """See `Iteration`."""
        self._active &= ~lanes

    def step(self, look: Look, ahead: bool = False) -> tuple[Float, Float]:
        """See `Iteration`."""
        del ahead
        backend, z, p, q = self._backend, self._z, self._p, self._q
        self._preconditioner.apply(self._r, self._size, z)
        new = backend.dot(self._r, z)
        top, bottom = new, self._rz
        if self._preconditioner.varies:
            # conjugate to the last direction, whatever made z (Golub & Ye 1999)
            top, bottom = -backend.dot(z, q), self._pq
        backend.xpay(z, ratio(top, bottom, self._active & (bottom > 0.0)), p)
        self._rz = new
        self._operator.apply(p, q)
        self._pq = pq = np.asarray(backend.dot(p, q))
        # a lane that breaks down stays as it is
        alpha = ratio(new, pq, self._active & (pq > 0.0) & np.isfinite(pq))
        backend.axpy(self._u, alpha, p)
        backend.axpy(self._r, -alpha, q)
        relative = np.sqrt(backend.dot(self._r, self._r)) / self._unit
        self._active &= relative > self._tolerance
        look()
        return relative, pq


def ratio(top: NDArray[Any], bottom: NDArray[Any], where: Bool) -> Float:
    """Return top / bottom in some lanes and 0 in the others."""
    return np.where(where, top / np.where(where, bottom, 1.0), 0.0)
