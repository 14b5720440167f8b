"""Find the elements that hold given points."""

from __future__ import annotations

import numpy as np
from scipy.spatial import cKDTree

from afterslip_common.errors import MeshError
from afterslip_solver.model import TET_EDGES, Float, Int, TetMesh

# a point may lie outside its element by this share of the element's size
_TOLERANCE = 1e-6
# elements tried, nearest centres first
_NEAREST = (8, 48, 200)


class Locator:
    """Points in tetrahedra.

    Parameters
    ----------
    mesh : the mesh that is searched.
    """

    def __init__(self, mesh: TetMesh) -> None:
        self.mesh = mesh
        corners = mesh.nodes[mesh.cells]
        self._tree = cKDTree(corners.mean(axis=1))
        self._low = corners.min(axis=1)
        self._high = corners.max(axis=1)

    def find(self, points: Float) -> tuple[Int, Int, Float]:
        """Locate points.

        Points on faces, and on or a hair above the free surface, are found too.

        Parameters
        ----------
        points : (n, 3) float64, m, x, y, z.

        Returns
        -------
        element : (n,) int64.
        nodes : (n, 10) int64 node numbers of that element.
        weights : (n, 10) float64, P2 shape functions: a field at the point is the
            sum of weights x nodal values.

        Raises MeshError that names the points outside the mesh.
        """
        points = np.atleast_2d(np.asarray(points, dtype=np.float64))
        element = np.full(len(points), -1, dtype=np.int64)
        corner_weights = np.zeros((len(points), 4))
        open_ = np.arange(len(points))
        for count in _NEAREST:
            if len(open_) == 0:
                break
            count = min(count, len(self.mesh.elements))
            _, tried = self._tree.query(points[open_], k=np.arange(1, count + 1))
            best, weights, worst = self._best(points[open_], tried)
            good = worst >= -_TOLERANCE
            element[open_[good]] = best[good]
            corner_weights[open_[good]] = weights[good]
            open_ = open_[~good]
        for i in open_.tolist():
            self._search_all(points[i], i, element, corner_weights)
        self._check(points, element)
        nodes = self.mesh.elements[element]
        return element, nodes, second_order_weights(corner_weights)

    def _best(self, points: Float, tried: Int) -> tuple[Int, Float, Float]:
        """Of the tried elements (n, k), the one that holds each point best."""
        weights = self._barycentric(points[:, None, :], tried)
        worst = weights.min(axis=-1)
        pick = np.argmax(worst, axis=1)
        line = np.arange(len(points))
        return tried[line, pick], weights[line, pick], worst[line, pick]

    def _barycentric(self, points: Float, elements: Int) -> Float:
        """(..., 4) weights of the corners of elements (...) at points (..., 3)."""
        corners = self.mesh.nodes[self.mesh.cells[elements]]
        origin = corners[..., 0, :]
        edges = np.moveaxis(corners[..., 1:, :] - origin[..., None, :], -2, -1)
        offset = points - origin
        rest = np.linalg.solve(edges, offset[..., None])[..., 0]
        return np.concatenate([1.0 - rest.sum(axis=-1, keepdims=True), rest], axis=-1)

    def _search_all(self, point: Float, i: int, element: Int, weights: Float) -> None:
        """Try every element whose bounding box holds the point."""
        room = _TOLERANCE * (self._high - self._low).max(axis=1, keepdims=True)
        near = (point >= self._low - room) & (point <= self._high + room)
        tried = np.flatnonzero(near.all(axis=1))
        if len(tried) == 0:
            return
        best, found, worst = self._best(point[None], tried[None])
        if worst[0] >= -_TOLERANCE:
            element[i], weights[i] = best[0], found[0]

    @staticmethod
    def _check(points: Float, element: Int) -> None:
        lost = np.flatnonzero(element < 0)
        if len(lost) == 0:
            return
        some = "; ".join(
            f"point {i} at x = {x / 1e3:.3f}, y = {y / 1e3:.3f}, z = {z / 1e3:.3f} km"
            for i, (x, y, z) in zip(lost[:3], points[lost[:3]], strict=True)
        )
        more = f" and {len(lost) - 3} more" if len(lost) > 3 else ""
        raise MeshError(
            f"{len(lost)} points lie outside the domain: {some}{more}; enlarge "
            "model.domain or drop them (z is negative below the surface)"
        )


def second_order_weights(corner: Float) -> Float:
    """(n, 10) P2 shape functions from barycentric coordinates (n, 4)."""
    edges = np.array(TET_EDGES)
    vertices = corner * (2.0 * corner - 1.0)
    middle = 4.0 * corner[:, edges[:, 0]] * corner[:, edges[:, 1]]
    return np.concatenate([vertices, middle], axis=1)
