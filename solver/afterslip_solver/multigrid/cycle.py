"""The V-cycle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from afterslip_solver.backend import LANES, Backend, Blocks
from afterslip_solver.multigrid.smoother import Chebyshev


class Transfer(Protocol):
    """Between a level and the next coarser one."""

    bytes: int

    def restrict(self, r: Any, out: Any) -> None:
        """Out = P^T r."""

    def add_prolonged(self, e: Any, x: Any) -> None:
        """X += P e."""


class NodalTransfer:
    """Linear fields into quadratic ones: one weight for a node's components.

    Parameters
    ----------
    embedding : (n_node, n_vertex) sparse, host.
    free, coarse_free : (n, 3) bool, components that are not fixed.
    """

    def __init__(
        self, backend: Backend, embedding: Any, free: Any, coarse_free: Any
    ) -> None:
        def pack(m: Any) -> Any:
            weights = m.data.astype(np.float32)
            return backend.weights(m.indptr, m.indices, weights, m.shape[1])

        self._backend = backend
        self._down = pack(embedding.T.tocsr())
        self._up = pack(embedding.tocsr())
        self._free = backend.asarray(free.astype(np.float32))
        self._coarse_free = backend.asarray(coarse_free.astype(np.float32))
        self.bytes = 24 * embedding.nnz + 12 * (len(free) + len(coarse_free))

    def restrict(self, r: Any, out: Any) -> None:
        """See `Transfer`."""
        self._backend.transfer(self._down, self._coarse_free, r, out, False)

    def add_prolonged(self, e: Any, x: Any) -> None:
        """See `Transfer`."""
        self._backend.transfer(self._up, self._free, e, x, True)


class BlockTransfer:
    """Between aggregates: a block matrix and its transpose."""

    def __init__(self, backend: Backend, up: Blocks, down: Blocks) -> None:
        self._backend = backend
        self._up = up
        self._down = down
        shape = (up.n_rows, up.rows, LANES)
        self._fine = backend.xp.zeros(shape, dtype=np.float32)
        self.bytes = up.bytes + down.bytes + int(self._fine.nbytes)

    def restrict(self, r: Any, out: Any) -> None:
        """See `Transfer`."""
        self._backend.multiply(self._down, r, out)

    def add_prolonged(self, e: Any, x: Any) -> None:
        """See `Transfer`."""
        self._backend.multiply(self._up, e, self._fine)
        x += self._fine


@dataclass(slots=True)
class Level:
    """One level above the coarsest, with its work vectors."""

    matrix: Blocks
    smoother: Chebyshev
    transfer: Transfer
    b: Any
    x: Any
    r: Any


class Cycle:
    """Symmetric V-cycle in FP32, a fixed linear map on FP64 residuals.

    Parameters
    ----------
    backend : where the levels live.
    levels : finest first.
    coarsest : (n, n) float32 inverse of the coarsest matrix.
    size : unknowns of a node on the coarsest level.
    unit : the matrices are those of K / unit, so that FP32 numbers stay near one.
    """

    varies = False

    def __init__(
        self,
        backend: Backend,
        levels: list[Level],
        coarsest: Any,
        size: int,
        unit: float,
    ) -> None:
        self.backend = backend
        self.levels = levels
        self._coarsest = coarsest
        self._unit = unit
        shape = (coarsest.shape[0] // size, size, LANES)
        self._coarse_b = backend.xp.zeros(shape, dtype=np.float32)

    @property
    def bytes(self) -> int:
        """Memory of all levels."""
        total = int(self._coarsest.nbytes)
        for level in self.levels:
            total += level.matrix.bytes + level.smoother.bytes + level.transfer.bytes
            total += int(level.b.nbytes + level.x.nbytes + level.r.nbytes)
        return total

    def apply(self, r: Any, scale: NDArray[np.float64], out: Any) -> None:
        """Out = M^-1 r.

        Parameters
        ----------
        r : (n_node, 3, lane) float64.
        scale : (lane,) typical size of r; the map is linear, the scale keeps its
            FP32 numbers in range.
        out : like r.
        """
        top = self.levels[0]
        self.backend.scale_into(r, 1.0 / scale, top.b)
        x = self._descend(0)
        self.backend.scale_into(x, scale / self._unit, out)

    def inner_iterations(self) -> list[int]:
        """See `Preconditioner`; a cycle has none."""
        return []

    def _descend(self, k: int) -> Any:
        level = self.levels[k]
        last = k + 1 == len(self.levels)
        x = level.smoother.from_zero(level.b, level.x)
        self.backend.residual(level.matrix, level.b, x, level.r)
        if last:
            level.transfer.restrict(level.r, self._coarse_b)
            b = self._coarse_b
            e = (self._coarsest @ b.reshape(-1, LANES)).reshape(b.shape)
        else:
            level.transfer.restrict(level.r, self.levels[k + 1].b)
            e = self._descend(k + 1)
        level.transfer.add_prolonged(e, x)
        # which buffer holds x changes with every sweep; the smoother keeps the other
        level.x = level.smoother.improve(level.b, x)
        return level.x
