"""Set-up of the preconditioner for one stiffness matrix."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.sparse import bsr_array, diags_array

from afterslip_solver.backend import LANES, Backend, Blocks
from afterslip_solver.model import Bool, Float
from afterslip_solver.multigrid.aggregation import HostLevel, aggregate
from afterslip_solver.multigrid.cycle import (
    BlockTransfer,
    Cycle,
    Level,
    NodalTransfer,
)
from afterslip_solver.multigrid.slow import smooth_slow_elements
from afterslip_solver.multigrid.smoother import Chebyshev, largest_eigenvalue
from afterslip_solver.operators.elasticity import Elasticity, assemble


@dataclass(frozen=True, slots=True)
class MultigridSettings:
    """Choices of the hierarchy; the defaults were measured (benchmarks).

    Attributes
    ----------
    degree : of the smoother on quadratic elements, before and after.
    coarse_degree : of the smoother on linear elements, aggregate_degree : below.
    visits : how often the first level of aggregates is corrected from below.
    strength : threshold of the strength of connection.
    max_coarse : nodes of the coarsest level, which is inverted densely.
    safety : factor on the estimated largest eigenvalue.
    local_degree : of more smoothing where the cycle is slow; 0 for none.
    local_share : largest share of the elements with more smoothing.
    """

    degree: int = 2
    coarse_degree: int = 3
    aggregate_degree: int = 4
    visits: int = 2
    strength: float = 0.0
    max_coarse: int = 100
    safety: float = 1.0
    local_degree: int = 3
    local_share: float = 0.1


def build(operator: Elasticity, settings: MultigridSettings | None = None) -> Cycle:
    """Make the V-cycle for an operator: P2, P1, aggregates, dense inverse."""
    settings = settings or MultigridSettings()
    backend, space = operator.backend, operator.space
    unit = float(np.trace(operator.diagonal, axis1=1, axis2=2).mean() / 3.0)
    lam, mu = backend.to_host(operator.lam), backend.to_host(operator.mu)
    linear = assemble(space, lam, mu, order=1)
    if operator.springs is not None:
        operator.springs.add_linear(linear.indptr, linear.indices, linear.data)
    coarse_fixed = space.fixed[space.vertices]
    hosts, coarsest = aggregate(
        linear,
        space.nodes[space.vertices],
        coarse_fixed,
        settings.strength,
        settings.max_coarse,
    )
    store = getattr(backend, "storage", np.float32)
    hosts, sizes = balanced(hosts, unit)
    embedding = space.embedding
    if hosts:
        # the columns belong to the scaled unknowns of the linear elements
        embedding = embedding @ diags_array(1.0 / sizes)
    transfer = NodalTransfer(backend, embedding.tocsr(), ~space.fixed, ~coarse_fixed)
    levels = [
        _level(
            backend,
            operator.stiffness(unit, np.float32),
            inverse_blocks(operator.diagonal / unit) * couples(space.fixed),
            transfer,
            settings.degree,
            settings.safety,
        )
    ]
    below = replace(settings, coarse_degree=settings.aggregate_degree)
    levels += [
        aggregated_level(backend, host, 1.0, below if k else settings, store)
        for k, host in enumerate(hosts)
    ]
    for level in levels[2:3]:
        level.visits = settings.visits
    inverse = coarsest_inverse(backend, coarsest, unit)
    cycle = Cycle(backend, levels, inverse, coarsest.blocksize[0], unit)
    if settings.local_degree:
        degree, share = settings.local_degree, settings.local_share
        smooth_slow_elements(operator, cycle, share, degree)
    return cycle


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
        inverse_blocks(diagonal / unit),
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


def balanced(levels: list[HostLevel], unit: float) -> tuple[list[HostLevel], Float]:
    """Divide matrices by ``unit`` and give every unknown a diagonal entry near one.

    The unknowns of all levels but the coarsest are scaled, which FP16 needs: the
    stiffness of a node grows with its elements' size. Prolongations change with them.

    Returns
    -------
    The levels, and (n_vertex,) the factor of each vertex of the first.
    """
    if not levels:
        return [], np.ones(0)
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


def inverse_blocks(blocks: Float) -> Float:
    """Inverses of symmetric (n, k, k) blocks; those of 3 x 3 by their cofactors."""
    if blocks.shape[1] != 3:
        return np.asarray(np.linalg.inv(blocks))
    out = np.empty_like(blocks)
    for i in range(3):
        for j in range(3):
            (a, b), (c, d) = ((i + 1) % 3, (i + 2) % 3), ((j + 1) % 3, (j + 2) % 3)
            out[:, j, i] = blocks[:, a, c] * blocks[:, b, d]
            out[:, j, i] -= blocks[:, a, d] * blocks[:, b, c]
    determinant = (blocks[:, 0] * out[:, :, 0]).sum(axis=1)
    out /= determinant[:, None, None]
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
