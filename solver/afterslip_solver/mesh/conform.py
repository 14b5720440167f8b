"""Make the faces of a mesh follow surfaces that gmsh was not given.

Sides of bodies and bottoms of layers are where a function of the place is zero.
Vertices that are near such a surface move onto it, and edges that still cross it are
cut where they do, as isosurface stuffing does with the elements of a lattice (Labelle &
Shewchuk 2007, ACM Trans. Graph. 26, 57). Vertices of flat elements beside the cuts then
move, see `smoothing`. Nothing else of the mesh changes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from afterslip_common.geometry import Box
from afterslip_solver.mesh.mesher import RawMesh
from afterslip_solver.mesh.numbering import oriented
from afterslip_solver.mesh.quality import element_shapes
from afterslip_solver.mesh.refine import move_unless_spoilt
from afterslip_solver.mesh.smoothing import on_walls, smoothed, walls_of
from afterslip_solver.mesh.tables.edges import number_edges
from afterslip_solver.mesh.thin import Near, everywhere
from afterslip_solver.mesh.topology import any_corner, cell_faces, edge_keys
from afterslip_solver.model import TET_EDGES, Bool, Float, Int

# share of an edge within which its end moves onto the surface
_NEAR = 0.3
# share of the shortest edge at a vertex that does not move, within which the surface is
# taken to pass through it
_IN_PLACE = 0.2
# moving vertices may make no element worse than this (gamma)
_LEAST_GAMMA = 0.12
# m
_ROUNDING = 1.0
_ROOTS = 12
# m, of differences in place of derivatives
_STEP = 50.0

Distance = Callable[[Float], Float]


class Plate(Protocol):
    """A part of the Earth between a surface and a parallel one below it."""

    @property
    def thickness(self) -> float:
        """Distance of the two, m."""

    def across(self, points: Float) -> Float:
        """Distance (n,), m, of points (n, 3) below its top."""


@dataclass(frozen=True, slots=True)
class Boundary:
    """A surface between materials.

    Attributes
    ----------
    distance : from (n, 3) m to (n,) m, zero on the surface.
    covers : the plates inside of which there is no such surface.
    near : tells of points (n, 3), m, whether it is followed there.
    """

    distance: Distance
    covers: tuple[Plate, ...] = ()
    near: Near = everywhere

    def project(self, points: Float, box: Box) -> Float:
        """Move points (n, 3), m, onto the surface; those on walls of a box stay there.

        By two steps of Newton's method along the gradient.
        """
        moved, free = points.copy(), ~on_walls(points, box)
        for _ in range(2):
            gradient = self._gradient(moved) * free
            square = np.maximum((gradient**2).sum(axis=1), 0.1)
            moved -= (self.distance(moved) / square)[:, None] * gradient
        return moved

    def normals(self, points: Float) -> Float:
        """(n, 3) unit vectors across the surface at points (n, 3), m."""
        gradient = self._gradient(points)
        length = np.linalg.norm(gradient, axis=1, keepdims=True)
        return np.asarray(gradient / np.maximum(length, 0.1))

    def _gradient(self, points: Float) -> Float:
        gradient = np.empty_like(points)
        for axis, step in enumerate(_STEP * np.eye(3)):
            ends = self.distance(points + step), self.distance(points - step)
            gradient[:, axis] = (ends[0] - ends[1]) / (2.0 * _STEP)
        return gradient

    def exists(self, points: Float) -> Bool:
        """(n,) whether the surface is there at points (n, 3) that lie on it."""
        found = self.near(points)
        for plate in self.covers:
            across = plate.across(points)
            inner = (across > _ROUNDING) & (across < plate.thickness - _ROUNDING)
            found &= ~inner
        return found


def boundaries_of(
    plates: Sequence[Plate],
    bottoms: Sequence[float],
    near: Callable[[float], Near | None] = lambda _: everywhere,
) -> list[Boundary]:
    """Return the sides of plates, and the bottoms of layers, that are to be followed.

    Parameters
    ----------
    plates : later ones lie in place of earlier ones, and all in place of layers.
    bottoms : m, depths.
    near : from the thickness of a plate, m, to where its bottom is followed; None
        stands for nowhere.
    """
    found = []
    for number in reversed(range(len(plates))):
        plate, later = plates[number], tuple(plates[number + 1 :])
        found.append(Boundary(_below(plate, 0.0), later))
        where = near(plate.thickness)
        if where is not None:
            found.append(Boundary(_below(plate, plate.thickness), later, where))
    return found + [Boundary(_under(depth), tuple(plates)) for depth in bottoms]


def _below(plate: Plate, level: float) -> Distance:
    return lambda points: plate.across(points) - level


def _under(depth: float) -> Distance:
    return lambda points: np.asarray(-points[:, 2] - depth)


def conform(
    raw: RawMesh, boundaries: Sequence[Boundary], box: Box
) -> tuple[RawMesh, list[Int]]:
    """Let faces of a mesh follow boundaries.

    Parameters
    ----------
    boundaries : the first ones have precedence where several are closer to each other
        than elements are large. Faults, and boundaries that the mesh follows already,
        stay where they are.
    box : whose walls the outer vertices stay on.

    Returns
    -------
    The mesh, and for each boundary the faces (n, 3) with all their corners on it, in
    vertex numbers. The mesh is the same object where it follows all of them already.
    """
    given = raw
    firm = _on_surfaces(raw)
    for boundary in boundaries:
        on = np.flatnonzero(np.abs(boundary.distance(raw.vertices)) < _ROUNDING)
        firm[on[boundary.exists(raw.vertices[on])]] = True
    on_boundaries = []
    for boundary in boundaries:
        raw, on = _followed(raw, boundary, box, firm)
        firm = np.concatenate([firm, np.zeros(len(raw.vertices) - len(firm), bool)])
        firm[on] = True
        on_boundaries.append(on)
    if raw is not given:
        raw = _smoothed(raw, given, boundaries, on_boundaries, box)
    return raw, [_faces(raw, on) for on in on_boundaries]


def _on_surfaces(raw: RawMesh) -> Bool:
    """(n_vertex,) whether a vertex is on a fault."""
    found = np.zeros(len(raw.vertices), dtype=np.bool_)
    for triangles in raw.surfaces.values():
        found[triangles] = True
    return found


def _smoothed(
    raw: RawMesh,
    before: RawMesh,
    boundaries: Sequence[Boundary],
    on_boundaries: Sequence[Int],
    box: Box,
) -> RawMesh:
    """Move vertices for better elements beside those that were moved or made.

    Parameters
    ----------
    before : the mesh that followed no boundary yet.
    on_boundaries : for each one the numbers of vertices that stay on it.
    """
    count = len(before.vertices)
    changed = np.ones(len(raw.vertices), dtype=np.bool_)
    changed[:count] = (raw.vertices[:count] != before.vertices).any(axis=1)
    movable = np.zeros(len(raw.vertices), dtype=np.bool_)
    movable[raw.cells[any_corner(raw.cells, changed)]] = True
    movable &= ~_on_surfaces(raw)
    surfaces = []
    for boundary, on in zip(boundaries, on_boundaries, strict=True):
        sliding = np.zeros(len(raw.vertices), dtype=np.bool_)
        sliding[on] = True
        surfaces.append((boundary, sliding))
    vertices = smoothed(raw.vertices, raw.cells, movable, box, surfaces)
    return replace(raw, vertices=vertices)


def _faces(raw: RawMesh, vertices: Int) -> Int:
    """(n, 3) faces of elements with all corners among some vertices."""
    on = np.zeros(len(raw.vertices), dtype=np.bool_)
    on[vertices] = True
    near = raw.cells[any_corner(raw.cells, on, 3)]
    faces = cell_faces(near).reshape(-1, 3)
    faces = np.sort(faces[on[faces].all(axis=1)], axis=1)
    return np.asarray(np.unique(faces, axis=0))


def _followed(
    raw: RawMesh, boundary: Boundary, box: Box, firm: Bool
) -> tuple[RawMesh, Int]:
    """Let the mesh follow one boundary; return the numbers of vertices on it too."""
    distance = boundary.distance(raw.vertices)
    some = any_corner(raw.cells, distance < 0.0) & any_corner(raw.cells, distance > 0.0)
    _, edges = number_edges(raw.cells[some], len(raw.vertices))
    close = np.abs(distance) < _IN_PLACE * _shortest(raw.vertices, edges)
    side = np.sign(distance).astype(np.int64)
    side[np.abs(distance) < _ROUNDING * 1e-3] = 0
    side[firm & close] = 0
    cut, share, places = _crossed(raw.vertices, edges, side, boundary)
    if len(cut):
        raw, moved = _moved(raw, cut, share, places, box, firm)
        side[moved] = 0
        at_cut = np.unique(cut)
        side[at_cut[close[at_cut]]] = 0
        cut, _, places = _crossed(raw.vertices, edges, side, boundary)
        raw = _cut(raw, cut, places)
    on = np.flatnonzero(side == 0)
    on = on[boundary.exists(raw.vertices[on])]
    return raw, np.concatenate([on, np.arange(len(side), len(raw.vertices))])


def _shortest(vertices: Float, edges: Int) -> Float:
    """(n_vertex,) m, length of the shortest edge at a vertex; 0 without one."""
    length = np.linalg.norm(vertices[edges[:, 1]] - vertices[edges[:, 0]], axis=1)
    found = np.full(len(vertices), np.inf)
    for ends in edges.T:
        np.minimum.at(found, ends, length)
    found[np.isinf(found)] = 0.0
    return found


def _crossed(
    vertices: Float, edges: Int, side: Int, boundary: Boundary
) -> tuple[Int, Float, Float]:
    """Edges that cross the boundary, where, as a share of them, and the place."""
    crossing = edges[side[edges[:, 0]] * side[edges[:, 1]] < 0]
    start, end = vertices[crossing[:, 0]], vertices[crossing[:, 1]]

    def along(share: Float) -> Float:
        return boundary.distance(start + share[:, None] * (end - start))

    share = _roots(along, len(crossing))
    places = start + share[:, None] * (end - start)
    exists = boundary.exists(places)
    return crossing[exists], share[exists], places[exists]


def _roots(function: Callable[[Float], Float], count: int) -> Float:
    """(count,) zeros between 0 and 1 of functions that change their signs there.

    By false position; every third step halves, so that no end stays.
    """
    low, high = np.zeros(count), np.ones(count)
    at_low, at_high = function(low), function(high)
    for step in range(_ROOTS):
        line = (low * at_high - high * at_low) / (at_high - at_low)
        tried = 0.5 * (low + high) if step % 3 == 0 else line
        found = function(tried)
        left = np.sign(found) == np.sign(at_low)
        low, at_low = np.where(left, tried, low), np.where(left, found, at_low)
        high, at_high = np.where(left, high, tried), np.where(left, at_high, found)
    return np.asarray((low * at_high - high * at_low) / (at_high - at_low))


def _outer(vertices: Float, box: Box) -> Int:
    """(n_vertex,) bits of the walls that a vertex is on."""
    found = np.zeros(len(vertices), dtype=np.int64)
    for number, at in enumerate(walls_of(box)):
        found |= (vertices[:, number // 2] == at).astype(np.int64) << number
    return found


def _moved(
    raw: RawMesh, cut: Int, share: Float, places: Float, box: Box, firm: Bool
) -> tuple[RawMesh, Int]:
    """Move ends of edges to where the edges cross, if that is near.

    Returns
    -------
    The mesh, and the numbers (n,) of the vertices that were moved.
    """
    ends = np.concatenate([cut, cut[:, ::-1]])
    share, places = np.concatenate([share, 1.0 - share]), np.tile(places, (2, 1))
    own, other = ends.T
    # a vertex stays on its walls
    walls = _outer(raw.vertices, box)
    free = ~firm[own] & (walls[own] & ~walls[other] == 0) & (share < _NEAR)
    own, places = own[free], places[free]
    if not len(own):
        return raw, own
    length = np.linalg.norm(places - raw.vertices[own], axis=1)
    order = np.lexsort((length, own))
    own, first = np.unique(own[order], return_index=True)
    vertices, target = raw.vertices.copy(), places[order[first]]
    moved = move_unless_spoilt(vertices, raw.cells, own, target, _worsening)
    return replace(raw, vertices=vertices), moved


def _worsening(vertices: Float, cells: Int) -> Callable[[Float], Bool]:
    """Return what says which elements are bad, and worse than they are here."""
    cells = oriented(vertices, cells)
    before = element_shapes(vertices, cells)[1]

    def spoilt(moved: Float) -> Bool:
        gamma = element_shapes(moved, cells)[1]
        return (gamma < _LEAST_GAMMA) & (gamma < before)

    return spoilt


def _cut(raw: RawMesh, edges: Int, places: Float) -> RawMesh:
    """Cut edges (n, 2) at places (n, 3), m, with all elements and triangles at them."""
    if not len(edges):
        return raw
    vertices = np.concatenate([raw.vertices, places])
    cut = _Cut.of(vertices, edges)
    surfaces = {
        name: cut.halves(triangles, np.array([(0, 1), (1, 2), (2, 0)]))
        for name, triangles in raw.surfaces.items()
    }
    return RawMesh(vertices, cut.halves(raw.cells, np.array(TET_EDGES)), surfaces)


@dataclass(frozen=True, slots=True)
class _Cut:
    """Edges that get a vertex.

    Attributes
    ----------
    n_vertex : of all.
    keys : (n,) of the edges, rising. middle, rank : (n,) number of the vertex of each,
        and its place by length, longest first.
    """

    n_vertex: int
    keys: Int
    middle: Int
    rank: Int

    @classmethod
    def of(cls, vertices: Float, edges: Int) -> _Cut:
        """Cut edges at the last vertices."""
        keys = edge_keys(edges, len(vertices))
        order = np.argsort(keys)
        length = np.linalg.norm(vertices[edges[:, 1]] - vertices[edges[:, 0]], axis=1)
        rank = np.empty(len(edges), dtype=np.int64)
        rank[np.argsort(-length, kind="stable")] = np.arange(len(edges))
        first = len(vertices) - len(edges)
        return cls(len(vertices), keys[order], first + order, rank[order])

    def halves(self, simplices: Int, sides: Int) -> Int:
        """Halve simplices (n, k) at their longest edge again and again.

        The order of the edges is one of the whole mesh, so that both sides of a face
        halve it alike.

        Parameters
        ----------
        sides : (n_side, 2) corners of each edge.
        """
        done = []
        while len(simplices):
            keys = edge_keys(simplices[:, sides], self.n_vertex)
            place = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
            hit = self.keys[place] == keys
            rank = np.where(hit, self.rank[place], len(self.keys))
            longest, has = rank.argmin(axis=1), hit.any(axis=1)
            done.append(simplices[~has])
            rows = np.flatnonzero(has)
            middle = self.middle[place[rows, longest[rows]]]
            simplices, ends = simplices[rows], sides[longest[rows]]
            one, other = simplices.copy(), simplices.copy()
            one[np.arange(len(rows)), ends[:, 1]] = middle
            other[np.arange(len(rows)), ends[:, 0]] = middle
            simplices = np.concatenate([one, other])
        return np.concatenate(done)
