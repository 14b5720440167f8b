"""Set-up of the preconditioner for one stiffness matrix."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.sparse import bsr_array

from afterslip_solver.backend import LANES, Backend, Blocks
from afterslip_solver.kernels import assembly
from afterslip_solver.kernels.threads import over
from afterslip_solver.model import Bool, Float
from afterslip_solver.multigrid.aggregation import HostLevel, aggregate
from afterslip_solver.multigrid.cycle import (
    BlockTransfer,
    Cycle,
    Level,
    NodalTransfer,
)
from afterslip_solver.multigrid.nested import Linear, linear_levels
from afterslip_solver.multigrid.slow import smooth_slow_elements
from afterslip_solver.multigrid.smoother import Chebyshev, largest_eigenvalue
from afterslip_solver.operators.elasticity import Elasticity, HostMatrix
from afterslip_solver.operators.space import Space


@dataclass(frozen=True, slots=True)
class MultigridSettings:
    """Choices of the hierarchy; the defaults were measured (benchmarks).

    Attributes
    ----------
    degree : of the smoother on quadratic elements, before and after.
    coarse_degree : of the smoother on linear elements, aggregate_degree : below.
    visits : how often the first level of aggregates is corrected from below, where it
        lies under the mesh's own linear elements.
    strength : threshold of the strength of connection.
    max_coarse : nodes of the coarsest level, which is inverted densely.
    safety : factor on the estimated largest eigenvalue.
    local_degree : of more smoothing where the cycle is slow; 0 for none.
    local_share : largest share of the elements with more smoothing.
    nested : where the mesh was refined, use linear elements of what it was made from.
    """

    degree: int = 3
    coarse_degree: int = 3
    aggregate_degree: int = 4
    visits: int = 2
    strength: float = 0.0
    max_coarse: int = 100
    safety: float = 1.0
    local_degree: int = 3
    local_share: float = 0.05
    nested: bool = True


def build(operator: Elasticity, settings: MultigridSettings | None = None) -> Cycle:
    """Make the V-cycle for an operator: P2, P1 once or more, aggregates, inverse."""
    settings = settings or MultigridSettings()
    backend, space = operator.backend, operator.space
    unit = float(np.trace(operator.diagonal, axis1=1, axis2=2).mean() / 3.0)
    store = getattr(backend, "storage", np.float32)
    linear = linear_levels(operator, settings.nested)
    last = linear[-1]
    hosts, coarsest = aggregate(
        last.matrix,
        space.nodes[last.vertices],
        space.fixed[last.vertices],
        settings.strength,
        settings.max_coarse,
    )
    hosts, sizes = balanced(hosts, unit, len(last.vertices))
    middle = [_balanced_linear(level.matrix, unit, store) for level in linear[:-1]]
    transfers = nodal_transfers(
        backend, space, linear, [*(size for _, _, size in middle), sizes]
    )
    levels = [
        _level(
            backend,
            operator.stiffness(unit, np.float32),
            inverse_blocks(operator.diagonal, unit) * couples(space.fixed),
            transfers[0],
            settings.degree,
            settings.safety,
        )
    ]
    for level, (data, diagonal, _), transfer in zip(
        linear[:-1], middle, transfers[1:], strict=True
    ):
        a = level.matrix
        blocks = backend.blocks(a.indptr, a.indices, data, len(diagonal))
        inverse = inverse_blocks(diagonal)
        degree, safety = settings.coarse_degree, settings.safety
        levels.append(_level(backend, blocks, inverse, transfer, degree, safety))
    below = replace(settings, coarse_degree=settings.aggregate_degree)
    levels += [
        aggregated_level(backend, host, 1.0, below if k else settings, store)
        for k, host in enumerate(hosts)
    ]
    if not middle:
        for second in levels[2:3]:
            second.visits = settings.visits
    inverse = coarsest_inverse(backend, coarsest, unit)
    cycle = Cycle(backend, levels, inverse, coarsest.blocksize[0], unit)
    if settings.local_degree:
        degree, share = settings.local_degree, settings.local_share
        smooth_slow_elements(operator, cycle, share, degree)
    return cycle


def nodal_transfers(
    backend: Backend, space: Space, linear: list[Linear], sizes: list[Float]
) -> list[NodalTransfer]:
    """From the quadratic elements down to the last of the linear levels.

    Parameters
    ----------
    sizes : for each level (n_vertex,) the factors of its scaled unknowns.
    """
    found = []
    free, before = ~space.fixed, np.ones(space.n_node)
    for level, size in zip(linear, sizes, strict=True):
        up = level.embedding.copy()
        rows = np.repeat(before, np.diff(up.indptr))
        up.data *= rows / size[up.indices]
        coarse = ~space.fixed[level.vertices]
        found.append(NodalTransfer(backend, up, free, coarse))
        free, before = coarse, size
    return found


def _balanced_linear(
    matrix: HostMatrix, unit: float, store: type[np.floating[Any]]
) -> tuple[NDArray[np.floating[Any]], Float, Float]:
    """Do what `balanced` does, to a matrix of linear elements.

    Returns
    -------
    Blocks in precision ``store``, (n, 3, 3) those of the diagonal, (n,) factors.
    """
    indptr, indices, data = matrix.indptr, matrix.indices, matrix.data
    n = len(indptr) - 1
    diagonal = np.empty((n, 3, 3))
    over(n, partial(assembly.find_diagonal, indptr, indices, data, diagonal))
    size = np.sqrt(np.trace(diagonal, axis1=1, axis2=2) / (3.0 * unit))
    diagonal /= (unit * size * size)[:, None, None]
    single = np.empty(data.shape, dtype=np.float32)
    over(n, partial(assembly.balance, indptr, indices, data, size, unit, single))
    stored = np.empty(data.shape, dtype=store)

    def convert(start: int, stop: int) -> None:
        stored[start:stop] = single[start:stop]

    over(len(stored), convert)
    return stored, diagonal, size


def aggregated_level(
    backend: Backend,
    host: HostLevel,
    unit: float,
    settings: MultigridSettings,
    store: type[np.floating[Any]] = np.float32,
) -> Level:
    """Put one level of the host's on the backend, divided by ``unit``.

    ``store`` is the precision of the matrices, not of the arithmetic.
    """
    a, p = host.matrix, host.prolongation
    size = a.blocksize[0]
    rows = np.repeat(np.arange(a.shape[0] // size), np.diff(a.indptr))
    # an aggregate of held vertices has no motion, and its row may store no block
    diagonal = np.tile(unit * np.eye(size), (a.shape[0] // size, 1, 1))
    own = rows == a.indices
    diagonal[rows[own]] = a.data[own]
    n_coarse = p.shape[1] // p.blocksize[1]
    down = p.T.tobsr(blocksize=(p.blocksize[1], p.blocksize[0]))
    transfer = BlockTransfer(
        backend,
        backend.blocks(p.indptr, p.indices, p.data.astype(store), n_coarse),
        backend.blocks(
            down.indptr, down.indices, down.data.astype(store), len(diagonal)
        ),
    )
    return _level(
        backend,
        backend.blocks(
            a.indptr, a.indices, (a.data / unit).astype(store), len(diagonal)
        ),
        inverse_blocks(diagonal, unit),
        transfer,
        settings.coarse_degree,
        settings.safety,
    )


def _level(
    backend: Backend,
    matrix: Blocks,
    inverse_diagonal: NDArray[np.floating[Any]],
    transfer: Any,
    degree: int,
    safety: float,
) -> Level:
    n, size = inverse_diagonal.shape[:2]
    inverse = backend.asarray(inverse_diagonal, np.float32)
    top = safety * largest_eigenvalue(backend, matrix, inverse)
    vectors = [backend.xp.zeros((n, size, LANES), dtype=np.float32) for _ in range(3)]
    smoother = Chebyshev(backend, matrix, inverse, degree, top)
    return Level(matrix, smoother, transfer, *vectors)


def balanced(
    levels: list[HostLevel], unit: float, n_vertex: int
) -> tuple[list[HostLevel], Float]:
    """Divide matrices by ``unit`` and give every unknown a diagonal entry near one.

    The unknowns of all levels but the coarsest are scaled, which FP16 needs: the
    stiffness of a node grows with its elements' size. Prolongations change with them.

    Parameters
    ----------
    n_vertex : unknowns of the first level, also where there is none but the coarsest.

    Returns
    -------
    The levels, and (n_vertex,) the factor of each vertex of the first.
    """
    if not levels:
        return [], np.ones(n_vertex)
    scales = [_scales(level.matrix, unit) for level in levels]
    out = []
    for k, level in enumerate(levels):
        a, p, s = level.matrix, level.prolongation, scales[k]
        after = None if k + 1 == len(levels) else 1.0 / scales[k + 1]
        out.append(HostLevel(_scaled(a, 1.0 / s / unit, 1.0 / s), _scaled(p, s, after)))
    return out, scales[0][:, 0]


def _scales(a: Any, unit: float) -> Float:
    """(n_row, size) roots of the mean diagonal entry of translations and the others."""
    size = a.blocksize[0]
    rows = np.repeat(np.arange(len(a.indptr) - 1), np.diff(a.indptr))
    own = rows == a.indices
    diagonal = np.full((len(a.indptr) - 1, size), unit)
    diagonal[rows[own]] = np.diagonal(a.data[own], axis1=1, axis2=2)
    # components of a vector share a factor, as they share weights
    mean = diagonal.reshape(len(diagonal), -1, 3).mean(axis=2)
    return np.asarray(np.sqrt(np.repeat(mean, 3, axis=1) / unit))


def _scaled(a: Any, left: Float, right: Float | None) -> bsr_array:
    """Matrix with rows and columns multiplied, both (n, size of a block)."""
    rows = np.repeat(np.arange(len(a.indptr) - 1), np.diff(a.indptr))
    data = a.data * left[rows][:, :, None]
    if right is not None:
        data *= right[a.indices][:, None, :]
    return bsr_array((data, a.indices, a.indptr), shape=a.shape)


def inverse_blocks(blocks: Float, unit: float = 1.0) -> NDArray[np.floating[Any]]:
    """Inverses of symmetric (n, k, k) blocks over ``unit``; FP32 of 3 x 3 blocks."""
    if blocks.shape[1] != 3:
        return np.asarray(unit * np.linalg.inv(blocks))
    out = np.empty(blocks.shape, dtype=np.float32)
    over(len(blocks), partial(assembly.invert, blocks, unit, out))
    return out


def couples(fixed: Bool) -> Bool:
    """(n_node, 3, 3) bool, False in rows and columns of held components."""
    return ~(fixed[:, :, None] | fixed[:, None, :])


def coarsest_inverse(backend: Backend, matrix: Any, unit: float) -> Any:
    """Inverse of the coarsest matrix; directions without stiffness are left out."""
    dense = matrix.toarray() / unit
    values, vectors = eigh(0.5 * (dense + dense.T))
    keep = values > 1e-12 * values[-1]
    inverse = (vectors[:, keep] / values[keep]) @ vectors[:, keep].T
    return backend.asarray(inverse, np.float32)
