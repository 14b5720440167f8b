"""Foretelling where a model's solves will be dear, before it is cut into parts.

The V-cycle smooths some elements more often (see `multigrid.slow`), and they lie
together. Which they are is known when the preconditioner stands, too late for the cut.
But the mesh that was refined has its slow elements in about the same places: on the
trench of the benchmarks 70 % of them are children of those one level up, 56 % two up.
"""

from __future__ import annotations

import numpy as np

from afterslip_solver.backend.base import Tets
from afterslip_solver.backend.cpu import CpuBackend
from afterslip_solver.mesh.numbering import second_order
from afterslip_solver.model import TET_EDGES, Float, Model
from afterslip_solver.multigrid import MultigridSettings, build
from afterslip_solver.multigrid.slow import slow_elements
from afterslip_solver.operators import Elasticity, Space
from afterslip_solver.operators.parents import ancestors

# elements of the coarse model, which is solved by one core
_MOST = 60_000
# measured: a tenth of the elements smoothed more takes 2.6 of 23.6 ms an iteration
_MORE = 1.2


def expected_work(model: Model) -> Float | None:
    """(n_elem,) work of each element in a solve, 1 for most; None where unknown.

    It is known of meshes that were refined from one that is small enough.
    """
    mesh = model.mesh
    found = ancestors(mesh.cells.astype(np.int32), np.arange(mesh.n_vertex))
    # the finest of the small ones tells most
    level = next((one for one in found if len(one.cells) <= _MOST), None)
    if level is None:
        return None
    children = len(mesh.elements) // len(level.cells)
    coarse = second_order(mesh.nodes[level.vertices], level.cells.astype(np.int64))
    fixed = np.zeros((len(coarse.nodes), 3), dtype=np.bool_)
    fixed[: coarse.n_vertex] = model.fixed[level.vertices]
    for k, (a, b) in enumerate(TET_EDGES):
        ends = coarse.cells[:, [a, b]]
        # the middle of an edge is held as both its ends are
        fixed[coarse.elements[:, 4 + k]] = fixed[ends].all(axis=1)
    backend, space = CpuBackend(1), Space.build(coarse, fixed)
    moduli = (
        values.reshape(-1, children).mean(axis=1)[space.element_order]
        for values in (model.materials.lam, model.materials.mu)
    )
    tets = Tets(space.elements, space.gradients, space.volume)
    operator = Elasticity(backend, space, tets, *moduli)
    settings = MultigridSettings(local_degree=0)
    slow = slow_elements(operator, build(operator, settings), settings.local_share)
    return np.repeat(1.0 + _MORE * slow[space.element_rank], children)
