"""How far from the faults a mesh follows the bottom of a thin plate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.spatial import cKDTree

from afterslip_solver.mesh.geometry import MeshSize
from afterslip_solver.mesh.mesher import RawMesh
from afterslip_solver.model import Bool, Float

# lengths of edges on the faults over the thickness of a plate: up to the first it is
# followed everywhere, up to the second near the faults
_THICK = 2.0
_LONGEST = 4.0
# and of the edges at which that ends: longer ones would make elements too flat
_FLATTEST = 8.0

Near = Callable[[Float], Bool]


@dataclass(frozen=True, slots=True)
class ThinPlates:
    """What a size of elements means for thin plates.

    Attributes
    ----------
    size : of elements, those of a mesh with longer edges too.
    edge : m, on the faults in the mesh that is asked for.
    """

    size: MeshSize
    edge: float

    def reach(self, thickness: float) -> float:
        """How far from the faults the bottom is followed, m; infinite: everywhere."""
        if thickness * _THICK >= self.edge:
            return np.inf
        if thickness * _LONGEST < self.edge:
            return 0.0
        growth = self.size.growth * self.edge / self.size.fault
        return self.edge + (thickness * _FLATTEST - self.edge) / growth

    def near(self, raw: RawMesh, thickness: float) -> Near | None:
        """Return where the bottom is followed; None stands for nowhere."""
        reach = self.reach(thickness)
        if not reach:
            return None
        if np.isinf(reach):
            return everywhere
        points = [np.empty((0, 3))]
        for triangles in raw.surfaces.values():
            corners = raw.vertices[triangles]
            points += [corners.reshape(-1, 3), corners.mean(axis=1)]
        return partial(within, cKDTree(np.concatenate(points)), reach)


def longest_edge(thickness: float) -> float:
    """Edges on the faults, m, up to which a thin plate is followed near them."""
    return _LONGEST * thickness


def everywhere(points: Float) -> Bool:
    """(n,) true for points (n, 3)."""
    return np.ones(len(points), dtype=np.bool_)


def within(tree: cKDTree, reach: float, points: Float) -> Bool:
    """(n,) whether points (n, 3) are closer than a reach to those of a tree."""
    distance, _ = tree.query(points, distance_upper_bound=reach, workers=-1)
    return np.asarray(np.isfinite(distance))
