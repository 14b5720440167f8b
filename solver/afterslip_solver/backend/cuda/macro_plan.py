"""Macro elements of a refined mesh: which there are, their nodes and their shapes."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from afterslip_solver.backend.base import Discretisation
from afterslip_solver.backend.cuda.macro_tasks import make_tasks
from afterslip_solver.backend.cuda.stencils import (
    DESCENDANTS,
    STEPS,
    lattice_nodes,
    local_nodes,
)
from afterslip_solver.jit.compiling import compiled
from afterslip_solver.jit.threads import over
from afterslip_solver.mesh.tables.bisection import compact_order
from afterslip_solver.model import Bool, Float, Int

# of a descendant's edge, by which a node may miss its place on the lattice
_STRAIGHT = 1e-11


class Macros(NamedTuple):
    """Elements m DESCENDANTS ... (m + 1) DESCENDANTS - 1 of a mesh as a lattice.

    Attributes
    ----------
    nodes : (n_macro, 969) int32 by lattice node.
    diagonals : (n_macro,) int8, the first diagonal, see `local_nodes`; -1 where the
        elements make no lattice.
    """

    nodes: NDArray[np.int32]
    diagonals: NDArray[np.int8]

    @property
    def found(self) -> Bool:
        """(n_macro,) whether the elements make a lattice."""
        return self.diagonals >= 0


def find_macros(elements: NDArray[np.integer]) -> Macros | None:
    """Find the lattices of elements (n_elem, 10), children behind each other."""
    if len(elements) == 0 or len(elements) % DESCENDANTS:
        return None
    n = len(elements) // DESCENDANTS
    nodes = np.empty((n, len(lattice_nodes())), dtype=np.int32)
    diagonals = np.full(n, -1, dtype=np.int8)
    of_macro = elements.reshape(n, DESCENDANTS, 10)
    over(n, partial(_find, of_macro, local_nodes(), nodes, diagonals), few=1)
    macros = Macros(nodes, diagonals)
    return macros if macros.found.any() else None


def macro_numbering(points: Float, macros: Macros, warps: int) -> tuple[Int, Int]:
    """Orders of nodes and elements that keep a macro element's data together.

    Parameters
    ----------
    points : (n_node, 3) m.

    Returns
    -------
    (n_node,) nodes and (n_elem,) elements, in their new order.
    """
    corners = node_of_corners(macros)
    order = compact_order(points[corners].mean(axis=1), 1)
    elements = order[:, None] * DESCENDANTS + np.arange(DESCENDANTS)
    nodes = np.empty(len(points), dtype=np.int64)
    ranked = make_tasks(warps).nodes
    count = _first_met(macros.nodes, order, ranked, nodes)
    if count != len(points):
        message = f"{len(points) - count} nodes belong to no element"
        raise ValueError(message)
    return nodes, elements.ravel()


def node_of_corners(macros: Macros) -> NDArray[np.int32]:
    """(n_macro, 4) nodes at the origin of the lattice and at the ends of its axes."""
    at = np.vstack([np.zeros((1, 3), dtype=np.int64), STEPS * np.eye(3, dtype=int)])
    where = [np.flatnonzero((lattice_nodes() == p).all(axis=1))[0] for p in at]
    return macros.nodes[:, where]


def shapes(space: Discretisation, macros: Macros) -> tuple[Float, Bool]:
    """Gradients of the lattice's coordinates, and whether all nodes lie on it.

    Returns
    -------
    gradients : (n_macro, 3, 3) 1/m, rows by coordinate, in edges of descendants.
    straight : (n_macro,).
    """
    corners = space.nodes[node_of_corners(macros)]
    steps = (corners[:, 1:] - corners[:, :1]) * (2.0 / STEPS)
    straight = macros.found
    table = space.nodes, macros.nodes, lattice_nodes(), corners[:, 0], steps
    over(len(steps), partial(_straight, *table, _STRAIGHT, straight), few=1)
    gradients = np.zeros_like(steps)
    gradients[straight] = np.linalg.inv(steps[straight]).swapaxes(1, 2)
    return gradients, straight


def uniform(values: Float) -> Bool:
    """(n_macro,) whether values (n_elem,) are the same in all descendants."""
    of_macro = values.reshape(-1, DESCENDANTS)
    return np.asarray((of_macro == of_macro[:, :1]).all(axis=1))


@compiled()
def _find(
    elements: Any, local: Any, nodes: Any, diagonals: Any, start: int, stop: int
) -> None:
    for m in range(start, stop):
        for k in range(3):
            nodes[m] = -1
            agrees = True
            for e in range(elements.shape[1]):
                for a in range(10):
                    place = local[k, e, a]
                    if nodes[m, place] < 0:
                        nodes[m, place] = elements[m, e, a]
                    elif nodes[m, place] != elements[m, e, a]:
                        agrees = False
                if not agrees:
                    break
            if agrees:
                diagonals[m] = k
                break


@compiled()
def _first_met(macros: Any, order: Any, ranked: Any, out: Any) -> int:
    """List nodes in the order of macro elements and of their ranks."""
    met = np.zeros(len(out), np.bool_)
    count = 0
    for m in order:
        for k in ranked:
            node = macros[m, k]
            if not met[node]:
                met[node] = True
                out[count] = node
                count += 1
    return count


@compiled()
def _straight(
    points: Any, macros: Any, lattice: Any, origin: Any, steps: Any, tolerance: float,
    straight: Any, start: int, stop: int,
) -> None:  # fmt: skip
    for m in range(start, stop):
        if not straight[m]:
            continue
        size = 0.0
        for i in range(3):
            for x in range(3):
                size = max(size, abs(steps[m, i, x]))
        for k in range(len(lattice)):
            for x in range(3):
                at = origin[m, x]
                for i in range(3):
                    at += 0.5 * lattice[k, i] * steps[m, i, x]
                if abs(points[macros[m, k], x] - at) > tolerance * size:
                    straight[m] = False
