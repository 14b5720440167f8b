"""The multigrid hierarchy of a model cut into parts.

The levels of the mesh's quadratic and linear elements are divided like the elements.
Those below, of parents and aggregates, are small: every part holds them all and does
the same work on them, after the residual has been summed over the parts. They are those
of the whole model, so that a solve needs as many iterations as on one device.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import bsr_array, csr_array, diags_array

from afterslip_solver.backend import LANES, Blocks
from afterslip_solver.backend.protocols import LocalRows
from afterslip_solver.jit.threads import over
from afterslip_solver.mesh.tables.bisection import compact_order
from afterslip_solver.model import Bool, Float, Int, TetMesh
from afterslip_solver.multigrid.aggregation import HostLevel, aggregate
from afterslip_solver.multigrid.coarse_levels import balanced
from afterslip_solver.multigrid.cycle import (
    BlockTransfer,
    Cycle,
    Level,
    Nodal,
    NodalTransfer,
    Transfer,
)
from afterslip_solver.multigrid.hierarchy import (
    aggregated_level,
    coarsest_inverse,
    free_inverse,
    inverse_blocks,
)
from afterslip_solver.multigrid.local_smoothing import (
    concentrated,
    rows_of_stiffness,
    slow_energy,
)
from afterslip_solver.multigrid.nested import galerkin
from afterslip_solver.multigrid.settings import MultigridSettings
from afterslip_solver.multigrid.smoother import (
    Chebyshev,
    LocalSmoother,
    largest_eigenvalue,
    random_vector,
)
from afterslip_solver.operators import Elasticity, assembly
from afterslip_solver.operators.elasticity import HostMatrix, diagonal_blocks
from afterslip_solver.operators.parents import ancestors
from afterslip_solver.operators.pattern import matrix_pattern
from afterslip_solver.parallel.partition import PartitionError
from afterslip_solver.parallel.rank_backend import RankBackend, RankBlocks
from afterslip_solver.parallel.rank_group import RankEndpoint

# what a part asks the whole for
LEVELS, SLOW = "levels", "slow"
# vertices that lie side by side in the whole's order
_BLOCK = 64


@dataclass(frozen=True, eq=False, slots=True)
class Piece:
    """A part's share of the matrix of linear elements.

    Attributes
    ----------
    vertices : (n,) the mesh's number of each row. matrix : summed over the part.
    unit : Pa m, the same on all parts; levels are of K / unit.
    """

    vertices: Int
    matrix: HostMatrix
    unit: float


@dataclass(frozen=True, eq=False, slots=True)
class Share:
    """What a part needs of the whole hierarchy.

    Attributes
    ----------
    sizes : (n_vertex,) scale of each of the part's vertices.
    prolongation : from all of the next level to the part's vertices.
    below, coarsest : the whole's levels, scaled by `balanced` but the coarsest.
    """

    sizes: Float
    prolongation: bsr_array
    below: list[HostLevel]
    coarsest: bsr_array


class Coordinator:
    """Coarse levels of the whole model from what the parts hand in.

    Parameters
    ----------
    mesh : of the model. fixed : (n_node, 3) bool.
    """

    def __init__(
        self, mesh: TetMesh, fixed: Bool, settings: MultigridSettings | None = None
    ) -> None:
        self._settings = settings or MultigridSettings()
        vertices = mesh.nodes[: mesh.n_vertex]
        order = compact_order(vertices, _BLOCK)
        self._vertices, self._fixed = vertices[order], fixed[order]
        self._number = np.empty_like(order)
        self._number[order] = np.arange(len(order))
        cells = self._number[mesh.cells].astype(np.int32)
        self._cells = cells
        self._parents = ancestors(cells, np.arange(len(order)))

    def shares(self, pieces: Sequence[Piece]) -> list[Share]:
        """Sum the pieces, go down, and cut the prolongation for each part."""
        numbers = [self._number[piece.vertices] for piece in pieces]
        matrices = [piece.matrix for piece in pieces]
        levels, coarsest = self.aggregates(lambda: self._sum(matrices, numbers))
        if not levels:
            message = f"{len(self._number)} vertices are too few for several devices"
            raise PartitionError(message)
        (top, *below), sizes = balanced(levels, pieces[0].unit, len(self._number))
        return [
            Share(sizes[rows], _rows(top.prolongation, rows), below, coarsest)
            for rows in numbers
        ]

    def slow(self, energies: Sequence[Float]) -> list[Bool]:
        """Mark the elements of all parts that hold most of a slow error's energy."""
        chosen = concentrated(np.concatenate(energies), self._settings.local_share)
        return np.split(chosen, np.cumsum([len(e) for e in energies])[:-1])

    def _sum(
        self, matrices: Sequence[HostMatrix], numbers: Sequence[Int]
    ) -> HostMatrix:
        """Sum pieces whose rows have those numbers."""
        n = len(self._number)
        indptr, indices = matrix_pattern(self._cells, n)
        data = np.zeros((len(indices), 3, 3))
        for own, number in zip(matrices, numbers, strict=True):
            piece = (number, own.indptr, own.indices, own.data)
            add = partial(assembly.add_rows, *piece, indptr, indices, data)
            over(len(number), add)
        diagonal = diagonal_blocks(indptr, indices, data)
        return HostMatrix(indptr, indices, data, diagonal)

    def aggregates(
        self, matrix: Callable[[], HostMatrix]
    ) -> tuple[list[HostLevel], bsr_array]:
        """Levels from the mesh's linear elements down; see `aggregate`."""
        strength, most = self._settings.strength, self._settings.max_coarse
        own, fixed, nodes = matrix(), self._fixed, self._vertices
        found: list[HostLevel] = []
        for level in self._parents:
            coarse = self._fixed[level.vertices]
            up = _masked(level.embedding, ~fixed, ~coarse)
            # of the first level, the largest, parts have all but how it is scaled
            host = (own.data, own.indices, own.indptr) if found else _diagonal(own)
            found.append(HostLevel(bsr_array(host), up))
            own = galerkin(own, level, fixed, coarse)
            fixed, nodes = coarse, self._vertices[level.vertices]
        below, coarsest = aggregate(own, nodes, fixed, strength, most)
        return found + below, coarsest


def _masked(weights: csr_array, free: Bool, coarse: Bool) -> bsr_array:
    """Give all free components of a node the same weight."""
    rows = np.repeat(np.arange(len(free)), np.diff(weights.indptr))
    both = free[rows] & coarse[weights.indices]
    data = np.zeros((len(rows), 3, 3))
    data[:, [0, 1, 2], [0, 1, 2]] = weights.data[:, None] * both
    shape = (3 * len(free), 3 * len(coarse))
    return bsr_array((data, weights.indices, weights.indptr), shape=shape)


def _diagonal(matrix: HostMatrix) -> tuple[Float, Int, Int]:
    """Return data, columns and starts of the diagonal blocks alone."""
    n = len(matrix.diagonal)
    return matrix.diagonal, np.arange(n), np.arange(n + 1)


def _rows(matrix: Any, rows: Int) -> bsr_array:
    """Block rows of a matrix."""
    counts = np.diff(matrix.indptr)[rows]
    indptr = np.concatenate([[0], np.cumsum(counts)])
    take = np.repeat(matrix.indptr[rows] - indptr[:-1], counts)
    take += np.arange(indptr[-1])
    shape = (len(rows) * matrix.blocksize[0], matrix.shape[1])
    return bsr_array((matrix.data[take], matrix.indices[take], indptr), shape=shape)


class PartNodalTransfer(NodalTransfer):
    """Linear fields into quadratic ones; the parts' restrictions are summed."""

    def __init__(
        self, backend: RankBackend, embedding: Any, free: Bool, coarse_free: Bool
    ) -> None:
        super().__init__(backend, Nodal.of(embedding, free, coarse_free))
        self._complete = backend.complete
        # a node shared by parts must be restricted once
        own = embedding[: backend.halo(embedding.shape[0]).owned].T.tocsr()
        self._down = backend.weights(
            own.indptr, own.indices, own.data.astype(np.float32), embedding.shape[0]
        )

    def restrict(self, r: Any, out: Any) -> None:
        """See `Transfer`."""
        super().restrict(r, out)
        self._complete(out)


class PartBlockTransfer(BlockTransfer):
    """From a part's vertices to the next level, which all parts hold."""

    def __init__(self, backend: RankBackend, up: Blocks, down: Blocks) -> None:
        super().__init__(backend.inner, up, down)
        self._communicator = backend.communicator

    def restrict(self, r: Any, out: Any) -> None:
        """See `Transfer`."""
        super().restrict(r, out)
        self._communicator.all_reduce(out)


def build_part(
    operator: Elasticity,
    endpoint: RankEndpoint,
    vertices: Int,
    settings: MultigridSettings | None = None,
) -> Cycle:
    """Make a part's end of the V-cycle; called by all parts alike.

    Parameters
    ----------
    operator : of the part, on a `RankBackend`.
    endpoint : where the whole is asked for its levels.
    vertices : (n_vertex,) the mesh's number of each of the part's vertices.
    """
    settings = settings or MultigridSettings()
    backend, space = operator.backend, operator.space
    assert isinstance(backend, RankBackend)  # noqa: S101 - made with one
    halo = backend.halo(space.n_node)
    diagonal = halo.sum_host(operator.diagonal)
    own = diagonal[: halo.owned]
    trace, count = backend.total([np.trace(own, axis1=1, axis2=2).sum(), len(own)])
    unit = trace / (3.0 * count)
    linear = operator.beside_matrix(operator.on_linear_elements)
    share: Share = endpoint.ask(LEVELS, Piece(vertices, linear, unit))
    coarse_fixed = space.fixed[space.vertices]
    # the columns belong to the scaled unknowns of the linear elements
    embedding = (space.embedding @ diags_array(1.0 / share.sizes)).tocsr()
    levels = [
        _level(
            backend,
            operator.stiffness(unit, np.float32),
            free_inverse(diagonal, unit, space),
            PartNodalTransfer(backend, embedding, ~space.fixed, ~coarse_fixed),
            settings.degree,
            settings.safety,
        ),
        _linear_level(backend, linear, share, unit, settings),
    ]
    inner = backend.inner
    store = inner.capabilities.coarse_storage
    levels += [
        aggregated_level(inner, host, 1.0, settings, store) for host in share.below
    ]
    inverse = coarsest_inverse(inner, share.coarsest, unit)
    cycle = Cycle(backend, levels, inverse, share.coarsest.blocksize[0], unit)
    if settings.local_degree and inner.capabilities.local_rows:
        _smooth_slow_elements(operator, backend, cycle, endpoint, settings)
    return cycle


def _smooth_slow_elements(
    operator: Elasticity,
    backend: RankBackend,
    cycle: Cycle,
    endpoint: RankEndpoint,
    settings: MultigridSettings,
) -> None:
    """Do what `smooth_slow_elements` does, with elements chosen among all parts'.

    Rows that parts share are left out: they are few, and the others then need no
    exchange.
    """
    space, top = operator.space, cycle.levels[0]
    start = (_same_random(backend, operator.shape) * operator.free).astype(np.float32)
    energy = slow_energy(operator, cycle, start, settings.local_cycles)
    chosen = endpoint.ask(SLOW, energy)
    outside = np.zeros(space.n_node, dtype=np.bool_)
    outside[space.elements[~chosen]] = True
    outside[backend.halo(space.n_node).first :] = True
    rows = np.flatnonzero(~outside)
    if len(rows) == 0:
        return

    def assembled() -> tuple[Any, Any, Float]:
        indptr, indices, data = rows_of_stiffness(operator, chosen, rows)
        return indptr, indices, data / cycle.unit

    lam, mu = (values / cycle.unit for values in operator.moduli)
    inner = cast("LocalRows", backend.inner)
    top.local = LocalSmoother(
        inner,
        inner.stiffness_rows(space, lam, mu, chosen, rows, assembled),
        backend.asarray(rows.astype(np.int32)),
        top.smoother.inverse,
        settings.local_degree,
        top.smoother.top,
    )


def _linear_level(
    backend: RankBackend,
    linear: HostMatrix,
    share: Share,
    unit: float,
    settings: MultigridSettings,
) -> Level:
    n, p = len(linear.indptr) - 1, share.prolongation
    halo, inner = backend.halo(n), backend.inner
    store = inner.capabilities.coarse_storage
    rows_of = np.repeat(np.arange(n), np.diff(linear.indptr))
    scale = unit * share.sizes[rows_of] * share.sizes[linear.indices]
    data = linear.data / scale[:, None, None]
    own = inner.blocks(linear.indptr, linear.indices, data.astype(store), n)
    rows, columns = p.blocksize
    down = _rows(p, np.arange(halo.owned)).T.tobsr(blocksize=(columns, rows))
    transfer = PartBlockTransfer(
        backend,
        inner.blocks(p.indptr, p.indices, p.data.astype(store), p.shape[1] // columns),
        inner.blocks(down.indptr, down.indices, down.data.astype(store), n),
    )
    diagonal = halo.sum_host(np.asarray(data[rows_of == linear.indices]))
    return _level(
        backend,
        RankBlocks.of(own, halo),
        inverse_blocks(diagonal),
        transfer,
        settings.coarse_degree,
        settings.safety,
    )


def _level(
    backend: RankBackend,
    matrix: Blocks,
    inverse_diagonal: NDArray[np.floating[Any]],
    transfer: Transfer,
    degree: int,
    safety: float,
) -> Level:
    n, size = inverse_diagonal.shape[:2]
    inverse = backend.asarray(inverse_diagonal, np.float32)
    same = _same_random(backend, (n, size, LANES))
    top = safety * largest_eigenvalue(backend, matrix, inverse, start=same)
    vectors = [backend.xp.zeros((n, size, LANES), dtype=np.float32) for _ in range(3)]
    smoother = Chebyshev(backend, matrix, inverse, degree, top)
    return Level(matrix, smoother, transfer, *vectors)


def _same_random(backend: RankBackend, shape: tuple[int, ...]) -> Any:
    """Random FP32 numbers; every copy of a shared row gets its owner's."""
    start = np.zeros(shape, dtype=np.float32)
    owned = backend.halo(shape[0]).owned
    seed = backend.communicator.rank
    start[:owned] = random_vector((owned, *shape[1:]), seed)
    return backend.complete(backend.asarray(start))
