"""Numbers of the edges of tetrahedra."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from afterslip_solver.jit.compiling import compiled
from afterslip_solver.jit.threads import over
from afterslip_solver.model import TET_EDGES

_EDGES = np.array(TET_EDGES)


def number_edges(cells: Any, n_vertex: int) -> tuple[Any, Any]:
    """Give edges numbers in the order of their lower and higher vertex.

    Parameters
    ----------
    cells : (n_elem, 4) int64 vertices.

    Returns
    -------
    (n_elem, 10) int64, the vertices and n_vertex + number of the edges in the order
    of ``TET_EDGES``; and (n_edge, 2) int64 their vertices, lower first.
    """
    starts = np.zeros(n_vertex + 1, dtype=np.int64)
    highs = np.empty(6 * len(cells), dtype=np.int64)
    places = np.empty(6 * len(cells), dtype=np.int64)
    _sort_by_lower(cells, starts, highs, places)
    counts = np.zeros(n_vertex + 1, dtype=np.int64)
    over(n_vertex, partial(_sort_by_higher, starts, highs, places, counts))
    np.cumsum(counts, out=counts)
    elements = np.empty((len(cells), 10), dtype=np.int64)
    elements[:, :4] = cells
    ends = np.empty((counts[-1], 2), dtype=np.int64)
    over(n_vertex, partial(_number, starts, highs, places, counts, elements, ends))
    return elements, ends


@compiled()
def _sort_by_lower(cells: Any, starts: Any, highs: Any, places: Any) -> None:
    """Put each edge, as 6 element + local number, with those of its lower vertex."""
    n = len(starts) - 1
    for e in range(len(cells)):
        for k in range(6):
            a, b = cells[e, _EDGES[k, 0]], cells[e, _EDGES[k, 1]]
            starts[min(a, b) + 1] += 1
    for v in range(n):
        starts[v + 1] += starts[v]
    at = starts[:-1].copy()
    for e in range(len(cells)):
        for k in range(6):
            a, b = cells[e, _EDGES[k, 0]], cells[e, _EDGES[k, 1]]
            low = min(a, b)
            highs[at[low]] = max(a, b)
            places[at[low]] = 6 * e + k
            at[low] += 1


@compiled()
def _sort_by_higher(
    starts: Any, highs: Any, places: Any, counts: Any, first: int, last: int
) -> None:
    """Sort each vertex' edges, which are few, and count the different ones."""
    for v in range(first, last):
        start, stop = starts[v], starts[v + 1]
        for i in range(start + 1, stop):
            high, place = highs[i], places[i]
            j = i
            while j > start and highs[j - 1] > high:
                highs[j], places[j] = highs[j - 1], places[j - 1]
                j -= 1
            highs[j], places[j] = high, place
        for i in range(start, stop):
            if i == start or highs[i] != highs[i - 1]:
                counts[v + 1] += 1


@compiled()
def _number(
    starts: Any,
    highs: Any,
    places: Any,
    counts: Any,
    elements: Any,
    ends: Any,
    first: int,
    last: int,
) -> None:
    n = len(starts) - 1
    for v in range(first, last):
        number = counts[v] - 1
        for i in range(starts[v], starts[v + 1]):
            if i == starts[v] or highs[i] != highs[i - 1]:
                number += 1
                ends[number, 0], ends[number, 1] = v, highs[i]
            elements[places[i] // 6, 4 + places[i] % 6] = n + number
