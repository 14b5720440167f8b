"""The slipping rectangle of a fault, as it lies in a map.

Triangles of the mesh do not end at the rectangle, so their border is ragged; the
rectangle's own border is drawn instead, and colours are cut off at it.
"""

from __future__ import annotations

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy.interpolate import LinearNDInterpolator
from scipy.spatial import QhullError, cKDTree

Float = NDArray[np.float64]

PER_SIDE = 60


def fault_numbers(result: xr.Dataset) -> list[int]:
    """Return the numbers of the faults that have triangles."""
    corners = np.asarray(result["fault_triangles"].values, dtype=np.int64)
    index = np.asarray(result["fault_index"].values)
    return [int(fault) for fault in np.unique(index[corners[:, 0]])]


def own_nodes(result: xr.Dataset, fault: int) -> NDArray[np.int64]:
    """Return the nodes of a fault that have a triangle."""
    used = np.unique(np.asarray(result["fault_triangles"].values, dtype=np.int64))
    index = np.asarray(result["fault_index"].values)
    return np.asarray(used[index[used] == fault])


def rectangle(result: xr.Dataset, fault: int) -> tuple[float, float, float, float]:
    """Return along from, to, and down from, to, in m.

    Where the result does not tell the size, that of the triangles.
    """
    if "fault_length" in result and "fault_width" in result:
        length = float(result["fault_length"].values[fault])
        return 0.0, length, 0.0, float(result["fault_width"].values[fault])
    nodes = own_nodes(result, fault)
    along = np.asarray(result["fault_along"].values, dtype=np.float64)[nodes]
    down = np.asarray(result["fault_down"].values, dtype=np.float64)[nodes]
    return float(along.min()), float(along.max()), float(down.min()), float(down.max())


def border(result: xr.Dataset, fault: int) -> Float:
    """Return (4 PER_SIDE, 2) m, (along, down) around the rectangle, top edge first."""
    a0, a1, d0, d1 = rectangle(result, fault)
    t = np.linspace(0.0, 1.0, PER_SIDE)
    return np.concatenate(
        [
            np.column_stack([a0 + t * (a1 - a0), np.full(PER_SIDE, d0)]),
            np.column_stack([np.full(PER_SIDE, a1), d0 + t * (d1 - d0)]),
            np.column_stack([a1 + t * (a0 - a1), np.full(PER_SIDE, d1)]),
            np.column_stack([np.full(PER_SIDE, a0), d1 + t * (d0 - d1)]),
        ]
    )


def edge_styles(result: xr.Dataset, fault: int) -> list[tuple[slice, str]]:
    """Return (part of the border, line style) of each edge of a fault.

    Solid where slip is zero, dashed where it is free; a result that does not say it
    has solid edges.
    """
    styles = ["-"] * 4
    if "fault_edge" in result:
        top, bottom, start, end = result["fault_edge"].values[fault].astype(str)
        styles = ["--" if c == "free" else "-" for c in (top, end, bottom, start)]
    return [
        (slice(k * PER_SIDE, (k + 1) * PER_SIDE), style)
        for k, style in enumerate(styles)
    ]


def border_on_map(result: xr.Dataset, fault: int, x: Float, y: Float) -> Float:
    """Return the border in the coordinates of a map.

    Parameters
    ----------
    x, y : (n_fault_node,) the map's coordinates of the fault's nodes.

    Returns
    -------
    (4 PER_SIDE, 2) float64; the first ``PER_SIDE`` are the top edge.
    """
    nodes = own_nodes(result, fault)
    known = np.column_stack(
        [result["fault_along"].values[nodes], result["fault_down"].values[nodes]]
    )
    values = np.column_stack([x[nodes], y[nodes]])
    wanted = border(result, fault)
    _, nearest = cKDTree(known).query(wanted)
    try:
        found = LinearNDInterpolator(known, values)(wanted)
    except QhullError:  # all nodes on a line
        return np.asarray(values[nearest], dtype=np.float64)
    # the hull of the nodes may fall short of a corner by rounding
    missing = np.isnan(found).any(axis=1)
    found[missing] = values[nearest[missing]]
    return np.asarray(found, dtype=np.float64)
