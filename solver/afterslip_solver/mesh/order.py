"""Numbering that keeps neighbours close in memory."""

from __future__ import annotations

import numpy as np

from afterslip_solver.mesh.mesher import RawMesh
from afterslip_solver.model import Float, Int

_BITS = 20


def morton_codes(points: Float) -> Int:
    """(n,) int64, position of points (n, 3) on a space-filling curve."""
    low = points.min(axis=0)
    span = float((points.max(axis=0) - low).max()) or 1.0
    grid = np.minimum((points - low) / span * (1 << _BITS), (1 << _BITS) - 1)
    cell = grid.astype(np.int64)
    code = np.zeros(len(points), dtype=np.int64)
    for bit in range(_BITS):
        for axis in range(3):
            code |= ((cell[:, axis] >> bit) & 1) << (3 * bit + axis)
    return code


def in_space_order(raw: RawMesh) -> tuple[Float, Int, dict[str, Int]]:
    """Vertices, cells and surfaces renumbered along a space-filling curve.

    Gathers and scatters of an element loop then stay in cache. Vertices that
    belong to no cell are dropped.
    """
    used = np.unique(raw.cells)
    order = used[np.argsort(morton_codes(raw.vertices[used]), kind="stable")]
    number = np.full(len(raw.vertices), -1, dtype=np.int64)
    number[order] = np.arange(len(order))
    vertices = raw.vertices[order]
    cells = number[raw.cells]
    centres = vertices[cells].mean(axis=1)
    cells = cells[np.argsort(morton_codes(centres), kind="stable")]
    return vertices, cells, {k: number[v] for k, v in raw.surfaces.items()}
