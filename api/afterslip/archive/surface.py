"""Interpolation on the second-order triangles of the free surface."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial import cKDTree

from afterslip.errors import Problem, SpecError
from afterslip.units import KM

Float = NDArray[np.float64]
Int = NDArray[np.int64]

# a point may be this far outside a triangle, in its own coordinates, and still in it
TOLERANCE = 1e-9
MOST_NAMED = 20
# m, beyond every model
FARTHEST = 1e9


class SurfaceInterpolator:
    """P2 interpolation in the map plane.

    Parameters
    ----------
    node_xy : (n_node, 2) float64, m. A node may be there twice, once for each side
        of a fault that breaks the surface.
    faces : (n_face, 6) int, positions in ``node_xy``: corners and midpoints in turn.
    """

    def __init__(self, node_xy: ArrayLike, faces: ArrayLike) -> None:
        self.nodes = np.asarray(node_xy, dtype=np.float64)[:, :2]
        self.faces = np.asarray(faces, dtype=np.int64)
        corners = self.nodes[self.faces[:, ::2]]
        self._origin = corners[:, 2]
        sides = np.stack(
            [corners[:, 0] - corners[:, 2], corners[:, 1] - corners[:, 2]], axis=2
        )
        self._inverse = np.linalg.inv(sides)
        self._neighbours = _neighbours(corners)
        self._centres = cKDTree(corners.mean(axis=1))

    def weights(
        self, x: ArrayLike, y: ArrayLike, names: Sequence[str] | None = None
    ) -> tuple[Int, Float]:
        """Return nodes and weights of places.

        Parameters
        ----------
        x, y : (n,) m, local.
        names : of the places, for messages.

        Returns
        -------
        nodes : (n, 6) int64.
        weights : (n, 6) float64; a value at a place is their sum over nodes.

        Raises
        ------
        SpecError
            Places are outside the surface; with their names.
        """
        points = np.column_stack(
            [np.atleast_1d(np.asarray(v, dtype=np.float64)) for v in (x, y)]
        )
        face, local = self.locate(points)
        outside = np.flatnonzero(face < 0)
        if len(outside):
            raise SpecError(_outside(points, outside, names))
        a, b, c = local.T
        weights = np.column_stack(
            [
                a * (2 * a - 1),
                4 * a * b,
                b * (2 * b - 1),
                4 * b * c,
                c * (2 * c - 1),
                4 * c * a,
            ]
        )
        return self.faces[face], weights

    def locate(self, points: Float) -> tuple[Int, Float]:
        """Return the face of each point and its coordinates in it.

        Walks from the face with the nearest centre towards the point; points that
        a walk does not find are sought in all faces.

        Parameters
        ----------
        points : (n, 2) float64, m.

        Returns
        -------
        face : (n,) int64; -1 outside.
        local : (n, 3) float64, barycentric.
        """
        n = len(points)
        face = np.full(n, -1, dtype=np.int64)
        local = np.zeros((n, 3))
        # squares of larger numbers overflow, and NaN is nowhere
        active = np.flatnonzero((np.abs(points) <= FARTHEST).all(axis=1))
        here = self._centres.query(points[active])[1] if len(active) else active
        lost: list[Int] = []
        for _ in range(len(self.faces)):
            if not len(active):
                break
            bary = self._barycentric(here, points[active])
            found = bary.min(axis=1) >= -TOLERANCE
            face[active[found]] = here[found]
            local[active[found]] = bary[found]
            # leave through the side opposite the most negative coordinate
            onward = self._neighbours[here, bary.argmin(axis=1)]
            lost.append(active[~found & (onward < 0)])
            keep = ~found & (onward >= 0)
            active, here = active[keep], onward[keep]
        for point in np.concatenate([active, *lost]).tolist():
            self._search(points, point, face, local)
        return face, local

    def _barycentric(self, face: Int, points: Float) -> Float:
        ab = np.einsum("nij,nj->ni", self._inverse[face], points - self._origin[face])
        return np.column_stack([ab, 1.0 - ab.sum(axis=1)])

    def _search(self, points: Float, point: int, face: Int, local: Float) -> None:
        every = np.arange(len(self.faces))
        where = np.broadcast_to(points[point], (len(every), 2))
        bary = self._barycentric(every, where)
        best = int(bary.min(axis=1).argmax())
        if bary[best].min() >= -TOLERANCE:
            face[point], local[point] = best, bary[best]


def _neighbours(corners: Float) -> Int:
    """Return (n_face, 3): the face beyond the side opposite each corner, or -1.

    Corners are distinguished by place, not by number: a fault that breaks the surface
    has nodes twice.
    """
    flat = np.round(corners.reshape(-1, 2), 3)
    _, number = np.unique(flat, axis=0, return_inverse=True)
    corner = number.reshape(-1, 3)
    sides = np.sort(corner[:, [[1, 2], [2, 0], [0, 1]]].reshape(-1, 2), axis=1)
    order = np.lexsort(sides.T)
    same = (sides[order[1:]] == sides[order[:-1]]).all(axis=1)
    first, second = order[:-1][same], order[1:][same]
    found = np.full(len(sides), -1, dtype=np.int64)
    found[first], found[second] = second // 3, first // 3
    return found.reshape(-1, 3)


def _outside(points: Float, rows: Int, names: Sequence[str] | None) -> list[Problem]:
    found = []
    for row in rows[:MOST_NAMED]:
        x, y = points[row] / KM
        name = None if names is None else names[int(row)]
        message = f"is outside the model's surface, at x {x:.1f} km, y {y:.1f} km"
        found.append(Problem(f"stations[{row}]", name, message))
    if len(rows) > MOST_NAMED:
        more = len(rows) - MOST_NAMED
        found.append(Problem("stations", None, f"{more} more are outside"))
    return found
