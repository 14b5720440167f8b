"""Which nodes share an element."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from afterslip_solver.jit.threads import over
from afterslip_solver.mesh.tables import neighbours
from afterslip_solver.mesh.tables.sorting import by_number
from afterslip_solver.model import Int

# (indptr, indices) of a matrix of nodes, rows sorted
Pattern = tuple[Int, NDArray[np.int32]]


def matrix_pattern(elements: NDArray[np.integer], n_node: int) -> Pattern:
    """(indptr, indices) of the matrix of elements (n_elem, n_local)."""
    tables = (*by_number(elements.ravel(), n_node), elements)
    indptr = np.zeros(n_node + 1, dtype=np.int64)
    # each range has a table of all nodes, so there is one per thread
    over(n_node, partial(neighbours.count, *tables, indptr[1:]), per_thread=1)
    np.cumsum(indptr, out=indptr)
    indices = np.empty(indptr[-1], dtype=np.int32)
    listed = partial(neighbours.list_ascending, *tables, indptr, indices)
    over(n_node, listed, per_thread=1)
    return indptr, indices
