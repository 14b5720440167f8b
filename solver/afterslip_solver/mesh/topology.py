"""Edges and faces of tetrahedra as integer keys."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from afterslip_solver.jit.threads import over
from afterslip_solver.mesh.tables.corners import with_corners
from afterslip_solver.mesh.tables.outside import on_single_faces
from afterslip_solver.model import TET_EDGES, Bool, Int

# vertices of the faces of a positively oriented tetrahedron, viewed from outside
TET_FACES = ((0, 2, 1), (0, 1, 3), (1, 2, 3), (0, 3, 2))
# the same faces as P2 triangles: 3 vertices, midpoints of (0,1), (1,2), (2,0)
TET_FACES_P2 = (
    (0, 2, 1, 6, 5, 4),
    (0, 1, 3, 4, 8, 7),
    (1, 2, 3, 5, 9, 8),
    (0, 3, 2, 7, 9, 6),
)


def any_corner(cells: Int, chosen: Bool, least: int = 1) -> Bool:
    """(n_cell,) whether corners (n_cell, 4) are among the chosen vertices.

    Parameters
    ----------
    least : how many of them must be.
    """
    found = np.empty(len(cells), dtype=np.bool_)
    over(len(cells), partial(with_corners, cells, chosen, least, found))
    return found


def edge_keys(edges: Int, n_vertex: int) -> Int:
    """One integer per undirected edge.

    Parameters
    ----------
    edges : (..., 2) int64 vertex numbers.
    n_vertex : more than the largest vertex number.

    Returns
    -------
    (...) int64, the same for (a, b) and (b, a).
    """
    low = np.minimum(edges[..., 0], edges[..., 1])
    high = np.maximum(edges[..., 0], edges[..., 1])
    return np.asarray(low * np.int64(n_vertex) + high, dtype=np.int64)


def face_keys(faces: Int, n_vertex: int) -> Int:
    """One integer per undirected triangle.

    Parameters
    ----------
    faces : (n, 3) int64 vertex numbers.
    n_vertex : more than the largest vertex number.

    Returns
    -------
    (n,) int64; comparable within one call only where ``n_vertex`` is 2**21 or
    more, because pairs are then numbered first to stay within 63 bits.
    """
    rows = np.sort(faces, axis=1)
    pair = rows[:, 0] * np.int64(n_vertex) + rows[:, 1]
    if n_vertex >= 1 << 21:
        pair = np.unique(pair, return_inverse=True)[1].astype(np.int64)
    return np.asarray(pair * np.int64(n_vertex) + rows[:, 2], dtype=np.int64)


def cell_edges(cells: Int) -> Int:
    """(n_elem, 6, 2) vertex numbers of the edges of tetrahedra (n_elem, 4+)."""
    return cells[:, np.array(TET_EDGES)]


def cell_faces(cells: Int) -> Int:
    """(n_elem, 4, 3) vertex numbers of the outward faces of (n_elem, 4+) cells."""
    return cells[:, np.array(TET_FACES)]


def boundary_faces(cells: Int, n_vertex: int) -> tuple[Int, Int]:
    """Faces that belong to one tetrahedron only.

    Returns
    -------
    element, local : (n_face,) int64, element number and local face number.
    """
    # only an element with three vertices of such faces can have one
    outer = on_single_faces(cells, n_vertex)
    near = np.flatnonzero(any_corner(cells, outer, 3))
    faces = cell_faces(cells[near]).reshape(-1, 3)
    some = np.flatnonzero(outer[faces].all(axis=1))
    keys = face_keys(faces[some], n_vertex)
    _, first, count = np.unique(keys, return_index=True, return_counts=True)
    chosen = np.sort(some[first[count == 1]])
    return near[chosen // 4], chosen % 4


def is_even_permutation(rows: Int, reference: Int) -> NDArray[np.bool_]:
    """Whether each triangle is a cyclic permutation of its reference.

    Parameters
    ----------
    rows, reference : (n, 3) int64, row by row the same three numbers.
    """
    first = np.argmax(rows == reference[:, :1], axis=1)
    line = np.arange(len(rows))
    return np.asarray(rows[line, (first + 1) % 3] == reference[:, 1], dtype=np.bool_)
