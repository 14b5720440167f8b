"""Sources and receivers exchanged: forces at stations, felt by slip on a fault.

Stiffness, mass and dampers are symmetric, so that what a station records along an axis
of slip on a cell equals the work that a force at the station, along that axis, does on
that slip: the area of the cell times the traction on it. Forces of slip are found as
those of `moment_loads`, and stations as they record, so that both ways agree to
rounding. Slip of any shape on these cells then needs no further run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array, eye_array, kron

from afterslip_solver.backend.base import LANES
from afterslip_solver.model import Float, Int
from afterslip_solver.waves.fault import FaultPoints
from afterslip_solver.waves.grid import Medium, VoxelGrid
from afterslip_solver.waves.loads import Loads, rigidity_at, slip_moment, spread
from afterslip_solver.waves.record import Receivers

# N: motion of one newton would be among the smallest numbers of FP32
FORCE = 2.0**50


# cells whose tractions are found together
_CHUNK = 4096


@dataclass(frozen=True, slots=True)
class Traction:
    """Area times traction along strike and updip on cells of a fault, or sums of it, N.

    Attributes
    ----------
    used : rows of the displacement that matter. matrix : (2 n, n_row) N/m.
    """

    used: Int
    matrix: csr_array

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of cells, or of sums, and of directions of slip."""
        return self.matrix.shape[0] // 2, 2

    def rows(self, n_node: int) -> Int:  # noqa: ARG002 - rows are of this grid
        """Return the rows that the matrix multiplies."""
        return self.used

    def at(self, values: Float) -> Float:
        """(n_lane, n, 2) from what the matrix makes, (2 n, lane)."""
        return np.asarray(values.reshape(*self.shape, -1).transpose(2, 0, 1))


def traction_on(
    grid: VoxelGrid, medium: Medium, fault: FaultPoints, shapes: csr_array | None = None
) -> Traction:
    """Return what records the traction on a fault.

    Parameters
    ----------
    shapes : (n, n_cell) slip, m, with which cells are summed; None: each is by itself.

    Raises
    ------
    WaveError
        A cell is outside the voxels or in air.
    """
    mu = rigidity_at(grid, medium, fault.position) * fault.area
    slip = np.stack([fault.strike, fault.updip], axis=1)
    weights = eye_array(len(mu), format="csc") if shapes is None else shapes.tocsc()
    parts = []
    for begin in range(0, len(mu), _CHUNK):
        own = slice(begin, begin + _CHUNK)
        moment = slip_moment(mu[own], slip[own], fault.normal[own])
        rows, forces, lines = [], [], []
        for nodes, force in spread(grid, medium, fault.position[own], moment):
            # (component, cell, corner) and (component, cell, corner, direction)
            rows.append(np.repeat(nodes[..., None], 2, axis=-1).ravel())
            forces.append(force.ravel())
            line = 2 * np.arange(len(mu[own]))[:, None, None] + np.arange(2)
            lines.append(np.broadcast_to(line, force.shape).ravel())
        near, where = np.unique(np.concatenate(rows), return_inverse=True)
        shape = 2 * len(mu[own]), len(near)
        entries = np.concatenate(forces), (np.concatenate(lines), where)
        each = kron(weights[:, own], eye_array(2), format="csr")
        summed = (each @ csr_array(entries, shape=shape)).tocoo()
        parts.append((summed.row, near[summed.col], summed.data))
    row, place, force = (np.concatenate(part) for part in zip(*parts, strict=True))
    used, column = np.unique(place, return_inverse=True)
    size = 2 * weights.shape[0], len(used)
    return Traction(used, csr_array((force, (row, column)), shape=size))


def station_forces(grid: VoxelGrid, stations: Receivers, lanes: Sequence[int]) -> Loads:
    """Return forces of `FORCE` at stations, up to four lanes.

    Parameters
    ----------
    lanes : for each lane three times the number of the station plus that of the axis.
    """
    rows, values = [], []
    for lane, number in enumerate(lanes):
        station, axis = divmod(number, 3)
        rows.append(axis * grid.n_node + stations.nodes[station])
        force = np.zeros((len(rows[-1]), LANES))
        force[:, lane] = FORCE * stations.weights[station]
        values.append(force)
    unique, where = np.unique(np.concatenate(rows), return_inverse=True)
    total = np.zeros((len(unique), LANES))
    np.add.at(total, where, np.concatenate(values))
    return Loads(unique, total)
