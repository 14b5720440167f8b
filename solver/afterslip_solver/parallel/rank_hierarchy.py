"""The multigrid hierarchy of a model cut into parts.

The levels of the mesh's quadratic and linear elements are divided like the elements.
Those below, of parents and aggregates, are small: every part holds them all and does
the same work on them, after the residual has been summed over the parts. They are those
of the whole model, so that a solve needs as many iterations as on one device.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import diags_array

from afterslip_solver.backend import LANES, Blocks
from afterslip_solver.backend.protocols import LocalRows
from afterslip_solver.model import Bool, Float, Int
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
    visit_often,
)
from afterslip_solver.multigrid.local_smoothing import slow_energy, smooth_rows
from afterslip_solver.multigrid.settings import MultigridSettings
from afterslip_solver.multigrid.smoother import (
    Chebyshev,
    largest_eigenvalue,
    random_vector,
)
from afterslip_solver.operators import Elasticity
from afterslip_solver.operators.elasticity import HostMatrix, traces
from afterslip_solver.parallel.coordinator import (
    LEVELS,
    SLOW,
    Piece,
    Share,
    Slowness,
    block_rows,
)
from afterslip_solver.parallel.rank_backend import RankBackend, RankBlocks
from afterslip_solver.parallel.rank_group import RankEndpoint


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
    settings: MultigridSettings,
) -> Cycle:
    """Make a part's end of the V-cycle; called by all parts alike.

    Parameters
    ----------
    operator : of the part, on a `RankBackend`.
    endpoint : where the whole is asked for its levels.
    vertices : (n_vertex,) the mesh's number of each of the part's vertices.
    settings : that the whole has too.
    """
    backend, space = operator.backend, operator.space
    assert isinstance(backend, RankBackend)  # noqa: S101 - made with one
    halo = backend.halo(space.n_node)
    diagonal = halo.sum_host(operator.diagonal)
    own = diagonal[: halo.owned]
    trace, count = backend.total([traces(own).sum(), len(own)])
    unit = trace / (3.0 * count)
    linear = operator.beside_matrix(operator.on_linear_elements)
    cause = space.cache.keyed(*operator.moduli, settings).cause
    share: Share = _answer(
        endpoint, LEVELS, partial(Piece, vertices, unit, cause), lambda: linear
    )
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
    if not share.nested:
        visit_often(levels, settings)
    inverse = coarsest_inverse(inner, share.coarsest, unit)
    cycle = Cycle(backend, levels, inverse, share.coarsest.blocksize[0], unit)
    if settings.local_degree and inner.capabilities.local_rows:
        _smooth_slow_elements(operator, backend, cycle, endpoint, settings, cause)
    return cycle


def _answer(
    endpoint: RankEndpoint,
    question: str,
    about: Callable[[Any], Piece | Slowness],
    make: Callable[[], Any],
) -> Any:
    """Ask the whole what is stored first, which all ranks are answered alike.

    So all make the rest, or none does. No rank makes it within `ArrayCache.get`: it
    needs the others, and one that held a lock would wait for them while they wait
    for it.
    """
    asked = about(None)
    found = endpoint.ask(question, asked) if asked.cause else None
    return endpoint.ask(question, about(make())) if found is None else found


def _smooth_slow_elements(
    operator: Elasticity,
    backend: RankBackend,
    cycle: Cycle,
    endpoint: RankEndpoint,
    settings: MultigridSettings,
    cause: str,
) -> None:
    """Do what `smooth_slow_elements` does, with elements chosen among all parts'.

    Rows that parts share are left out: they are few, and the others then need no
    exchange.
    """
    space = operator.space

    def energy() -> Float:
        start = _same_random(backend, operator.shape) * operator.free
        start = start.astype(np.float32)
        return slow_energy(operator, cycle, start, settings.local_cycles)

    n_elem = len(space.elements)
    chosen = _answer(endpoint, SLOW, partial(Slowness, n_elem, cause), energy)
    outside = np.zeros(space.n_node, dtype=np.bool_)
    outside[space.elements[~chosen]] = True
    outside[backend.halo(space.n_node).first :] = True
    inner, degree = cast("LocalRows", backend.inner), settings.local_degree
    smooth_rows(inner, operator, cycle, chosen, ~outside, degree)


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
    down = block_rows(p, np.arange(halo.owned)).T.tobsr(blocksize=(columns, rows))
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
