"""Ground that is not flat: what share of each voxel is rock, and where its nodes are.

The box of a spec is stretched to the ground: up by the height at its top, by nothing
at its bottom. Voxels are not. Those in air are left out: they have no stiffness and
their nodes no mass, which stay at rest, so that the ground is free of traction by
itself. Where the ground goes through voxels their stiffness and mass are multiplied by
the share that is rock, which leaves the speed of waves and the stable step nearly as
they are, and puts the ground where it is, where stairs of whole voxels would be up to
half a voxel above or below it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from afterslip_common.geometry import Box
from afterslip_solver.model import Float, Int
from afterslip_solver.waves.grid import VoxelGrid

# samples of a voxel along each axis, at the points of Gauss
_SAMPLES = np.array([-1.0, 1.0]) / np.sqrt(12.0)
# a voxel with less rock is air: displacement in it would be that of almost no mass
_LEAST = 0.05
# slip is in voxels that have at least so much rock
_SOLID = 0.5


class Ground(Protocol):
    """Height of the ground."""

    def at(self, x: Float, y: Float) -> Float:
        """Return heights, m, of the shape of x and y, m."""


@dataclass(frozen=True, slots=True)
class GroundNodes:
    """Where the ground is on the vertical lines of nodes.

    Attributes
    ----------
    below : (ny, nx) numbers along z of the nodes below it, above which there is one
        more. share : (ny, nx) of the way from that to the one above, 0 to 1.
    """

    below: Int
    share: Float


@dataclass(frozen=True, slots=True)
class Relief:
    """The ground of a grid.

    Attributes
    ----------
    box : that is stretched.
    height : (2 (ny - 1), 2 (nx - 1)) m, at the samples of columns.
    fill : (nz - 1, ny - 1, nx - 1) share of rock of each voxel; 0 in air.
    nodes : where the ground is.
    """

    box: Box
    height: Float
    fill: NDArray[np.float32]
    nodes: GroundNodes


def samples(grid: VoxelGrid, axis: int) -> Float:
    """(2 n,) m, coordinates of two samples in each voxel along an axis."""
    middle = grid.axis(axis)[:-1] + 0.5 * grid.h
    return np.asarray((middle[:, None] + grid.h * _SAMPLES).ravel())


def covering(box: Box, h: float, ground: Ground) -> tuple[VoxelGrid, Relief]:
    """Return the smallest grid that covers the rock of a box, and its ground.

    Parameters
    ----------
    h : m, edge of a voxel. Voxels are those of a grid under flat ground, and more above
        or fewer.
    """
    flat = VoxelGrid.covering(box, h)
    x, y = np.meshgrid(samples(flat, 0), samples(flat, 1))
    height = ground.at(x, y)
    levels = (height - flat.origin[2]) / h
    nx, ny = flat.shape[:2]
    fill = np.zeros((int(np.ceil(levels.max())), ny - 1, nx - 1), dtype=np.float32)
    for k, plane in enumerate(fill):
        part = np.clip(levels - k, 0.0, 1.0).reshape(ny - 1, 2, nx - 1, 2)
        plane[:] = part.mean(axis=(1, 3))
    fill[fill < _LEAST] = 0.0
    fill = fill[fill.any(axis=(1, 2))]
    grid = VoxelGrid((nx, ny, len(fill) + 1), flat.origin, h)
    return grid, Relief(box, height, fill, _nodes(grid, fill, ground))


def _nodes(grid: VoxelGrid, fill: NDArray[np.float32], ground: Ground) -> GroundNodes:
    x, y = np.meshgrid(grid.axis(0), grid.axis(1))
    level = (ground.at(x, y) - grid.origin[2]) / grid.h
    # of the columns around a node the highest has its uppermost node
    padded = np.pad((fill > 0.0).sum(axis=0), 1)
    top = np.max(
        [padded[j : j + len(x), i : i + x.shape[1]] for j in (0, 1) for i in (0, 1)],
        axis=0,
    )
    below = np.minimum(np.floor(level).astype(np.int64), top - 1)
    return GroundNodes(below, np.clip(level - below, 0.0, 1.0))


def lowered(grid: VoxelGrid, fill: NDArray[np.float32], points: Float) -> Float:
    """Return points, those in voxels of less than half rock moved down to others.

    Parameters
    ----------
    points : (n, 3) m, inside the grid.
    """
    cell, _ = grid.cells(points)
    solid = (fill >= _SOLID).sum(axis=0)[cell[:, 1], cell[:, 0]]
    # not on the face itself, which belongs to the voxel above
    most = grid.origin[2] + grid.h * (solid - 1e-6)
    return np.column_stack([points[:, :2], np.minimum(points[:, 2], most)])
