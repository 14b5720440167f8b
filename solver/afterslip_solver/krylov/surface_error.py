"""How exact an iterate is on the recorded surface."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from afterslip_solver.backend.protocols import VectorOps
from afterslip_solver.krylov.iteration import Iterate
from afterslip_solver.model import Bool, Float

# the sum of the increments to come, predicted from the last one and the rate at which
# residuals shrink, is between 0.37 and 2.7 times the true error (boxes of Maxwell and
# Burgers rock with contrasts of 1e3, the trench with 0.07 and 0.5 million unknowns)
_SAFETY = 3.0
# iterations over which the rate is taken, and the slowest one that is believed
_BACK = 3
_SLOWEST = 0.95


class StoppingCriterion(Protocol):
    """Decides, lane by lane, when a solve is exact enough for its purpose."""

    def begin(self, u: Any, relative: Float) -> None:
        """See the iterate and its relative residuals (lane,) before the first step."""

    def look(self, iterate: Iterate) -> None:
        """Receive an iterate, without waiting for its values."""

    def enough(self, relative: Float, active: Bool) -> Bool:
        """Return the lanes in which that iterate needs no more.

        Parameters
        ----------
        relative : (lane,) its relative residuals. active : (lane,) that have moved.
        """

    def progress(self) -> Float:
        """(lane,) estimated error over what is allowed; infinite while unknown."""


class SurfaceErrorCriterion:
    """Stops a lane when its error on a trace is small enough.

    Conjugate gradients with a good preconditioner shrink errors by about the same
    factor in each iteration. So the error is about the last increment times
    rho / (1 - rho), rho the rate of the residuals (after Hestenes & Stiefel 1952, J.
    Res. NBS 49, 409-436, who sum increments for the energy norm).

    Parameters
    ----------
    backend : of the iterates. trace : (n,) int64 on it, rows of an iterate.
    allowed : takes the largest value of each lane (lane,) to the error it may have.

    Attributes
    ----------
    error : (lane,) estimated largest error on the trace; infinite while unknown.
    limit : (lane,) that is allowed.
    """

    def __init__(
        self,
        backend: VectorOps,
        trace: Any,
        allowed: Callable[[Float], Float],
    ) -> None:
        self._backend, self._trace, self._allowed = backend, trace, allowed
        self.error = self.limit = np.zeros(0)

    def begin(self, u: Any, relative: Float) -> None:
        """See `StoppingCriterion`."""
        self._before = u[self._trace]
        self._past: list[NDArray[np.float64]] = [relative]
        self.error = np.where(relative > 0.0, np.inf, 0.0)
        self.limit = np.zeros(len(relative))

    def progress(self) -> Float:
        """See `StoppingCriterion`."""
        known = self.limit > 0.0
        part = self.error / np.where(known, self.limit, 1.0)
        return np.where(known, part, np.inf)

    def look(self, iterate: Iterate) -> None:
        """See `StoppingCriterion`."""
        found = self._backend.moved(*iterate, self._trace, self._before)
        self._sizes = self._backend.later(found)

    def enough(self, relative: Float, active: Bool) -> Bool:
        """See `StoppingCriterion`."""
        moved, size = self._sizes()
        self._past.append(relative)
        self.limit = self._allowed(size)
        count = len(self._past) - 1
        # the first iteration shows the rate of the load more than that of the method
        back = min(_BACK, max(count - 1, 1))
        earlier = self._past[-1 - back]
        unknown = (moved == 0.0) | (earlier == 0.0)
        rate = (relative / np.where(unknown, 1.0, earlier)) ** (1.0 / back)
        rate = np.minimum(rate, _SLOWEST)
        found = _SAFETY * moved * rate / (1.0 - rate)
        # of lanes that stay, an iterate put together anew shows rounding only
        self.error = np.where(unknown | ~active, self.error, found)
        return np.asarray((self.error <= self.limit) & (count > 1))
