"""Fields that are linear along edges, at the edges' ends and midpoints."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from afterslip_solver.jit.compiling import compiled
from afterslip_solver.jit.threads import over
from afterslip_solver.model import TET_EDGES

_EDGES = np.array(TET_EDGES)
# local node on the edge between two local vertices (itself on the diagonal)
MID = np.array([[0, 4, 6, 7], [4, 1, 5, 8], [6, 5, 2, 9], [7, 8, 9, 3]], dtype=np.int64)


def interpolation(ends: Any, n: int) -> csr_array:
    """Matrix (m, n) that gives each row the mean of its two ``ends``.

    Parameters
    ----------
    ends : (m, 2) int32, ascending; twice the same for a row that copies a value.
    """
    count = 1 + (ends[:, 0] != ends[:, 1])
    indptr = np.zeros(len(ends) + 1, dtype=np.int32)
    np.cumsum(count, out=indptr[1:])
    indices = np.empty(indptr[-1], dtype=np.int32)
    weights = np.empty(len(indices))
    over(len(ends), partial(_put_ends, ends, indptr, indices, weights))
    return csr_array((weights, indices, indptr), shape=(len(ends), n))


@compiled()
def _put_ends(
    ends: Any, indptr: Any, indices: Any, weights: Any, first: int, last: int
) -> None:
    """Fill rows first..last of `interpolation`."""
    for i in range(first, last):
        count = indptr[i + 1] - indptr[i]
        for k in range(count):
            indices[indptr[i] + k] = ends[i, k]
            weights[indptr[i] + k] = 1.0 / count


@compiled()
def ends_of_edges(elements: Any, cells: Any, out: Any, first: int, last: int) -> None:
    """Find the ends (n_node, 2) of each midpoint's edge; a vertex is its own ends.

    Parameters
    ----------
    elements : (n_elem, 10) nodes. cells : (n_elem, 4) numbers of their vertices.
    """
    for e in range(first, last):
        for k in range(4):
            out[elements[e, k], :] = cells[e, k]
        for k in range(6):
            a, b = cells[e, _EDGES[k, 0]], cells[e, _EDGES[k, 1]]
            out[elements[e, 4 + k], 0] = min(a, b)
            out[elements[e, 4 + k], 1] = max(a, b)
