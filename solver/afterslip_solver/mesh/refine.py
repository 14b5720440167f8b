"""Uniform refinement, one tetrahedron into eight."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from afterslip_solver.jit.threads import over
from afterslip_solver.mesh.fault import second_order_triangles
from afterslip_solver.mesh.lattice import (
    CHILDREN,
    DIAGONALS,
    inherited_diagonals,
    local_children,
)
from afterslip_solver.mesh.numbering import second_order, signed_volumes
from afterslip_solver.mesh.tables.children import children, shortest
from afterslip_solver.mesh.topology import any_corner
from afterslip_solver.model import Bool, Float, Int, TetMesh

# a moved vertex may cost an element this share of its volume at most
_SMALLEST_SHARE = 0.3

# moves positions of new vertices onto a smooth surface
Projection = Callable[[Float], Float]
# see `move_unless_spoilt`
Spoiling = Callable[[Float, Int], Callable[[Float], Bool]]


def refine_uniformly(
    mesh: TetMesh,
    surfaces: Mapping[str, Int],
    projections: Mapping[str, Projection],
) -> tuple[TetMesh, dict[str, Int], int]:
    """Halve every edge.

    The children of element e are elements 8e..8e+7 and the vertices of the
    coarse mesh keep their numbers, its midpoints become the vertices behind them:
    the vertex numbers of a parent are its children's corners 0..3. An element that was
    not refined before is cut along its shortest diagonal, its descendants along the
    one that has a direction of the same lattice, see `lattice`.

    Parameters
    ----------
    surfaces : by name (n_tri, 3) int64 vertex numbers of fault triangles.
    projections : for curved faults, from (n, 3) m to (n, 3) m.

    Returns
    -------
    mesh, surfaces : refined alike.
    left : number of new vertices that stayed at the straight midpoint because
        moving them onto the smooth surface would have spoilt an element.
    """
    fine_surfaces = {
        name: _children_of_triangles(second_order_triangles(mesh, triangles))
        for name, triangles in surfaces.items()
    }
    vertices = mesh.nodes.copy()
    cells = _children_of_cells(mesh)
    left = 0
    for name, project in projections.items():
        new = np.unique(fine_surfaces[name])
        new = new[new >= mesh.n_vertex]
        target = project(vertices[new])
        moved = move_unless_spoilt(vertices, cells, new, target, _losing_volume)
        left += len(new) - len(moved)
    tags = np.repeat(mesh.tags, CHILDREN)
    fine = second_order(vertices, cells, tags, mesh.tag_names)
    return fine, fine_surfaces, left


def _children_of_cells(mesh: TetMesh) -> Int:
    """(8 n_elem, 4) int64 vertex numbers."""
    diagonals = inherited_diagonals(mesh.cells)
    if diagonals is None:
        diagonals = np.empty(len(mesh.elements), dtype=np.int64)
        ends = np.array([(a, b) for a, b, _ in DIAGONALS])
        nodes = mesh.nodes, mesh.elements, ends, diagonals
        over(len(diagonals), partial(shortest, *nodes))
    out = np.empty((len(mesh.elements), CHILDREN, 4), dtype=np.int64)
    tables = mesh.elements, diagonals, local_children(), out
    over(len(out), partial(children, *tables))
    return out.reshape(-1, 4)


def _children_of_triangles(triangles: Int) -> Int:
    """(4 n_tri, 3) from (n_tri, 6), same orientation."""
    local = np.array([[0, 3, 5], [3, 1, 4], [5, 4, 2], [3, 4, 5]])
    return np.asarray(triangles[:, local].reshape(-1, 3))


def _losing_volume(vertices: Float, cells: Int) -> Callable[[Float], Bool]:
    """Return what says which elements lose most of the volume that they have here."""
    before = signed_volumes(vertices, cells)
    return lambda moved: signed_volumes(moved, cells) < _SMALLEST_SHARE * before


def move_unless_spoilt(
    vertices: Float, cells: Int, moving: Int, target: Float, spoiling: Spoiling
) -> Int:
    """Move vertices, in place, except where that would spoil an element.

    Parameters
    ----------
    spoiling : called with the vertices as they are and the elements at moving ones;
        returns what says, of moved vertices, which of these elements are spoilt.

    Returns
    -------
    (n,) numbers of the vertices that moved.
    """
    is_moving = np.zeros(len(vertices), dtype=np.bool_)
    is_moving[moving] = True
    near = cells[any_corner(cells, is_moving)]
    spoilt = spoiling(vertices, near)
    start = vertices[moving].copy()
    vertices[moving] = target
    while True:
        back = np.zeros(len(vertices), dtype=np.bool_)
        back[near[spoilt(vertices)]] = True
        back &= is_moving
        if not back.any():
            return moving[is_moving[moving]]
        is_moving &= ~back
        vertices[moving[back[moving]]] = start[back[moving]]
