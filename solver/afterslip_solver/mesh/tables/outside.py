"""Vertices of faces that belong to one tetrahedron only."""

from __future__ import annotations

from typing import Any

import numpy as np

from afterslip_solver.jit.compiling import compiled


@compiled()
def on_single_faces(cells: Any, n_vertex: int) -> Any:
    """(n_vertex,) bool, vertices of faces that occur once.

    Every face has a number of 64 bits that looks random, and a vertex has the exclusive
    or of its faces' numbers, to which a face that occurs twice adds nothing.

    Parameters
    ----------
    cells : (n_elem, 4+) int64 vertex numbers, no face more than twice.
    """
    sums = np.zeros(n_vertex, np.uint64)
    for e in range(len(cells)):
        for k in range(4):
            a, b, c = (
                cells[e, (k + 1) % 4],
                cells[e, (k + 2) % 4],
                cells[e, (k + 3) % 4],
            )
            low, high = min(a, b, c), max(a, b, c)
            face = _mixed(np.uint64(low))
            face = _mixed(face + np.uint64(a + b + c - low - high))
            face = _mixed(face + np.uint64(high))
            sums[a] ^= face
            sums[b] ^= face
            sums[c] ^= face
    return sums != 0


@compiled()
def _mixed(number: Any) -> Any:
    """Scatter 64 bits (the finaliser of splitmix64, Steele et al. 2014)."""
    number += np.uint64(0x9E3779B97F4A7C15)
    number = (number ^ (number >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    number = (number ^ (number >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return number ^ (number >> np.uint64(31))
