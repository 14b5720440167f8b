"""Steep faults: a map shows them as a line, so they are drawn in their own plane."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.tri import Triangulation
from numpy.typing import NDArray

from afterslip.plot.outline import border, edge_styles, rectangle
from afterslip.plot.style import FAINT, SOFT

Float = NDArray[np.float64]

STEEP = 60.0
"""Dip, in degrees, from which a fault is drawn in its own plane."""
MOST = 4
"""Planes drawn under one map."""


def steep_faults(result: xr.Dataset) -> list[int]:
    """Return the numbers of the faults too steep for a map, at most ``MOST``."""
    sine = np.asarray(result["fault_updip"].values, dtype=np.float64)[:, 2]
    index = np.asarray(result["fault_index"].values)
    limit = np.sin(np.radians(STEEP))
    used = np.unique(np.asarray(result["fault_triangles"].values, dtype=np.int64))
    found = [
        int(fault)
        for fault in np.unique(index[used])
        if np.median(sine[used][index[used] == fault]) > limit
    ]
    return found[:MOST]


def plane(result: xr.Dataset, fault: int) -> Triangulation:
    """Return a fault's triangles in km along strike and km down dip."""
    corners = np.asarray(result["fault_triangles"].values, dtype=np.int64)
    index = np.asarray(result["fault_index"].values)
    return Triangulation(
        np.asarray(result["fault_along"].values, dtype=np.float64) / 1e3,
        np.asarray(result["fault_down"].values, dtype=np.float64) / 1e3,
        corners[index[corners[:, 0]] == fault],
    )


def height(result: xr.Dataset, fault: int, width: float) -> float:
    """Return the height on paper of a fault's plane, labels included, in inches."""
    a0, a1, d0, d1 = rectangle(result, fault)
    share = (d1 - d0) / max(a1 - a0, 1e-9)
    return float(np.clip(share * width, 0.7, 4.0)) + 0.75


def prepare(ax: Axes, result: xr.Dataset, fault: int, title: str) -> Triangulation:
    """Set window, labels and outline; returns the triangles to colour."""
    a0, a1, d0, d1 = (v / 1e3 for v in rectangle(result, fault))
    pad = 0.02 * max(a1 - a0, d1 - d0)
    ax.set_xlim(a0 - pad, a1 + pad)
    ax.set_ylim(d1 + pad, d0 - pad)
    ax.set_aspect("equal")
    ax.set_xlabel("along strike (km)")
    ax.set_ylabel("down dip (km)")
    ax.set_title(title)
    line = border(result, fault) / 1e3
    for part, style in edge_styles(result, fault):
        ax.plot(*line[part].T, style, color=SOFT, linewidth=0.7, zorder=3)
    return plane(result, fault)


def graticule(ax: Axes) -> None:
    """Draw the grid lines; ``tripcolor`` hides those drawn before."""
    ax.grid(visible=True, color=FAINT, linewidth=0.5)


def fault_names(result: xr.Dataset) -> list[str]:
    """Return the names of the faults, in the order of their numbers."""
    count = int(np.max(result["fault_index"].values)) + 1
    names = str(result["fault_index"].attrs.get("flag_meanings", "")).split()
    return names if len(names) >= count else [f"fault {i + 1}" for i in range(count)]
