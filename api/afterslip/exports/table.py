"""Slip as a table."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import xarray as xr

from afterslip.result import is_geographic, slip_magnitude


def write_slip(result: xr.Dataset, path: str | Path) -> Path:
    """Write slip at the fault's nodes as CSV; a forward run reads it.

    Columns: ``lon,lat`` or ``x_km,y_km``, ``depth_km``, ``strike,dip,slip`` (m).
    """
    if is_geographic(result):
        heads = ["lon", "lat"]
        place = [result["fault_lon"].values, result["fault_lat"].values]
    else:
        heads = ["x_km", "y_km"]
        place = [result["fault_x"].values / 1e3, result["fault_y"].values / 1e3]
    used = np.unique(np.asarray(result["fault_triangles"].values, dtype=np.int64))
    slip = np.asarray(result["fault_slip"].values, dtype=np.float64)
    depth = -np.asarray(result["fault_z"].values, dtype=np.float64) / 1e3
    columns = [*place, depth, slip[:, 0], slip[:, 1], slip_magnitude(result)]
    path = Path(path)
    with path.open("w", newline="", encoding="utf-8") as file:
        out = csv.writer(file)
        out.writerow([*heads, "depth_km", "strike", "dip", "slip"])
        for row in np.column_stack(columns)[used].tolist():
            out.writerow(
                [f"{v:.5f}" for v in row[:2]] + [f"{v + 0.0:.4f}" for v in row[2:]]
            )
    return path
