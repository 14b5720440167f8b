"""Straight-sided tetrahedron: barycentric gradients, volume, quadratic shapes."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from afterslip_solver.jit.threads import over
from afterslip_solver.mesh.tables import tetrahedra
from afterslip_solver.model import TET_EDGES, Float


def barycentric_gradients(
    nodes: Float, cells: NDArray[np.integer]
) -> tuple[Float, Float]:
    """Gradients of the four barycentric coordinates, and volumes.

    Parameters
    ----------
    nodes : (n_node, 3) float64, m.
    cells : (n_elem, 4) vertex numbers, positively oriented.

    Returns
    -------
    gradients : (n_elem, 4, 3) float64, 1/m.
    volume : (n_elem,) float64, m3.
    """
    n = len(cells)
    gradients, volume = np.empty((n, 4, 3)), np.empty(n)
    over(n, partial(tetrahedra.gradients, nodes, cells, gradients, volume))
    return gradients, volume


def quadratic_shapes(barycentric: Float) -> Float:
    """Values of the ten quadratic shape functions.

    Parameters
    ----------
    barycentric : (..., 4) float64 coordinates.

    Returns
    -------
    (..., 10) float64, in the node order of ``TET_EDGES``.
    """
    corners = barycentric * (2.0 * barycentric - 1.0)
    first = [a for a, _ in TET_EDGES]
    second = [b for _, b in TET_EDGES]
    middles = 4.0 * barycentric[..., first] * barycentric[..., second]
    return np.concatenate([corners, middles], axis=-1)
