"""Children of tetrahedra that are halved, one after the other."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np

from afterslip_solver.jit.compiling import compiled


@compiled()
def _length(nodes: Any, a: int, b: int) -> float:
    x = nodes[a, 0] - nodes[b, 0]
    y = nodes[a, 1] - nodes[b, 1]
    z = nodes[a, 2] - nodes[b, 2]
    return sqrt(x * x + y * y + z * z)


@compiled()
def shortest(
    nodes: Any, elements: Any, ends: Any, out: Any, start: int, stop: int
) -> None:
    """Find the shortest diagonal (n_elem,) of elements start..stop.

    Parameters
    ----------
    ends : (3, 2) local nodes at the ends of the diagonals.
    """
    lengths = np.empty(3)
    for e in range(start, stop):
        for k in range(3):
            a, b = ends[k, 0], ends[k, 1]
            lengths[k] = _length(nodes, elements[e, a], elements[e, b])
        longest = max(lengths[0], lengths[1], lengths[2])
        least = np.inf
        for k in range(3):
            # rounding must not decide between equal diagonals
            share = np.rint(lengths[k] / longest * 1e9)
            if share < least:
                out[e], least = k, share


@compiled()
def children(
    elements: Any, diagonals: Any, local: Any, out: Any, start: int, stop: int
) -> None:
    """Children (n_elem, 8, 4) of elements start..stop.

    Parameters
    ----------
    diagonals : (n_elem,) that elements are cut along.
    local : (3, 8, 4) local nodes of the children, by diagonal.
    """
    for e in range(start, stop):
        for child in range(8):
            for corner in range(4):
                node = local[diagonals[e], child, corner]
                out[e, child, corner] = elements[e, node]
