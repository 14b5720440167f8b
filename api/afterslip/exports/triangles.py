"""The faults of a result as flat triangles with their mean slip."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from afterslip.result import is_geographic

Float = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Triangles:
    """Flat triangles, counterclockwise from above.

    Attributes
    ----------
    corners : (n, 3, 2) float64, lon, lat in degrees; x, y in km where there are none.
    depth : (n, 3) float64, km, positive down.
    slip : (n, 2) float64, m, mean strike and dip.
    fault : (n,) names.
    """

    corners: Float
    depth: Float
    slip: Float
    fault: NDArray[np.str_]

    def __len__(self) -> int:
        return len(self.corners)


def triangles(result: xr.Dataset) -> Triangles:
    """Return the triangles of a result's faults."""
    nodes = np.asarray(result["fault_triangles"].values, dtype=np.int64)
    names, scale = ("fault_lon", "fault_lat"), 1.0
    if not is_geographic(result):
        names, scale = ("fault_x", "fault_y"), 1e-3
    place = np.column_stack([result[name].values for name in names]) * scale
    # GeoJSON wants outer rings counterclockwise
    first, second, third = (place[nodes[:, i]] for i in range(3))
    along, across = second - first, third - first
    turned = along[:, 0] * across[:, 1] < along[:, 1] * across[:, 0]
    nodes = np.where(turned[:, None], nodes[:, [0, 2, 1]], nodes)
    slip = np.asarray(result["fault_slip"].values, dtype=np.float64)
    depth = 0.0 - np.asarray(result["fault_z"].values, dtype=np.float64) / 1e3
    return Triangles(
        place[nodes],
        depth[nodes],
        slip[nodes].mean(axis=1),
        fault_names(result)[result["fault_index"].values[nodes[:, 0]].astype(int)],
    )


def fault_names(result: xr.Dataset) -> NDArray[np.str_]:
    """Return the names of the faults, in the order of ``fault_index``."""
    index = result["fault_index"]
    names = str(index.attrs.get("flag_meanings", "")).split()
    count = int(index.values.max()) + 1
    names += [f"fault{number + 1}" for number in range(len(names), count)]
    return np.array(names, dtype=str)
