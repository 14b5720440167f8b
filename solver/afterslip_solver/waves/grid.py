"""The voxels: where they are, and what they are made of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from afterslip_common.errors import InputError
from afterslip_common.geometry import Box
from afterslip_solver.model import Float


class WaveError(InputError, ValueError):
    """Voxels, steps or sources that cannot give right waves."""


@dataclass(frozen=True, slots=True)
class VoxelGrid:
    """Nodes of cubes.

    Attributes
    ----------
    shape : numbers of nodes along x, y, z.
    origin : m, x, y, z of node (0, 0, 0); the uppermost nodes are at z = 0.
    h : m, edge of a voxel.
    """

    shape: tuple[int, int, int]
    origin: tuple[float, float, float]
    h: float

    @classmethod
    def covering(cls, box: Box, h: float) -> VoxelGrid:
        """Return the smallest grid that covers a box, centred on it in x and y."""
        lengths = (box.x[1] - box.x[0], box.y[1] - box.y[0], box.depth)
        voxels = [int(np.ceil(length / h * (1.0 - 1e-9))) for length in lengths]
        middle = [0.5 * sum(box.x), 0.5 * sum(box.y)]
        x, y = (m - 0.5 * n * h for m, n in zip(middle, voxels, strict=False))
        nx, ny, nz = (n + 1 for n in voxels)
        return cls((nx, ny, nz), (x, y, -h * voxels[2]), h)

    @property
    def n_node(self) -> int:
        """Number of nodes."""
        nx, ny, nz = self.shape
        return nx * ny * nz

    @property
    def n_voxel(self) -> int:
        """Number of voxels."""
        nx, ny, nz = self.shape
        return (nx - 1) * (ny - 1) * (nz - 1)

    def place(self, points: Float) -> Float:
        """(n, 3) places, m, in edges from node (0, 0, 0)."""
        return np.asarray((points - np.array(self.origin)) / self.h)

    def cells(self, points: Float) -> tuple[NDArray[np.int64], Float]:
        """Voxels that hold points, and places in them.

        Parameters
        ----------
        points : (n, 3) m.

        Returns
        -------
        (n, 3) i, j, k of voxels; (n, 3) from 0 to 1.

        Raises
        ------
        WaveError
            A point is outside the grid.
        """
        place = self.place(points)
        voxels = np.array(self.shape) - 1
        slack = 1e-9 * voxels.max()
        out = ((place < -slack) | (place > voxels + slack)).any(axis=1)
        if out.any():
            x, y, z = points[out][0] / 1e3
            raise WaveError(
                f"{int(out.sum())} points are outside the voxels, the first at x "
                f"{x:.2f}, y {y:.2f}, depth {-z:.2f} km: enlarge model.domain"
            )
        cell = np.clip(place.astype(np.int64), 0, voxels - 1)
        return cell, np.clip(place - cell, 0.0, 1.0)

    def node(self, ijk: NDArray[np.int64]) -> NDArray[np.int64]:
        """(...,) numbers of nodes (..., 3)."""
        nx, ny, _ = self.shape
        return np.asarray((ijk[..., 2] * ny + ijk[..., 1]) * nx + ijk[..., 0])

    def axis(self, which: int) -> Float:
        """(n,) m, coordinates of the nodes along an axis."""
        return np.asarray(self.origin[which] + self.h * np.arange(self.shape[which]))


@dataclass(frozen=True, slots=True)
class Medium:
    """One material per voxel; arrays (nz - 1, ny - 1, nx - 1), float32.

    Attributes
    ----------
    lam, mu : Pa. rho : kg/m3. All three are 0 in air.
    """

    lam: NDArray[np.float32]
    mu: NDArray[np.float32]
    rho: NDArray[np.float32]

    @property
    def air(self) -> NDArray[np.bool_]:
        """Where there is no rock."""
        return np.asarray(self.rho == 0.0)

    def filled(self, share: NDArray[np.float32]) -> Medium:
        """Return voxels of which only a share is rock.

        Parameters
        ----------
        share : of the shape of voxels; of no size: all of them are rock.
        """
        if not share.size:
            return self
        return Medium(self.lam * share, self.mu * share, self.rho * share)

    def speeds(self) -> tuple[float, float, float]:
        """Slowest S wave and fastest P wave, m/s, and the largest vp/vs."""
        rock = ~self.air
        lam, mu, rho = (
            a[rock].astype(np.float64) for a in (self.lam, self.mu, self.rho)
        )
        vs, vp = np.sqrt(mu / rho), np.sqrt((lam + 2 * mu) / rho)
        return float(vs.min()), float(vp.max()), float((vp / vs).max())

    def node_mass(self, h: float) -> Float:
        """(n_node,) kg: an eighth of each voxel at a node; exact for octants."""
        nz, ny, nx = (n + 1 for n in self.rho.shape)
        mass = np.zeros((nz, ny, nx))
        share = self.rho.astype(np.float64) * (h**3 / 8.0)
        for corner in range(8):
            i, j, k = corner & 1, corner >> 1 & 1, corner >> 2
            mass[k : k + nz - 1, j : j + ny - 1, i : i + nx - 1] += share
        return mass.reshape(-1)
