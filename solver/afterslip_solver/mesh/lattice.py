"""Tetrahedra cut into eight again and again, along one diagonal.

Halving the edges of a tetrahedron leaves an octahedron, which is cut along one of its
three diagonals. If all descendants of a tetrahedron are cut along the direction that
was chosen first, they are cells of one lattice: their edges have seven directions, and
their shapes are at most three (Freudenthal 1942; Bey 2000, Numer. Math. 85, 1-29). In
any descendant exactly one diagonal has one of the seven directions.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from afterslip_solver.model import TET_EDGES, Int

CHILDREN = 8
# children at the corners, in local P2 nodes
CORNERS = np.array([[0, 4, 6, 7], [4, 1, 5, 8], [6, 5, 2, 9], [7, 8, 9, 3]])
# the octahedron of midpoints, cut along each of its three diagonals; the other
# four midpoints stand around the diagonal in the order of a right-handed screw
DIAGONALS = ((4, 9, (5, 6, 7, 8)), (5, 7, (4, 8, 9, 6)), (6, 8, (4, 5, 9, 7)))
# barycentric coordinates of an element's nodes, in half edges
_NODES = np.array(
    [np.eye(4, dtype=np.int64)[list(ends)].sum(0) for ends in TET_EDGES], dtype=np.int64
)
P2_NODES = np.concatenate([2 * np.eye(4, dtype=np.int64), _NODES])
# vertices in an order in which the diagonal joins the middles of 0, 2 and of 1, 3
ALONG_LATTICE = np.array([[0, 2, 1, 3], [0, 1, 3, 2], [0, 1, 2, 3]])


@cache
def local_children() -> Int:
    """(3, 8, 4) local P2 nodes of the children, by diagonal."""
    inner = [
        [(a, b, ring[i], ring[(i + 1) % 4]) for i in range(4)]
        for a, b, ring in DIAGONALS
    ]
    return np.concatenate([np.broadcast_to(CORNERS, (3, 4, 4)), inner], axis=1)


def inherited(diagonals: Int) -> Int:
    """(n, 8) diagonals of children that keep the lattice of their parents (n,).

    Those at the corners are cut as the parent was. Vertices 0 and 1 of the others are
    the ends of its diagonal, and their first one has a direction of the lattice.
    """
    return np.column_stack([*[diagonals] * 4, *[np.zeros_like(diagonals)] * 4])


def corners_of_children(cells: NDArray[Any]) -> NDArray[Any] | None:
    """(n / 8, 4, 4) corners of the first four children if elements were halved.

    Child a has the parent's corner a, and as its corner b the middle of edge (a, b).

    Parameters
    ----------
    cells : (n, 4), children one behind the other.
    """
    if len(cells) % CHILDREN:
        return None
    corners = cells.reshape(-1, CHILDREN, 4)[:, :4]
    # the middle of edge (a, b) is corner b of child a and corner a of child b
    return corners if np.array_equal(corners, corners.swapaxes(1, 2)) else None


def inherited_diagonals(cells: NDArray[Any]) -> Int | None:
    """(n,) diagonal of every element along its parents' lattice; None without parents.

    Parameters
    ----------
    cells : (n, 4), children one behind the other.
    """
    corners = corners_of_children(cells)
    if corners is None:
        return None
    ends = [TET_EDGES[a - 4] for a, _, _ in DIAGONALS]
    first = np.stack([corners[:, a, b] for a, b in ends], axis=1)
    # inner children begin with the diagonal
    cut = first == cells[4::CHILDREN, :1]
    if not cut.any(axis=1).all():
        return None
    return inherited(np.argmax(cut, axis=1)).reshape(-1)


@cache
def lattice_of_descendants(times: int) -> Int:
    """Nodes of a tetrahedron's descendants on their lattice, by diagonal.

    Returns
    -------
    (3, 8**times, 10, 3) coordinates along the edges from vertex 0 to 1, 2 and 3 of
    `ALONG_LATTICE`, in half edges of the descendants.
    """
    out = []
    for k in range(3):
        diagonals = np.array([k])
        corners = np.eye(4, dtype=np.int64)[None]
        for _ in range(times):
            nodes = np.einsum("nv,evw->enw", P2_NODES, corners)
            own = local_children()[diagonals]
            corners = np.stack([n[o] for n, o in zip(nodes, own, strict=True)])
            corners = corners.reshape(-1, 4, 4)
            diagonals = inherited(diagonals).reshape(-1)
        nodes = np.einsum("nv,evw->enw", P2_NODES, corners)
        out.append(nodes[:, :, ALONG_LATTICE[k, 1:]])
    return np.stack(out)
