"""Sorting integers that are not much larger than their count, in linear time."""

from __future__ import annotations

from typing import Any

import numpy as np

from afterslip_solver.jit.compiling import compiled


@compiled()
def by_number(numbers: Any, n: int) -> tuple[Any, Any]:
    """Entries of each number: starts (n + 1,), and their places, ascending.

    Parameters
    ----------
    numbers : (m,) integers from 0 to n - 1.
    """
    starts = np.zeros(n + 1, np.int64)
    for i in range(len(numbers)):
        starts[numbers[i] + 1] += 1
    for k in range(n):
        starts[k + 1] += starts[k]
    at = starts[:-1].copy()
    places = np.empty(len(numbers), np.int64)
    for i in range(len(numbers)):
        k = numbers[i]
        places[at[k]] = i
        at[k] += 1
    return starts, places


@compiled()
def renumber(
    elements: Any, order: Any, number: Any, out: Any, first: int, last: int
) -> None:
    """Rows first..last of out: those of elements in an order, nodes renumbered.

    Out may have fewer columns.
    """
    for e in range(first, last):
        for k in range(out.shape[1]):
            out[e, k] = number[elements[order[e], k]]


@compiled()
def _root(parent: Any, i: int) -> Any:
    while parent[i] != i:
        # halving the path keeps it short
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i


@compiled()
def pieces(elements: Any, n_node: int) -> tuple[int, Any]:
    """Count the pieces that hang together by elements, and number each node's.

    Parameters
    ----------
    elements : (n_elem, k) node numbers.
    """
    parent = np.arange(n_node)
    for e in range(elements.shape[0]):
        one = _root(parent, elements[e, 0])
        for a in range(1, elements.shape[1]):
            other = _root(parent, elements[e, a])
            # the smallest number leads, so a node's leader comes before it
            if other > one:
                parent[other] = one
            elif other < one:
                parent[one] = other
                one = other
    count = 0
    piece = np.empty(n_node, np.int64)
    for i in range(n_node):
        leader = _root(parent, i)
        if leader == i:
            piece[i] = count
            count += 1
        else:
            piece[i] = piece[leader]
    return count, piece
