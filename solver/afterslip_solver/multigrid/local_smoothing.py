"""Where the V-cycle leaves the error, and more smoothing there.

In thin wedges between a shallow fault and the free surface linear elements are too
stiff, and the error of a two-grid cycle hardly shrinks there while it is gone
elsewhere. Such places hold few elements: smoothing them more often costs little.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from afterslip_solver.array_cache import Arrays, CacheScope
from afterslip_solver.backend.protocols import LocalRows
from afterslip_solver.model import Bool, Float
from afterslip_solver.multigrid.cycle import Cycle
from afterslip_solver.multigrid.settings import MultigridSettings
from afterslip_solver.multigrid.smoother import LocalSmoother, random_vector
from afterslip_solver.operators import assembly
from afterslip_solver.operators.elasticity import Elasticity, summed
from afterslip_solver.operators.pattern import matrix_pattern

# share of the error's energy that the slow elements must hold to be worth it
_SHARE = 0.5


def slow_elements(
    operator: Elasticity, cycle: Cycle, settings: MultigridSettings
) -> Bool:
    """(n_elem,) bool, the few elements that hold most of a slow error.

    Nothing is marked where the error is spread evenly.
    """
    start = random_vector(operator.shape)
    start[operator.space.fixed] = 0.0
    start = operator.backend.asarray(start)
    energy = slow_energy(operator, cycle, start, settings.local_cycles)
    return concentrated(energy, settings.local_share)


def slow_energy(operator: Elasticity, cycle: Cycle, x: Any, cycles: int) -> Float:
    """(n_elem,) energy that cycles leave of an error x (n_node, 3, lane) FP32.

    The error is then where it vanishes most slowly. x is overwritten.
    """
    backend, top = operator.backend, cycle.levels[0]
    for _ in range(cycles):
        backend.multiply(top.matrix, x, cycle.right)
        x -= cycle.descend()
        norm = np.sqrt(backend.dot(x, x))
        # after so many cycles FP32 has no smaller numbers
        factor = np.divide(1.0, norm, out=np.zeros_like(norm), where=norm > 0.0)
        backend.scale_into(x, factor, x)
    backend.multiply(top.matrix, x, cycle.right)
    energy = abs(x * cycle.right).sum(axis=(1, 2)).astype(np.float64)
    return np.asarray(backend.to_host(energy[operator.tets.elements].sum(axis=1)))


def concentrated(energy: Float, most: float) -> Bool:
    """Mark the largest entries, a share ``most``, if they are half of the sum."""
    count = int(most * len(energy))
    chosen = np.zeros(len(energy), dtype=np.bool_)
    if count:
        chosen[np.argpartition(energy, -count)[-count:]] = True
    if energy[chosen].sum() < _SHARE * energy.sum():
        chosen[:] = False
    return chosen


def smooth_slow_elements(
    operator: Elasticity, cycle: Cycle, settings: MultigridSettings, cache: CacheScope
) -> None:
    """Give the finest level of a cycle more smoothing where it is slow, if anywhere.

    Parameters
    ----------
    cache : arrays keyed by the operator and the settings.
    """
    space, backend = operator.space, operator.backend
    if not backend.capabilities.local_rows:
        return
    local = cast("LocalRows", backend)

    def find() -> Arrays:
        return {"chosen": slow_elements(operator, cycle, settings)}

    chosen = cache.get("slow", find)["chosen"]
    outside = backend.xp.zeros(space.n_node, dtype=np.bool_)
    outside[operator.tets.elements[backend.asarray(~chosen)]] = True
    inside = ~backend.to_host(outside)
    smooth_rows(local, operator, cycle, chosen, inside, settings.local_degree)


def smooth_rows(
    backend: LocalRows,
    operator: Elasticity,
    cycle: Cycle,
    chosen: Bool,
    inside: Bool,
    degree: int,
) -> None:
    """Smooth nodes that are ``inside`` (n_node,) more, if there are any.

    Parameters
    ----------
    backend : where that is done. chosen : (n_elem,) the elements that touch them.
    """
    rows, top = np.flatnonzero(inside), cycle.levels[0]
    if len(rows) == 0:
        return
    assembled = rows_of_stiffness(operator, cycle.unit, chosen, rows)
    moduli = (values[chosen] for values in operator.moduli)
    matrix = backend.stiffness_rows(rows, assembled, top.smoother.inverse, *moduli)
    top.local = LocalSmoother(backend, matrix, degree, top.smoother.top)


def rows_of_stiffness(
    operator: Elasticity, unit: float, chosen: Bool, rows: NDArray[np.int64]
) -> tuple[Any, Any, NDArray[np.float32]]:
    """Rows of the assembled elastic K / unit whose elements are all ``chosen``."""
    space = operator.space
    nodes, flat = np.unique(space.elements[chosen], return_inverse=True)
    local = flat.reshape(-1, 10).astype(np.int32)
    lam, mu = (values[chosen] / unit for values in operator.moduli)
    arrays = (space.gradients[chosen], space.volume[chosen], lam, mu)
    pattern = matrix_pattern(local, len(nodes))
    add = assembly.add_second_order
    found = summed(add, local, pattern, arrays, space.fixed[nodes])
    indptr, indices = pattern
    place = np.searchsorted(nodes, rows)
    counts = np.diff(indptr)[place]
    own = np.concatenate([[0], np.cumsum(counts)])
    take = np.repeat(indptr[place] - own[:-1], counts) + np.arange(own[-1])
    columns = nodes[indices[take]].astype(np.int32)
    return own, columns, found.data.astype(np.float32)[take]
