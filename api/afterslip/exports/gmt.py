"""Slip as segments for ``gmt plot`` and ``psxy``, and as CSI reads them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import xarray as xr

from afterslip.errors import one_problem
from afterslip.exports.triangles import triangles
from afterslip.result import is_geographic, mesh_error


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


def write_csi(result: xr.Dataset, path: str | Path) -> Path:
    """Write the faults' triangles and their slip as CSI's triangular fault reads them.

    Three corners a triangle (lon, lat; depth in km) behind a line with the length of
    its slip, its number as each of three parameters, and slip along strike, up the dip
    and across the fault in m, as ``TriangularPatches.readPatchesFromFile`` counts in
    https://github.com/jolivetr/csi.

    Raises
    ------
    SpecError
        The result has no longitudes.
    """
    if not is_geographic(result):
        raise one_problem(
            "result", None, "has no longitudes and latitudes, which CSI reads"
        )
    found = triangles(result)
    lines = []
    for number, (corners, depth, slip) in enumerate(
        zip(found.corners, found.depth, found.slip, strict=True)
    ):
        lines.append(
            f"> -Z{np.hypot(*slip):.4f} # {number} {number} {number} "
            f"# {slip[0]:.4f} {slip[1]:.4f} 0.0"
        )
        lines += [
            f"{lon:.6f} {lat:.6f} {down:.4f}"
            for (lon, lat), down in zip(corners[:, :2], depth, strict=True)
        ]
    path = Path(path)
    path.write_text("\n".join(lines) + "\n")
    return path
