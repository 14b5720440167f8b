"""Prediction of where a model's solves will be expensive, before it is partitioned.

The V-cycle smooths some elements more often (see `multigrid.local_smoothing`), and
they lie together. Which they are is known once the preconditioner is set up, too late
for the partition. But the mesh that was refined has its slow elements in about the
same places: on the trench of the benchmarks 70 % of them are children of those one
level up, 56 % two up.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from afterslip_solver.backend import Backend
from afterslip_solver.backend.base import Tets
from afterslip_solver.mesh.numbering import second_order
from afterslip_solver.model import TET_EDGES, Bool, Float, Model, TetMesh
from afterslip_solver.multigrid import MultigridSettings, build
from afterslip_solver.multigrid.local_smoothing import slow_elements
from afterslip_solver.operators import Elasticity, Space
from afterslip_solver.operators.parents import ancestors

# elements that one GPU sets up in a few seconds; of fewer than some 100,000 elements of
# the trench none stand out
_MOST = 1_200_000
# measured: a twentieth of the elements smoothed more takes 1.6 of 16.8 ms an iteration
_MORE = 2.1


@dataclass(frozen=True, eq=False, slots=True)
class Ancestor:
    """What a model's mesh was refined from, with the means of its moduli.

    Attributes
    ----------
    mesh : of quadratic elements. fixed : (n_node, 3) bool. lam, mu : (n_elem,) Pa.
    children : elements of the model for each.
    """

    mesh: TetMesh
    fixed: Bool
    lam: Float
    mu: Float
    children: int

    def slow(self, backend: Backend) -> Bool:
        """(n_elem,) elements that its V-cycle would smooth more."""
        numbering = backend.numbering(self.mesh.nodes, self.mesh.elements)
        space = Space.build(self.mesh, self.fixed, numbering)
        on_backend = map(
            backend.asarray, (space.elements, space.gradients, space.volume)
        )
        order = space.element_order
        moduli = self.lam[order], self.mu[order]
        operator = Elasticity(backend, space, Tets(*on_backend), *moduli)
        # what is looked for in the model, which has more elements
        suiting = MultigridSettings.suiting(self.children * len(self.mesh.cells))
        settings = replace(suiting, local_degree=0)
        found = slow_elements(operator, build(operator, settings), settings)
        return found[space.element_rank]

    def work(self, slow: Bool) -> Float:
        """Work of each of the model's elements in a solve, 1 for most."""
        return np.repeat(1.0 + _MORE * slow, self.children)


def ancestor(model: Model) -> Ancestor | None:
    """Take the finest mesh that a model's was refined from and that is not too large.

    None if there is none.
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
        # the middle of an edge is fixed as both its ends are
        fixed[coarse.elements[:, 4 + k]] = fixed[ends].all(axis=1)
    lam, mu = (
        values.reshape(-1, children).mean(axis=1)
        for values in (model.materials.lam, model.materials.mu)
    )
    return Ancestor(coarse, fixed, lam, mu, children)
