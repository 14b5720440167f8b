"""Numbers of the edges of tetrahedra."""

from __future__ import annotations

import os
from functools import partial
from typing import Any

import numpy as np

from afterslip_solver.jit.compiling import compiled
from afterslip_solver.jit.threads import over
from afterslip_solver.model import TET_EDGES

_EDGES = np.array(TET_EDGES)
# parts of the elements that are sorted side by side, and elements of one at least
_PARTS, _FEW = 16, 20_000


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
    starts, highs, places = _by_lower(cells, n_vertex)
    counts = np.zeros(n_vertex + 1, dtype=np.int64)
    over(n_vertex, partial(_sort_by_higher, starts, highs, places, counts))
    np.cumsum(counts, out=counts)
    elements = np.empty((len(cells), 10), dtype=np.int64)

    def copy(start: int, stop: int) -> None:
        elements[start:stop, :4] = cells[start:stop]

    over(len(cells), copy)
    ends = np.empty((counts[-1], 2), dtype=np.int64)
    over(n_vertex, partial(_number, starts, highs, places, counts, elements, ends))
    return elements, ends


def _by_lower(cells: Any, n_vertex: int) -> tuple[Any, Any, Any]:
    """Put each edge, as 6 element + local number, with those of its lower vertex.

    Returns
    -------
    starts : (n_vertex + 1,) of each vertex' edges in the other two; their higher
    vertices and their places, in the order of the elements.
    """
    parts = min(len(os.sched_getaffinity(0)), _PARTS, -(-len(cells) // _FEW))
    cuts = np.linspace(0, len(cells), parts + 1).astype(np.int64)
    # of each part: first how many edges a vertex has there, then where the next goes
    at = np.zeros((parts, n_vertex), dtype=np.int64)
    each = partial(over, parts, few=1, per_thread=1)
    each(partial(_count, cells, cuts, at))
    starts = np.empty(n_vertex + 1, dtype=np.int64)
    _add_up(at, starts)
    highs, places = np.empty((2, 6 * len(cells)), dtype=np.int64)
    each(partial(_put, cells, cuts, at, highs, places))
    return starts, highs, places


@compiled()
def _count(cells: Any, cuts: Any, counts: Any, first: int, last: int) -> None:
    for part in range(first, last):
        for e in range(cuts[part], cuts[part + 1]):
            for k in range(6):
                a, b = cells[e, _EDGES[k, 0]], cells[e, _EDGES[k, 1]]
                counts[part, min(a, b)] += 1


@compiled()
def _add_up(at: Any, starts: Any) -> None:
    """Replace counts by sums of all before them."""
    total = 0
    for v in range(at.shape[1]):
        starts[v] = total
        for part in range(len(at)):
            count = at[part, v]
            at[part, v] = total
            total += count
    starts[-1] = total


@compiled()
def _put(
    cells: Any, cuts: Any, at: Any, highs: Any, places: Any, first: int, last: int
) -> None:
    for part in range(first, last):
        for e in range(cuts[part], cuts[part + 1]):
            for k in range(6):
                a, b = cells[e, _EDGES[k, 0]], cells[e, _EDGES[k, 1]]
                low = min(a, b)
                highs[at[part, low]] = max(a, b)
                places[at[part, low]] = 6 * e + k
                at[part, low] += 1


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


@compiled()
def put_middles(vertices: Any, ends: Any, nodes: Any, first: int, last: int) -> None:
    """Put the midpoints of edges (n_edge, 2) behind the vertices among the nodes."""
    n = len(vertices)
    for i in range(first, last):
        for k in range(3):
            nodes[n + i, k] = 0.5 * (vertices[ends[i, 0], k] + vertices[ends[i, 1], k])
