"""The coarse levels of a whole model, from what its parts hand in.

They are stored for the next process, by what all parts are made from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import bsr_array, csr_array

from afterslip_solver.array_cache import NO_CACHE, Arrays, CacheScope
from afterslip_solver.jit.threads import over
from afterslip_solver.mesh.tables.bisection import compact_order
from afterslip_solver.model import Bool, Float, Int, TetMesh
from afterslip_solver.multigrid.aggregation import HostLevel, aggregate
from afterslip_solver.multigrid.coarse_levels import HostLevels, balanced
from afterslip_solver.multigrid.local_smoothing import concentrated
from afterslip_solver.multigrid.nested import galerkin
from afterslip_solver.multigrid.settings import MultigridSettings
from afterslip_solver.operators import assembly
from afterslip_solver.operators.elasticity import HostMatrix, diagonal_blocks
from afterslip_solver.operators.parents import ancestors
from afterslip_solver.operators.pattern import matrix_pattern
from afterslip_solver.parallel.partition import PartitionError

# what a part asks the whole for
LEVELS, SLOW = "levels", "slow"
# vertices that lie side by side in the whole's order
_BLOCK = 64


@dataclass(frozen=True, eq=False, slots=True)
class Piece:
    """A part's share of the matrix of linear elements.

    Attributes
    ----------
    vertices : (n,) the mesh's number of each row.
    unit : Pa m, the same on all parts; levels are of K / unit.
    cause : digest of what the part's matrices are made from; empty: nothing is stored.
    given : matrix summed over the part; None asks for levels that are stored.
    """

    vertices: Int
    unit: float
    cause: str
    given: HostMatrix | None


@dataclass(frozen=True, eq=False, slots=True)
class Slowness:
    """Where a part's share of a slow error is.

    Attributes
    ----------
    n_elem : of the part. cause : as in `Piece`.
    given : (n_elem,) energy of each element; None asks for what is stored.
    """

    n_elem: int
    cause: str
    given: Float | None


@dataclass(frozen=True, eq=False, slots=True)
class Share:
    """What a part needs of the whole hierarchy.

    Attributes
    ----------
    sizes : (n_vertex,) scale of each of the part's vertices.
    prolongation : from all of the next level to the part's vertices.
    below, coarsest : the whole's levels, scaled by `balanced` but the coarsest.
    nested : whether the first of these is of what the mesh was refined from.
    """

    sizes: Float
    prolongation: bsr_array
    below: list[HostLevel]
    coarsest: bsr_array
    nested: bool


class Coordinator:
    """Coarse levels of the whole model from what the parts hand in.

    Parameters
    ----------
    mesh : of the model. fixed : (n_node, 3) bool.
    cache : arrays keyed by both.

    Raises
    ------
    PartitionError
        If the mesh has too few vertices for a hierarchy.
    """

    def __init__(
        self,
        mesh: TetMesh,
        fixed: Bool,
        cache: CacheScope = NO_CACHE,
    ) -> None:
        self._settings = MultigridSettings.suiting(len(mesh.cells))
        self._cache = cache
        vertices = mesh.nodes[: mesh.n_vertex]
        order = compact_order(vertices, _BLOCK)
        self._vertices, self._fixed = vertices[order], fixed[order]
        self._number = np.empty_like(order)
        self._number[order] = np.arange(len(order))
        cells = self._number[mesh.cells].astype(np.int32)
        self._cells = cells
        self._parents = ancestors(cells, np.arange(len(order)))
        # all would be on the level that is inverted
        if not self._parents and len(order) <= self._settings.max_coarse:
            message = f"{len(order)} vertices are too few for several devices"
            raise PartitionError(message)

    def shares(self, pieces: Sequence[Piece]) -> Sequence[Share | None]:
        """Sum the pieces, go down, and cut the prolongation for each part.

        Returns
        -------
        None for each where pieces have no matrices and nothing is stored for them.
        """
        numbers = [self._number[piece.vertices] for piece in pieces]

        def make(matrices: list[HostMatrix]) -> Arrays:
            levels, coarsest = self.aggregates(lambda: self._sum(matrices, numbers))
            scaled, sizes = balanced(levels, pieces[0].unit, len(self._number))
            return HostLevels([], [sizes], scaled, coarsest).as_arrays()

        found = self._stored(LEVELS, pieces, make)
        if found is None:
            return [None] * len(pieces)
        host = HostLevels.of_arrays(found)
        (sizes,), (top, *below) = host.sizes, host.below
        rest = below, host.coarsest, bool(self._parents)
        return [
            Share(sizes[rows], block_rows(top.prolongation, rows), *rest)
            for rows in numbers
        ]

    def slow(self, parts: Sequence[Slowness]) -> Sequence[Bool | None]:
        """Mark the elements of all parts that hold most of a slow error's energy.

        Returns
        -------
        None for each where no energies are given and nothing is stored for them.
        """

        def make(energies: list[Float]) -> Arrays:
            most = self._settings.local_share
            return {"chosen": concentrated(np.concatenate(energies), most)}

        found = self._stored(SLOW, parts, make)
        if found is None:
            return [None] * len(parts)
        ends = np.cumsum([part.n_elem for part in parts])
        return np.split(found["chosen"], ends[:-1])

    def _stored(
        self,
        name: str,
        parts: Sequence[Piece | Slowness],
        make: Callable[[list[Any]], Arrays],
    ) -> Arrays | None:
        """Return what is stored for all parts, or make it of what all of them give."""
        causes = [part.cause for part in parts]
        cache = self._cache.keyed(self._settings, *causes) if all(causes) else NO_CACHE
        known = [part.given for part in parts if part.given is not None]
        if len(known) < len(parts):
            return cache.find(name)
        return cache.get(name, partial(make, known))

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


def block_rows(matrix: Any, rows: Int) -> bsr_array:
    """Block rows of a matrix."""
    counts = np.diff(matrix.indptr)[rows]
    indptr = np.concatenate([[0], np.cumsum(counts)])
    take = np.repeat(matrix.indptr[rows] - indptr[:-1], counts)
    take += np.arange(indptr[-1])
    shape = (len(rows) * matrix.blocksize[0], matrix.shape[1])
    return bsr_array((matrix.data[take], matrix.indices[take], indptr), shape=shape)
