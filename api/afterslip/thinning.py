"""Fewer nodes of faults where a figure or a map could not show them all."""

from __future__ import annotations

import numpy as np
import xarray as xr
from numpy.typing import NDArray

Float = NDArray[np.float64]
Int = NDArray[np.int64]

MOST_NODES = 6_000
"""On the faults of a figure, which is some thousand pixels wide."""


def thinned(result: xr.Dataset, most: int = MOST_NODES) -> xr.Dataset:
    """Return a result with at most about so many nodes on its faults.

    Nodes are gathered at the points of a lattice along and down each fault, of which
    some lie on its edges; the nearest stands for all, and the largest slip for its
    own (vertex clustering: Rossignac & Borrel 1993, Multi-resolution 3D approximations
    for rendering complex scenes). Values are those of nodes, none is averaged.

    Parameters
    ----------
    most : of nodes; a result with fewer comes back as it is.
    """
    if "fault_triangles" not in result or result.sizes["fault_node"] <= most:
        return result
    owner, chosen = _clusters(result, most)
    corners = owner[np.asarray(result["fault_triangles"].values, dtype=np.int64)]
    first, second, third = corners.T
    spread = (first != second) & (second != third) & (third != first)
    corners = corners[spread]
    _, single = np.unique(np.sort(corners, axis=1), axis=0, return_index=True)
    triangles = corners[np.sort(single)].astype(np.int32)
    rest = [name for name in result.variables if "fault_triangle" in result[name].dims]
    dims = result["fault_triangles"].dims
    fewer = result.drop_vars(rest).isel(fault_node=chosen)
    return fewer.assign(fault_triangles=(dims, triangles))


def _clusters(result: xr.Dataset, most: int) -> tuple[Int, Int]:
    """(n_fault_node,) number of each node's cluster, and (n_cluster,) its node."""
    along, down = (
        np.asarray(result[f"fault_{name}"].values, dtype=np.float64)
        for name in ("along", "down")
    )
    fault = np.asarray(result["fault_index"].values, dtype=np.int64)
    length, width = (
        np.asarray(result[f"fault_{name}"].values, dtype=np.float64)[fault]
        for name in ("length", "width")
    )
    area = float((result["fault_length"] * result["fault_width"]).sum())
    # a whole number of steps on each fault, so that lattices reach its edges
    steps = [np.maximum(np.rint(size * np.sqrt(most / area)), 1.0)
             for size in (length, width)]  # fmt: skip
    place = np.column_stack([along / length * steps[0], down / width * steps[1]])
    lattice = np.rint(place)
    key = np.column_stack([fault, lattice.astype(np.int64)])
    _, owner = np.unique(key, axis=0, return_inverse=True)
    owner = np.asarray(owner, dtype=np.int64).ravel()
    off = ((place - lattice) ** 2).sum(axis=1)
    slip = np.asarray(result["fault_slip"].values, dtype=np.float64)
    off[int(np.argmax(np.hypot(*slip.T)))] = -1.0
    # the last of equal owners stays: the nearest
    order = np.argsort(-off, kind="stable")
    chosen = np.empty(int(owner.max()) + 1, dtype=np.int64)
    chosen[owner[order]] = order
    return owner, chosen
