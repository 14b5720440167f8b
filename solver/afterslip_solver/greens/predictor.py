"""Initial guesses for the increments of a stepping run."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from afterslip_solver.backend import Backend
from afterslip_solver.greens.checkpoint import State, pack, unpack
from afterslip_solver.greens.dmd import DynamicModes
from afterslip_solver.model import Float
from afterslip_solver.operators import Elasticity

# a remainder this small against its increment is rounding
_NOISE = 1e-9


class Predictor(Protocol):
    """Guess an increment from those before it."""

    def guess(self, f: Any) -> Any:
        """Increment for the right-hand side f, or None for zero."""

    def learn(self, increment: Any) -> None:
        """Take in a solved increment."""

    @property
    def bytes(self) -> int:
        """Memory of what was learnt."""

    def packed(self) -> State:
        """Everything that was learnt, for a checkpoint; names start with predictor."""

    def restore(self, state: State) -> None:
        """Learn again what `packed` holds."""


class NoPredictor:
    """Start every solve from zero."""

    def guess(self, f: Any) -> Any:
        """See `Predictor`."""
        del f

    def learn(self, increment: Any) -> None:
        """See `Predictor`."""

    @property
    def bytes(self) -> int:
        """See `Predictor`."""
        return 0

    def packed(self) -> State:
        """See `Predictor`."""
        return {}

    def restore(self, state: State) -> None:
        """See `Predictor`."""


class AdamsBashforth:
    """Two-point extrapolation: 2 du(i-1) - du(i-2).

    Equation (5) of Murakami et al. (2023), written for increments.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._past: list[Any] = []

    def guess(self, f: Any) -> Any:
        """See `Predictor`."""
        del f
        if len(self._past) < 2:
            return self._past[-1] if self._past else None
        return 2.0 * self._past[-1] - self._past[-2]

    def learn(self, increment: Any) -> None:
        """See `Predictor`."""
        self._past = [*self._past[-1:], increment]

    @property
    def bytes(self) -> int:
        """See `Predictor`."""
        return int(sum(increment.nbytes for increment in self._past))

    def packed(self) -> State:
        """See `Predictor`."""
        return pack(self._backend, "predictor.past", self._past)

    def restore(self, state: State) -> None:
        """See `Predictor`."""
        self._past = unpack(self._backend, "predictor.past", state)


class Galerkin:
    """Best approximation, in energy, from the span of past increments.

    The basis is orthonormal in K^v per lane, so a guess is a sum of projections.
    K^v times a new increment is computed, not taken from its right-hand side, which
    differs by the solver's residual; images of the basis need not be stored. A full
    basis gives up the direction that the newest increment needs least: the oldest
    ones hold nearly all of it.

    Parameters
    ----------
    operator : K^v.
    size : number of directions stored.
    """

    def __init__(self, operator: Elasticity, size: int = 16) -> None:
        self._operator = operator
        self._backend = operator.backend
        self._size = size
        self._basis: list[Any] = []

    def guess(self, f: Any) -> Any:
        """See `Predictor`."""
        if not self._basis:
            return None
        out = self._backend.xp.zeros_like(f)
        self._backend.combine(out, self._backend.dots(self._basis, f), self._basis)
        return out

    def learn(self, increment: Any) -> None:
        """See `Predictor`."""
        backend, basis = self._backend, self._basis
        d = increment.copy()
        image = backend.xp.empty_like(d)
        self._operator.apply(d, image)
        whole = left = backend.dot(d, image)
        shares = np.zeros(len(basis))
        for _ in range(2 if basis else 0):
            parts = backend.dots(basis, image)
            # the second sweep's are rounding
            shares = np.maximum(shares, _shares(parts, whole))
            backend.combine(d, -parts, basis)
            self._operator.apply(d, image)
            left = backend.dot(d, image)
        keep = left > _NOISE**2 * whole
        if not keep.any():
            return
        factor = np.where(keep, 1.0 / np.sqrt(np.where(keep, left, 1.0)), 0.0)
        backend.scale_into(d, factor, d)
        if len(basis) == self._size:
            least = int(np.argmin(shares))
            basis = [*basis[:least], *basis[least + 1 :]]
        self._basis = [*basis, d]

    @property
    def bytes(self) -> int:
        """See `Predictor`."""
        return int(sum(d.nbytes for d in self._basis))

    def packed(self) -> State:
        """See `Predictor`."""
        return pack(self._backend, "predictor.basis", self._basis)

    def restore(self, state: State) -> None:
        """See `Predictor`."""
        self._basis = unpack(self._backend, "predictor.basis", state)


def _shares(parts: NDArray[np.float64], whole: NDArray[np.float64]) -> Float:
    """Energy (m,) of each part (m, lane), of the lane that needs it most."""
    moves = whole > 0.0
    found = np.where(moves, parts**2 / np.where(moves, whole, 1.0), 0.0)
    return np.asarray(found.max(axis=1))


def make_predictor(name: str, operator: Elasticity) -> Predictor:
    """Predictor "galerkin", "dmd", "adams_bashforth" or "none"."""
    if name == "galerkin":
        return Galerkin(operator)
    if name == "dmd":
        return DynamicModes(operator)
    return (
        AdamsBashforth(operator.backend) if name == "adams_bashforth" else NoPredictor()
    )
