"""Set-up of the preconditioner for one stiffness matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from afterslip_solver.backend import LANES, Backend, Blocks
from afterslip_solver.model import Bool
from afterslip_solver.multigrid.aggregation import HostLevel, aggregate
from afterslip_solver.multigrid.cycle import (
    BlockTransfer,
    Cycle,
    Level,
    NodalTransfer,
)
from afterslip_solver.multigrid.smoother import Chebyshev, largest_eigenvalue
from afterslip_solver.operators.elasticity import Elasticity, assemble


@dataclass(frozen=True, slots=True)
class MultigridSettings:
    """Choices of the hierarchy; the defaults were measured (benchmarks).

    Attributes
    ----------
    degree : of the smoother on quadratic elements, before and after.
    coarse_degree : of the smoothers below.
    strength : threshold of the strength of connection.
    max_coarse : nodes of the coarsest level, which is inverted densely.
    safety : factor on the estimated largest eigenvalue.
    """

    degree: int = 3
    coarse_degree: int = 3
    strength: float = 0.0
    max_coarse: int = 100
    safety: float = 1.05


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
    embedding = NodalTransfer(backend, space.embedding, ~space.fixed, ~coarse_fixed)
    levels = [
        _level(
            backend,
            operator.stiffness(unit, np.float32),
            np.linalg.inv(operator.diagonal / unit) * couples(space.fixed),
            embedding,
            settings.degree,
            settings.safety,
        )
    ]
    levels += [aggregated_level(backend, host, unit, settings) for host in hosts]
    inverse = coarsest_inverse(backend, coarsest, unit)
    return Cycle(backend, levels, inverse, coarsest.blocksize[0], unit)


def aggregated_level(
    backend: Backend,
    host: HostLevel,
    unit: float,
    settings: MultigridSettings,
) -> Level:
    """Put one level of the host's on the backend, divided by ``unit``."""
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
        backend.blocks(p.indptr, p.indices, p.data.astype(np.float32), n_coarse),
        backend.blocks(
            down.indptr, down.indices, down.data.astype(np.float32), len(diagonal)
        ),
    )
    return _level(
        backend,
        backend.blocks(
            a.indptr, a.indices, (a.data / unit).astype(np.float32), len(diagonal)
        ),
        np.linalg.inv(diagonal / unit),
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
