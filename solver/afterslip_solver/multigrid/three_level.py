"""The preconditioner of Murakami et al. (2023): conjugate gradients on three levels.

Lines 7 to 15 of their Algorithm 2 in FP32: a rough solve for the translations of
aggregates starts one on linear elements, which starts one on quadratic elements. All
are block-Jacobi conjugate gradients, so the whole is not one linear map. The
differences from the print are listed in docs/baseline.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from afterslip_solver.backend import LANES, Backend, Blocks
from afterslip_solver.model import Bool
from afterslip_solver.multigrid.cycle import Nodal, NodalTransfer
from afterslip_solver.multigrid.uniform import (
    coarse_matrix,
    translations,
    uniform_aggregates,
)
from afterslip_solver.operators.elasticity import Elasticity, HostMatrix


@dataclass(frozen=True, slots=True)
class ThreeLevelSettings:
    """Section 5.1 of Murakami et al. (2023); quadratic elements first.

    Attributes
    ----------
    tolerances : relative residual at which an inner loop ends.
    limits : largest number of its iterations.
    per_aggregate : vertices of an aggregate on average. The paper names no number;
        this one gives the coarse matrix about the paper's share of the fine one's
        memory, 420 MB of 1.19 GB.
    """

    tolerances: tuple[float, float, float] = (0.5, 0.25, 0.15)
    limits: tuple[int, int, int] = (30, 80, 300)
    per_aggregate: float = 3.0


class InnerLoop:
    """Conjugate gradients in FP32 with 3 x 3 block Jacobi; lanes in lockstep.

    Algorithm 2 (b). The worst lane decides when it ends (their section 4.2).

    Parameters
    ----------
    matrix : of the level. inverse : (n, 3, 3) float32 inverse diagonal blocks.
    tolerance : of the residual's norm over the right-hand side's.
    limit : largest number of iterations.
    """

    def __init__(
        self,
        backend: Backend,
        matrix: Blocks,
        inverse: Any,
        tolerance: float,
        limit: int,
    ) -> None:
        self.backend = backend
        self.matrix = matrix
        self.inverse = inverse
        self.iterations = 0
        self._tolerance = tolerance
        self._limit = limit
        shape = (matrix.n_rows, 3, LANES)
        self.b, self.x, self._e, self._p, self._q, self._z = (
            backend.xp.zeros(shape, dtype=np.float32) for _ in range(6)
        )

    @property
    def bytes(self) -> int:
        """Memory of the level."""
        return int(self.matrix.bytes + self.inverse.nbytes + 6 * self.b.nbytes)

    def solve(self) -> None:
        """Improve ``x`` for the right-hand side ``b``."""
        backend, e, p, q, z = self.backend, self._e, self._p, self._q, self._z
        size = np.sqrt(backend.dot(self.b, self.b))
        unit = np.where(size > 0.0, size, 1.0)
        backend.residual(self.matrix, self.b, self.x, e)
        backend.scale_blocks(self.inverse, e, 1.0, z)
        rho, square = backend.dot(e, z), backend.dot(e, e)
        before = np.zeros(LANES)
        for _ in range(self._limit):
            if not (np.sqrt(square) / unit).max() > self._tolerance:
                return
            # the first direction is z
            backend.xpay(z, _ratio(rho, before), p)
            backend.multiply(self.matrix, p, q)
            before, sums = rho, backend.partial_dot(p, q)
            rho, square = backend.descend(self.inverse, rho, sums, p, q, self.x, e, z)
            self.iterations += 1


class ThreeLevel:
    """Three inner loops, coarsest first; see `Preconditioner`.

    Parameters
    ----------
    loops : on quadratic elements, linear elements and aggregates.
    transfers : between the first two, and between the last two.
    start : (sparse, mask) means over aggregates of a field on quadratic elements.
    unit : the matrices are those of K / unit.
    """

    varies = True

    def __init__(
        self,
        backend: Backend,
        loops: list[InnerLoop],
        transfers: list[NodalTransfer],
        start: tuple[Any, Any],
        unit: float,
    ) -> None:
        self.backend = backend
        self.loops = loops
        self._transfers = transfers
        self._start = start
        self._unit = unit

    @property
    def bytes(self) -> int:
        """Memory of all levels."""
        levels = sum(loop.bytes for loop in self.loops)
        return levels + int(sum(transfer.bytes for transfer in self._transfers))

    def apply(self, r: Any, scale: NDArray[np.float64], out: Any) -> None:
        """Out = M^-1 r; see `Preconditioner`."""
        backend = self.backend
        fine, linear, coarse = self.loops
        backend.scale_into(r, 1.0 / scale, fine.b)
        backend.scale_blocks(fine.inverse, fine.b, 1.0, fine.x)
        self._transfers[0].restrict(fine.b, linear.b)
        self._transfers[1].restrict(linear.b, coarse.b)
        matrix, mask = self._start
        backend.transfer(matrix, mask, fine.x, coarse.x, False)
        coarse.solve()
        linear.x[...] = 0.0
        self._transfers[1].add_prolonged(coarse.x, linear.x)
        linear.solve()
        fine.x[...] = 0.0
        self._transfers[0].add_prolonged(linear.x, fine.x)
        fine.solve()
        backend.scale_into(fine.x, scale / self._unit, out)

    def inner_iterations(self) -> list[int]:
        """See `Preconditioner`."""
        counts = [loop.iterations for loop in self.loops]
        for loop in self.loops:
            loop.iterations = 0
        return counts


def build_three_level(
    operator: Elasticity, settings: ThreeLevelSettings | None = None
) -> ThreeLevel:
    """Make the three levels for an operator."""
    settings = settings or ThreeLevelSettings()
    backend, space = operator.backend, operator.space
    unit = operator.unit
    linear = operator.beside_matrix(operator.on_linear_elements)
    fixed = np.ascontiguousarray(space.fixed[space.vertices])
    own = uniform_aggregates(space.nodes[space.vertices], settings.per_aggregate)
    coarse, fixed_below = coarse_matrix(linear, own, fixed)
    step = translations(own)
    choices = list(zip(settings.tolerances, settings.limits, strict=True))
    moves = ~(space.fixed[:, :, None] | space.fixed[:, None, :])
    inverse = np.linalg.inv(operator.diagonal / unit) * moves
    matrix = operator.stiffness(unit, np.float32)
    loops = [
        InnerLoop(backend, matrix, backend.asarray(inverse, np.float32), *choices[0]),
        _stored(backend, linear, unit, choices[1]),
        _stored(backend, coarse, unit, choices[2]),
    ]
    transfers = [
        NodalTransfer(backend, Nodal.of(space.embedding, ~space.fixed, ~fixed)),
        NodalTransfer(backend, Nodal.of(step, ~fixed, ~fixed_below)),
    ]
    start = _means(backend, step, space.vertices, space.n_node, fixed_below)
    return ThreeLevel(backend, loops, transfers, start, unit)


def _stored(
    backend: Backend, host: HostMatrix, unit: float, choice: tuple[float, int]
) -> InnerLoop:
    n = len(host.indptr) - 1
    data = (host.data / unit).astype(np.float32)
    matrix = backend.blocks(host.indptr, host.indices, data, n)
    rows = np.repeat(np.arange(n), np.diff(host.indptr))
    diagonal = host.data[rows == host.indices] / unit
    inverse = backend.asarray(np.linalg.inv(diagonal), np.float32)
    return InnerLoop(backend, matrix, inverse, *choice)


def _means(
    backend: Backend, step: csr_array, vertices: Any, n_node: int, fixed_below: Bool
) -> tuple[Any, Any]:
    """Means over aggregates of nodal values, and the mask of what can move."""
    down = step.T.tocsr()
    weights = np.repeat(1.0 / np.diff(down.indptr), np.diff(down.indptr))
    columns = vertices[down.indices]
    matrix = backend.weights(down.indptr, columns, weights.astype(np.float32), n_node)
    return matrix, backend.asarray((~fixed_below).astype(np.float32))


def _ratio(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """Divide a by b; 0 where nothing is left to do."""
    return np.asarray(np.where(b > 0.0, a / np.where(b > 0.0, b, 1.0), 0.0))
