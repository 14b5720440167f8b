"""Which nodes share an element, row by row."""

from __future__ import annotations

from typing import Any

import numpy as np

from afterslip_solver.jit.compiling import compiled


@compiled()
def count(
    starts: Any, places: Any, elements: Any, counts: Any, first: int, last: int
) -> None:
    """Count the nodes in the elements of each of the nodes first..last.

    Parameters
    ----------
    starts, places : entries of each node in ``elements`` (n_elem, k), see `by_number`.
    """
    width = elements.shape[1]
    visited = np.full(len(counts), -1, np.int32)
    for row in range(first, last):
        found = 0
        for k in range(starts[row], starts[row + 1]):
            e = places[k] // width
            for a in range(width):
                node = elements[e, a]
                if visited[node] != row:
                    visited[node] = row
                    found += 1
        counts[row] = found


@compiled()
def list_ascending(
    starts: Any,
    places: Any,
    elements: Any,
    indptr: Any,
    indices: Any,
    first: int,
    last: int,
) -> None:
    """List those nodes from indptr[row] on; parameters as for `count`."""
    width = elements.shape[1]
    visited = np.full(len(indptr) - 1, -1, np.int32)
    for row in range(first, last):
        begin = end = indptr[row]
        for k in range(starts[row], starts[row + 1]):
            e = places[k] // width
            for a in range(width):
                node = elements[e, a]
                if visited[node] == row:
                    continue
                visited[node] = row
                i = end
                while i > begin and indices[i - 1] > node:
                    indices[i] = indices[i - 1]
                    i -= 1
                indices[i] = node
                end += 1
