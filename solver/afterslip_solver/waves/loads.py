"""Moment tensors at points as forces of nodes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from afterslip_common.geometry import PlaneFault
from afterslip_solver.backend.base import LANES
from afterslip_solver.model import Bool, Float, Int
from afterslip_solver.waves.element import SIGNS, corner_offsets
from afterslip_solver.waves.grid import Medium, VoxelGrid, WaveError


@dataclass(frozen=True, slots=True)
class Loads:
    """Forces of four lanes, each multiplied by the source-time function.

    Attributes
    ----------
    rows : (n,) component and node: number of the node, plus n_node per component.
    values : (n, lane) N.
    """

    rows: Int
    values: Float


def moment_loads(
    grid: VoxelGrid, medium: Medium, points: Float, moment: Float
) -> Loads:
    """Return the forces f_a = M grad phi_a of moment tensors.

    Parameters
    ----------
    points : (n, 3) m. moment : (n, n_lane, 3, 3) N m, symmetric; up to four lanes.

    Raises
    ------
    WaveError
        A point is outside the voxels or in air.
    """
    rows, forces = [], []
    for nodes, force in spread(grid, medium, points, moment):
        rows.append(nodes.ravel())
        forces.append(force.reshape(-1, moment.shape[1]))
    unique, where = np.unique(np.concatenate(rows), return_inverse=True)
    force = np.concatenate(forces)
    values = np.zeros((len(unique), LANES))
    for lane in range(moment.shape[1]):
        values[:, lane] = np.bincount(where, force[:, lane], len(unique))
    return Loads(unique, values)


def spread(
    grid: VoxelGrid, medium: Medium, points: Float, moment: Float
) -> Iterator[tuple[Int, Float]]:
    """Yield rows (3, n, 8) and the forces (3, n, 8, n_lane) of moment tensors on them.

    The derivative of the trilinear phi along an axis is constant in a voxel along that
    axis. Here it is linear between the middles of voxels, so that a source is where it
    is said to be and not in the middle of its voxel.
    """
    cell, place = grid.cells(points)
    air = _in_air(medium, cell)
    if air.any():
        x, y, z = points[air][0] / 1e3
        raise WaveError(
            f"{int(air.sum())} points of the source are in air, the first at x "
            f"{x:.2f}, y {y:.2f}, z {z:.2f} km: move the fault below the topography"
        )
    offsets = corner_offsets(*grid.shape[:2])
    for axis in range(3):
        # the voxel itself, and the neighbour on the side where the point is
        beside = cell.copy()
        beside[:, axis] += np.where(place[:, axis] < 0.5, -1, 1)
        share = np.abs(place[:, axis] - 0.5)
        outside = (beside[:, axis] < 0) | (beside[:, axis] > grid.shape[axis] - 2)
        beside[outside] = cell[outside]
        lost = _in_air(medium, beside)
        beside[lost] = cell[lost]
        gradient = _derivative(place, axis) / grid.h
        for voxel, part in ((cell, 1.0 - share), (beside, share)):
            one = np.einsum("qli,qa,q->iqal", moment[..., axis], gradient, part)
            nodes = grid.node(voxel)[:, None] + offsets
            yield np.arange(3)[:, None, None] * grid.n_node + nodes, one


def _in_air(medium: Medium, cell: Int) -> Bool:
    return np.asarray(medium.rho[cell[:, 2], cell[:, 1], cell[:, 0]] == 0.0)


def _derivative(place: Float, axis: int) -> Float:
    """(n, 8) derivative of the trilinear functions along an axis, times h."""
    side = np.where(SIGNS[None] > 0, place[:, None], 1.0 - place[:, None])
    j, k = (other for other in range(3) if other != axis)
    return np.asarray(SIGNS[:, axis] * side[:, :, j] * side[:, :, k])


def slip_moment(mu: Float, slip: Float, normal: Float) -> Float:
    """Moment tensors of slip, mu (s n + n s).

    Parameters
    ----------
    mu : (n,) Pa times m2. slip : (n, n_lane, 3) m, hanging wall against footwall.
    normal : (n, 3) into the hanging wall.

    Returns
    -------
    (n, n_lane, 3, 3) N m.
    """
    one = np.einsum("q,qli,qj->qlij", mu, slip, normal)
    return np.asarray(one + one.swapaxes(2, 3))


def couple_moment(strike: float, dip: float, rake: float, magnitude: float) -> Float:
    """Moment tensor of a double couple.

    Parameters
    ----------
    strike, dip, rake : degrees, as Aki & Richards have them: rake 0 left-lateral, 90
        reverse. magnitude : moment magnitude, M0 = 10^(1.5 Mw + 9.1) N m.

    Returns
    -------
    (3, 3) N m, x east, y north, z up.
    """
    along, updip, normal = PlaneFault("", 0.0, 0.0, 0.0, strike, dip, 1.0, 1.0).axes
    angle = np.radians(rake)
    slip = np.cos(angle) * along + np.sin(angle) * updip
    size = np.array([10.0 ** (1.5 * magnitude + 9.1)])
    return np.asarray(slip_moment(size, slip[None, None], normal[None])[0, 0])


def scalar_moment(moment: Float) -> float:
    """Size of a (3, 3) moment tensor: that of a double couple is its M0."""
    return float(np.sqrt(0.5 * (moment**2).sum()))


def force_load(grid: VoxelGrid, node: tuple[int, int, int]) -> Loads:
    """Return unit forces along x, y, z at a node, in lanes 0 to 2."""
    rows = np.arange(3) * grid.n_node + int(grid.node(np.array(node)))
    return Loads(rows, np.eye(3, LANES))


def rigidity_at(grid: VoxelGrid, medium: Medium, points: Float) -> Float:
    """(n,) Pa, mu of the voxels that hold points."""
    cell, _ = grid.cells(points)
    return np.asarray(medium.mu[cell[:, 2], cell[:, 1], cell[:, 0]], dtype=np.float64)
