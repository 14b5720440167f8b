"""Better elements where a mesh was made to follow surfaces.

Cutting leaves flat elements, which a block-Jacobi smoother damps badly: the fewer, the
fewer iterations. Vertices move downhill in the badness of the elements around them;
those on a surface slide on it, and elements stay as they are connected.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from afterslip_common.geometry import Box
from afterslip_solver.mesh.numbering import oriented
from afterslip_solver.mesh.quality import element_shapes
from afterslip_solver.mesh.refine import move_unless_spoilt
from afterslip_solver.mesh.tables.edges import number_edges
from afterslip_solver.mesh.tables.relocate import relocate
from afterslip_solver.mesh.topology import any_corner
from afterslip_solver.model import Bool, Float, Int

# vertices of elements worse than this (gamma) move
_POOR = 0.3
# an element may get worse than this (gamma) only where one beside it was worse
_LEAST = 0.12
_ROUNDS = 3
# steps of a vertex in a round, and the first one as a share of its shortest edge
_TIMES = 6
_STEP = 0.2
# m that a vertex on a surface may be off it
_ROUNDING = 1.0
# sine of the angle below which surfaces run along each other
_PARALLEL = 0.05


class Surface(Protocol):
    """What vertices slide on."""

    @property
    def distance(self) -> Callable[[Float], Float]:
        """From points (n, 3), m, to their distances (n,), m."""

    def normals(self, points: Float) -> Float:
        """Return unit vectors (n, 3) across it at points (n, 3), m."""

    def project(self, points: Float, box: Box) -> Float:
        """Return points (n, 3), m, moved onto it, but not off walls of a box."""


def smoothed(
    vertices: Float,
    cells: Int,
    movable: Bool,
    box: Box,
    surfaces: Sequence[tuple[Surface, Bool]],
) -> Float:
    """Move vertices of poor elements.

    Parameters
    ----------
    vertices : (n_vertex, 3) m. cells : (n_elem, 4), in either orientation.
    movable : (n_vertex,) those that may move.
    box : whose walls the outer vertices stay on.
    surfaces : with the vertices (n_vertex,) that slide on each.

    Returns
    -------
    (n_vertex, 3) m. No element gets worse than the worst beside it was, or 0.12.
    """
    vertices, walls = vertices.copy(), on_walls(vertices, box)
    near = oriented(vertices, cells[any_corner(cells, movable)])
    if not len(near):
        return vertices
    starts, places = _elements_at(near, len(vertices))
    for _ in range(_ROUNDS):
        gamma = element_shapes(vertices, near)[1]
        poor = np.zeros(len(vertices), dtype=np.bool_)
        poor[near[gamma < _POOR]] = True
        moving = np.flatnonzero(poor & movable)
        free = _free(vertices, moving, walls, surfaces)
        can = np.abs(free).max(axis=(1, 2), initial=0.0) > 0.0
        moving, free = moving[can], free[can]
        if not len(moving):
            break
        target = vertices.copy()
        steps = _STEP * _shortest(vertices, near)[moving]
        relocate(target, near, starts, places, moving, free, steps, _TIMES)
        moving = moving[(target[moving] != vertices[moving]).any(axis=1)]
        moving = _slid(vertices, target, moving, box, surfaces)
        move_unless_spoilt(vertices, near, moving, target[moving], _worsening)
    return vertices


def walls_of(box: Box) -> tuple[float, ...]:
    """Where the walls of a box are, m: two across x, two across y, bottom and top."""
    return (*box.x, *box.y, -box.depth, 0.0)


def on_walls(points: Float, box: Box) -> Bool:
    """(n, 3) which components of points (n, 3), m, are those of a wall of a box."""
    found = np.zeros(points.shape, dtype=np.bool_)
    for number, at in enumerate(walls_of(box)):
        found[:, number // 2] |= points[:, number // 2] == at
    return found


def _elements_at(cells: Int, n_vertex: int) -> tuple[Int, Int]:
    """(n_vertex + 1,) starts, and 4 element + corner, of each vertex' elements."""
    corners = cells.reshape(-1)
    starts = np.zeros(n_vertex + 1, dtype=np.int64)
    np.cumsum(np.bincount(corners, minlength=n_vertex), out=starts[1:])
    return starts, np.argsort(corners, kind="stable")


def _shortest(vertices: Float, cells: Int) -> Float:
    """(n_vertex,) m, length of the shortest edge at a vertex."""
    _, edges = number_edges(cells, len(vertices))
    length = np.linalg.norm(vertices[edges[:, 1]] - vertices[edges[:, 0]], axis=1)
    found = np.full(len(vertices), np.inf)
    for ends in edges.T:
        np.minimum.at(found, ends, length)
    return found


def _free(
    vertices: Float,
    moving: Int,
    walls: Bool,
    surfaces: Sequence[tuple[Surface, Bool]],
) -> Float:
    """(n, 3, 3) projections of moves onto what walls and surfaces leave."""
    free = np.eye(3) * ~walls[moving][:, None, :]
    for surface, on in surfaces:
        rows = np.flatnonzero(on[moving])
        if not len(rows):
            continue
        normals = surface.normals(vertices[moving[rows]])
        across = np.einsum("nij,nj->ni", free[rows], normals)
        length = np.linalg.norm(across, axis=1)
        # one that runs along another, or along a wall, takes no more away
        across[length < _PARALLEL] = 0.0
        across /= np.maximum(length, _PARALLEL)[:, None]
        free[rows] -= across[:, :, None] * across[:, None, :]
    free[np.abs(free) < 1e-9] = 0.0
    return free


def _slid(
    vertices: Float,
    target: Float,
    moving: Int,
    box: Box,
    surfaces: Sequence[tuple[Surface, Bool]],
) -> Int:
    """Put targets back on surfaces; return the vertices for which that works."""
    several = np.sum([on[moving] for _, on in surfaces], axis=0).max(initial=0) > 1
    for _ in range(3 if several else 1):
        for surface, on in surfaces:
            rows = moving[on[moving]]
            if len(rows):
                target[rows] = surface.project(target[rows], box)
    fine = np.ones(len(moving), dtype=np.bool_)
    for surface, on in surfaces:
        rows = np.flatnonzero(on[moving])
        if len(rows):
            # those that were off it from the start may stay so
            before = np.abs(surface.distance(vertices[moving[rows]]))
            after = np.abs(surface.distance(target[moving[rows]]))
            fine[rows] &= after <= np.maximum(before, _ROUNDING)
    return moving[fine]


def _worsening(vertices: Float, cells: Int) -> Callable[[Float], Bool]:
    """Return what says which elements are worse than the worst beside them were."""
    before = element_shapes(vertices, cells)[1]
    worst = np.full(len(vertices), np.inf)
    for corner in cells.T:
        np.minimum.at(worst, corner, before)
    bound = np.minimum(worst[cells].min(axis=1), _LEAST)
    return lambda moved: element_shapes(moved, cells)[1] < bound
