"""The V-cycle."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from afterslip_solver.backend import LANES, Backend, Blocks
from afterslip_solver.model import Bool
from afterslip_solver.multigrid.smoother import Chebyshev, LocalSmoother


class Transfer(Protocol):
    """Between a level and the next coarser one."""

    bytes: int

    def restrict(self, r: Any, out: Any) -> None:
        """Out = P^T r."""

    def add_prolonged(self, e: Any, x: Any) -> None:
        """X += P e."""


class Nodal(NamedTuple):
    """The host's part of a `NodalTransfer`.

    Attributes
    ----------
    up : (n_node, n_vertex) CSR, FP32. down : its transpose.
    free, coarse_free : (n, 3) bool, components that are not fixed.
    """

    up: csr_array
    down: csr_array
    free: Bool
    coarse_free: Bool

    @classmethod
    def of(cls, embedding: csr_array, free: Bool, coarse_free: Bool) -> Nodal:
        """Make it of weights (n_node, n_vertex), in their order."""
        weights = embedding.data.astype(np.float32)
        up = csr_array((weights, embedding.indices, embedding.indptr), embedding.shape)
        return cls(up, up.T.tocsr(), free, coarse_free)


class NodalTransfer:
    """Linear fields into quadratic ones: one weight for a node's components."""

    def __init__(self, backend: Backend, host: Nodal) -> None:
        def pack(m: csr_array) -> Any:
            return backend.weights(m.indptr, m.indices, m.data, m.shape[1])

        self._backend = backend
        self._down, self._up = pack(host.down), pack(host.up)
        self._free = backend.asarray(host.free.astype(np.float32))
        self._coarse_free = backend.asarray(host.coarse_free.astype(np.float32))
        self.bytes = 24 * host.up.nnz + 12 * (len(host.free) + len(host.coarse_free))

    def restrict(self, r: Any, out: Any) -> None:
        """See `Transfer`."""
        self._backend.transfer(self._down, self._coarse_free, r, out, False)

    def add_prolonged(self, e: Any, x: Any) -> None:
        """See `Transfer`."""
        self._backend.transfer(self._up, self._free, e, x, True)


class BlockTransfer:
    """A block matrix and its transpose."""

    def __init__(self, backend: Backend, up: Blocks, down: Blocks) -> None:
        self._backend = backend
        self._up = up
        self._down = down
        self.bytes = up.bytes + down.bytes

    def restrict(self, r: Any, out: Any) -> None:
        """See `Transfer`."""
        self._backend.multiply(self._down, r, out)

    def add_prolonged(self, e: Any, x: Any) -> None:
        """See `Transfer`."""
        self._backend.add_product(self._up, e, x)


@dataclass(slots=True)
class Level:
    """One level above the coarsest, with its work vectors.

    ``visits`` is how often the next level corrects it: 1 in a V-cycle, 2 in a W-cycle.
    """

    matrix: Blocks
    smoother: Chebyshev
    transfer: Transfer
    b: Any
    x: Any
    r: Any
    local: LocalSmoother | None = None
    visits: int = 1

    @property
    def bytes(self) -> int:
        """Memory of the level."""
        local = 0 if self.local is None else self.local.bytes
        vectors = int(self.b.nbytes + self.x.nbytes + self.r.nbytes)
        matrix = self.matrix.bytes + self.smoother.bytes
        return matrix + self.transfer.bytes + vectors + local

    def twin(self) -> Level:
        """Return the same with work vectors of its own."""
        zeros = self.smoother.backend.xp.zeros_like
        return replace(
            self,
            smoother=self.smoother.twin(),
            b=zeros(self.b),
            x=zeros(self.x),
            r=zeros(self.r),
        )


class Cycle:
    """Symmetric V-cycle in FP32, a fixed linear map on FP64 residuals.

    Parameters
    ----------
    backend : where the levels live.
    levels : finest first.
    coarsest : (n, n) float32 inverse of the coarsest matrix.
    size : unknowns of a node on the coarsest level.
    unit : the matrices are those of K / unit, so that FP32 numbers stay near one.

    Attributes
    ----------
    iteration : of a `DeviceIteration` around this cycle, for every solve.
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
        self.unit = unit
        self.iteration: Any = None
        n = coarsest.shape[0] // size
        data = backend.to_host(coarsest).reshape(n, size, n, size).swapaxes(1, 2)
        columns = np.tile(np.arange(n, dtype=np.int32), n)
        self._coarsest = backend.blocks(
            np.arange(n + 1) * n, columns, data.reshape(-1, size, size), n
        )
        self._coarse_b, self._coarse_x = (
            backend.xp.zeros((n, size, LANES), dtype=np.float32) for _ in range(2)
        )

    @property
    def bytes(self) -> int:
        """Memory of all levels."""
        own = self._coarsest.bytes + int(2 * self._coarse_b.nbytes)
        if self.backend.capabilities.device_iteration:
            # x, p and K p of `iteration`, which is made by the first solve
            own += 3 * int(self.right.nbytes)
        return own + sum(level.bytes for level in self.levels)

    def twin(self) -> Cycle:
        """Return the same with work vectors of its own, for another thread."""
        other, zeros = copy(self), self.backend.xp.zeros_like
        other.levels = [level.twin() for level in self.levels]
        other._coarse_b = zeros(self._coarse_b)  # noqa: SLF001
        other._coarse_x = zeros(self._coarse_x)  # noqa: SLF001
        other.iteration = None
        return other

    @property
    def right(self) -> Any:
        """(n_node, 3, lane) float32, the residual for `descend`."""
        return self.levels[0].b

    def apply(self, r: Any, scale: NDArray[np.float64], out: Any) -> None:
        """Out = M^-1 r.

        Parameters
        ----------
        r : (n_node, 3, lane) float64.
        scale : (lane,) typical size of r; the map is linear, the scale keeps its
            FP32 numbers in range.
        out : like r.
        """
        self.backend.scale_into(r, 1.0 / scale, self.right)
        x = self.descend()
        self.backend.scale_into(x, scale / self.unit, out)

    def inner_iterations(self) -> list[int]:
        """See `Preconditioner`; a cycle has none."""
        return []

    def descend(self, sums: Any = None) -> Any:
        """(n_node, 3, lane) float32, the V-cycle of K / unit applied to ``right``.

        Parameters
        ----------
        sums : on a `DeviceIteration`, gets parts of its inner product with ``right``.
        """
        return self._descend(0, sums)

    def _descend(self, k: int, sums: Any = None) -> Any:
        level = self.levels[k]
        b = level.b
        x, spare = level.smoother.from_zero(b, level.x)
        if level.local is not None:
            level.local.improve(b, x, level.r)
        for left in reversed(range(level.visits)):
            self.backend.residual(level.matrix, b, x, level.r)
            if k + 1 == len(self.levels):
                level.transfer.restrict(level.r, self._coarse_b)
                e = self._coarse_x
                self.backend.multiply(self._coarsest, self._coarse_b, e)
            else:
                level.transfer.restrict(level.r, self.levels[k + 1].b)
                e = self._descend(k + 1)
            level.transfer.add_prolonged(e, x)
            if level.local is not None:
                level.local.improve(b, x, level.r)
            last = sums if left == 0 else None
            x, spare = level.smoother.improve(b, x, spare, last)
        return x
