"""Which nodes of the ground are recorded, and how stations lie among them.

Where the ground is not flat, it is between two nodes of each vertical line.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from afterslip_solver.model import Float, Int
from afterslip_solver.waves.grid import VoxelGrid, WaveError
from afterslip_solver.waves.ground import GroundNodes


@dataclass(frozen=True, slots=True)
class Receivers:
    """Places on the ground, cubic between four by four nodes.

    Linear interpolation would be wrong by 2 % at 15 voxels per wavelength, this by
    less than 0.1 %.

    Attributes
    ----------
    nodes : (n, k) numbers; 16 on flat ground, else 32. weights : (n, k).
    """

    nodes: Int
    weights: Float
    # of `march.Places`: rows are few
    matrix: ClassVar[None] = None

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of places and of components."""
        return len(self.nodes), 3

    def rows(self, n_node: int) -> Int:
        """(n 3 k,) rows of all components."""
        shift = n_node * np.arange(3)[None, :, None]
        return np.asarray((self.nodes[:, None] + shift).reshape(-1))

    def at(self, values: Float) -> Float:
        """(n_lane, n, 3) from values (n 3 k, lane) of `rows`."""
        lanes, each = values.shape[1], self.nodes.shape[1]
        found = values.reshape(len(self.nodes), 3, each, lanes)
        return np.asarray(np.einsum("nckl,nk->lnc", found, self.weights))


def receivers(
    grid: VoxelGrid, x: Float, y: Float, ground: GroundNodes | None = None
) -> Receivers:
    """Return places on the ground.

    Parameters
    ----------
    x, y : (n,) m. ground : None: the uppermost plane.

    Raises
    ------
    WaveError
        One is outside the voxels, or there are fewer than four nodes along an axis.
    """
    nx, ny, nz = grid.shape
    if min(nx, ny) < 4:
        raise WaveError(f"{nx} x {ny} nodes are too few: at least 4 along x and y")
    top = grid.origin[2] + grid.h * (nz - 1)
    at = np.column_stack([x, y, np.full(len(x), top)])
    cells, place = grid.cells(at)[0], grid.place(at)
    first = np.clip(cells[:, :2] - 1, 0, np.array([nx, ny]) - 4)
    each = [_lagrange(place[:, axis] - first[:, axis]) for axis in (0, 1)]
    weights = np.einsum("ni,nj->nji", *each).reshape(-1, 16)
    step = np.arange(4)
    lines = (first[:, 1, None, None] + step[:, None]) * nx + first[:, :1, None] + step
    lines = lines.reshape(-1, 16)
    if ground is None:
        return Receivers((nz - 1) * ny * nx + lines, weights)
    low = ground.below.ravel()[lines] * ny * nx + lines
    share = ground.share.ravel()[lines]
    parts = weights * (1.0 - share), weights * share
    return Receivers(np.hstack([low, low + ny * nx]), np.hstack(parts))


def _lagrange(t: Float) -> Float:
    """(n, 4) weights of nodes 0, 1, 2, 3 for a place between them."""
    weights = np.ones((len(t), 4))
    for a in range(4):
        for b in {0, 1, 2, 3} - {a}:
            weights[:, a] *= (t - b) / (a - b)
    return weights


def surface_rows(
    grid: VoxelGrid, every: int, ground: GroundNodes | None = None
) -> tuple[Int, Int, Int]:
    """Nodes of a coarser grid on the ground, or next below it; see `surface_share`.

    Returns
    -------
    rows (n_y n_x 3,) of them, component last; positions (n_x,), (n_y,) along the axes.
    """
    nx, ny, nz = grid.shape
    i, j = np.arange(0, nx, every), np.arange(0, ny, every)
    level = np.array(nz - 1) if ground is None else ground.below[np.ix_(j, i)]
    nodes = (level * ny + j[:, None]) * nx + i
    rows = nodes[..., None] + grid.n_node * np.arange(3)
    return rows.reshape(-1), i, j


def surface_share(ground: GroundNodes, every: int) -> Float:
    """(n_y n_x 3,) share that the nodes above those of `surface_rows` have."""
    return np.repeat(ground.share[::every, ::every].ravel(), 3)
