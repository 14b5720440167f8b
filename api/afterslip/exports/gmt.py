"""Slip as segments for ``gmt plot`` and ``psxy``."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import xarray as xr

from afterslip.exports.triangles import triangles
from afterslip.result import mesh_error


def write_gmt(result: xr.Dataset, path: str | Path) -> Path:
    """Write the faults' triangles as closed segments, with their slip in m as ``-Z``.

    Columns: lon, lat (x, y in km where there are none), depth in km. To draw them:
    ``gmt plot slip.gmt -Cslip.cpt -L``.
    """
    found = triangles(result)
    lines = []
    if error := mesh_error(result):
        lines.append(f"# estimated error of the mesh, of displacements: {error}")
    for corners, depth, slip in zip(
        found.corners, found.depth, found.slip, strict=True
    ):
        lines.append(
            f"> -Z{np.hypot(*slip):.4f} strike {slip[0]:.4f} dip {slip[1]:.4f}"
        )
        lines += [
            f"{corners[k, 0]:.6f}\t{corners[k, 1]:.6f}\t{depth[k]:.4f}"
            for k in (0, 1, 2, 0)
        ]
    path = Path(path)
    path.write_text("\n".join(lines) + "\n")
    return path
