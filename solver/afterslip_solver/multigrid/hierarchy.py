"""Set-up of the preconditioner for one stiffness matrix."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.linalg.lapack import dpotrf, dpotri

from afterslip_solver.array_cache import CacheScope
from afterslip_solver.backend import LANES, Backend, Blocks
from afterslip_solver.jit.threads import over
from afterslip_solver.model import Float
from afterslip_solver.multigrid.aggregation import HostLevel
from afterslip_solver.multigrid.coarse_levels import HostLevels, host_levels
from afterslip_solver.multigrid.cycle import (
    BlockTransfer,
    Cycle,
    Level,
    Nodal,
    NodalTransfer,
)
from afterslip_solver.multigrid.local_smoothing import smooth_slow_elements
from afterslip_solver.multigrid.settings import MultigridSettings
from afterslip_solver.multigrid.smoother import Chebyshev, largest_eigenvalue
from afterslip_solver.operators import assembly
from afterslip_solver.operators.elasticity import Elasticity
from afterslip_solver.operators.space import Space

# of the largest eigenvalue what is no stiffness, of the largest pivot what may be none
_NOTHING, _LITTLE = 1e-12, 1e-8


@dataclass(frozen=True, eq=False, slots=True)
class _HostParts:
    """What of the hierarchy is made on the host, from elements alone.

    Attributes
    ----------
    inverse : (n_node, 3, 3) FP32 of the quadratic nodes' diagonal blocks.
    linear : the same of each linear level.
    transfers : to them, and to the first aggregates.
    """

    levels: HostLevels
    inverse: NDArray[np.floating[Any]]
    linear: list[NDArray[np.floating[Any]]]
    transfers: list[Nodal]

    @classmethod
    def of(
        cls,
        operator: Elasticity,
        settings: MultigridSettings,
        store: type[np.floating[Any]],
        cache: CacheScope,
    ) -> _HostParts:
        space, unit = operator.space, operator.unit
        with ThreadPoolExecutor(1) as beside:
            inverse = beside.submit(free_inverse, operator.diagonal, unit, space)
            levels = host_levels(operator, settings, unit, store, cache)
        linear = [inverse_blocks(level.diagonal) for level in levels.linear]
        transfers = _nodal_transfers(space, levels.sizes)
        return cls(levels, inverse.result(), linear, transfers)


def build(operator: Elasticity, settings: MultigridSettings | None = None) -> Cycle:
    """Make the V-cycle for an operator: P2, P1 once or more, aggregates, inverse."""
    backend, space = operator.backend, operator.space
    settings = settings or MultigridSettings.suiting(len(space.elements))
    store = backend.capabilities.coarse_storage
    cache = space.cache.keyed(*operator.moduli, settings)
    parts = partial(_HostParts.of, operator, settings, store, cache)
    host = operator.beside_matrix(parts)
    unit = operator.unit
    transfers = [NodalTransfer(backend, nodal) for nodal in host.transfers]
    fine = operator.stiffness(unit, np.float32)
    degree, safety = settings.degree, settings.safety
    levels = [_level(backend, fine, host.inverse, transfers[0], degree, safety)]
    degree = settings.coarse_degree
    below = host.levels.linear, host.linear, transfers[1:]
    for level, inverse, transfer in zip(*below, strict=True):
        n = len(level.diagonal)
        blocks = backend.blocks(level.indptr, level.indices, level.data, n)
        levels.append(_level(backend, blocks, inverse, transfer, degree, safety))
    levels += [
        aggregated_level(backend, level, 1.0, settings, store)
        for level in host.levels.below
    ]
    if not host.levels.linear:
        visit_often(levels, settings)
    coarsest = host.levels.coarsest
    lowest = coarsest_inverse(backend, coarsest, unit)
    cycle = Cycle(backend, levels, lowest, coarsest.blocksize[0], unit)
    if settings.local_degree:
        smooth_slow_elements(operator, cycle, settings, cache)
    return cycle


def visit_often(levels: list[Level], settings: MultigridSettings) -> None:
    """Have the first level of aggregates corrected from below as often as is set."""
    for level in levels[2:3]:
        level.visits = settings.visits


def _nodal_transfers(space: Space, sizes: list[Float]) -> list[Nodal]:
    """From the quadratic elements down to the last of the linear levels.

    Parameters
    ----------
    sizes : for each linear level (n_vertex,) the factors of its scaled unknowns.
    """
    found = []
    free, before = ~space.fixed, np.ones(space.n_node)
    linear = [(space.embedding, space.vertices)]
    linear += [(level.embedding, level.vertices) for level in space.parents]
    for (embedding, vertices), size in zip(linear, sizes, strict=False):
        up = embedding.copy()
        rows = np.repeat(before, np.diff(up.indptr))
        up.data *= rows / size[up.indices]
        coarse = ~space.fixed[vertices]
        found.append(Nodal.of(up, free, coarse))
        free, before = coarse, size
    return found


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
    # an aggregate of fixed vertices has no motion, and its row may store no block
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


def inverse_blocks(blocks: Float, unit: float = 1.0) -> NDArray[np.floating[Any]]:
    """Inverses of symmetric (n, k, k) blocks over ``unit``; FP32 of 3 x 3 blocks."""
    if blocks.shape[1] != 3:
        return np.asarray(unit * np.linalg.inv(blocks))
    out = np.empty(blocks.shape, dtype=np.float32)
    over(len(blocks), partial(assembly.invert, blocks, unit, out))
    return out


def free_inverse(blocks: Float, unit: float, space: Space) -> NDArray[np.floating[Any]]:
    """Inverses of (n_node, 3, 3) blocks over ``unit`` that leave what is fixed at rest.

    Parameters
    ----------
    blocks : symmetric, without entries between fixed components and others.
    """
    out = inverse_blocks(blocks, unit)
    out[space.constrained] *= ~space.fixed[space.constrained][:, :, None]
    return out


def coarsest_inverse(backend: Backend, matrix: Any, unit: float) -> Any:
    """Inverse of the coarsest matrix; directions without stiffness are left out."""
    dense = matrix.toarray() / unit
    dense = 0.5 * (dense + dense.T)
    factor, singular = dpotrf(dense, lower=True)
    pivots = factor.diagonal() ** 2
    if not singular and pivots.min() > _LITTLE * pivots.max():
        below, _ = dpotri(factor, lower=True)
        inverse = np.tril(below) + np.tril(below, -1).T
    else:
        # takes twice as long
        values, vectors = eigh(dense)
        keep = values > _NOTHING * values[-1]
        inverse = (vectors[:, keep] / values[keep]) @ vectors[:, keep].T
    return backend.asarray(inverse, np.float32)
