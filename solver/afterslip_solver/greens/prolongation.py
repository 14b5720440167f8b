"""Quadratic fields of a mesh as quadratic fields of the mesh refined from it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from afterslip_solver.elements.tetrahedron import quadratic_shapes
from afterslip_solver.jit.compiling import compiled
from afterslip_solver.model import TET_EDGES

_EDGES = np.array(TET_EDGES)
CHILDREN = 8


def _between() -> NDArray[np.float64]:
    """(10, 10, 10) parent's shapes half-way between two of its nodes."""
    first, second = _EDGES[:, 0], _EDGES[:, 1]
    corners = np.eye(4)
    nodes = np.concatenate([corners, 0.5 * (corners[first] + corners[second])])
    return quadratic_shapes(0.5 * (nodes[:, None] + nodes[None, :]))


BETWEEN = _between()


@compiled()
def middles(elements: Any, n_node: int) -> Any:
    """Return for each node 6 e + k, the last edge k of an element e that it halves.

    Parameters
    ----------
    elements : (n_elem, 10). Vertices get -1.
    """
    out = np.full(n_node, -1, dtype=np.int64)
    for e in range(len(elements)):
        for k in range(6):
            out[elements[e, 4 + k]] = 6 * e + k
    return out


@compiled(inline="always")
def _ends(elements: Any, parents: Any, middle: int) -> tuple[int, int, int]:
    """Return the parent of a middle, and which of its nodes the edge's ends are."""
    e, k = middle // 6, middle % 6
    parent = e // CHILDREN
    first, second = elements[e, _EDGES[k, 0]], elements[e, _EDGES[k, 1]]
    a = b = -1
    for m in range(10):
        if parents[parent, m] == first:
            a = m
        if parents[parent, m] == second:
            b = m
    return parent, a, b


@compiled()
def count(
    elements: Any, parents: Any, middle: Any, between: Any, out: Any, i: int, j: int
) -> None:
    """Count the weights (n_node,) of each node."""
    for node in range(i, j):
        out[node] = 1
        if middle[node] >= 0:
            _, a, b = _ends(elements, parents, middle[node])
            out[node] = np.count_nonzero(between[a, b])


@compiled()
def fill(
    elements: Any,
    parents: Any,
    middle: Any,
    between: Any,
    order: Any,
    rank: Any,
    indptr: Any,
    indices: Any,
    weights: Any,
    i: int,
    j: int,
) -> None:
    """Fill rows i..j of a matrix.

    Parameters
    ----------
    order : node of each row. rank : column of each of the parents' nodes.
    """
    for row in range(i, j):
        node, place = order[row], indptr[row]
        if middle[node] < 0:
            indices[place], weights[place] = rank[node], 1.0
            continue
        parent, a, b = _ends(elements, parents, middle[node])
        for m in range(10):
            if between[a, b, m] != 0.0:
                indices[place] = rank[parents[parent, m]]
                weights[place] = between[a, b, m]
                place += 1


@compiled()
def inside(
    elements: Any,
    parents: Any,
    middle: Any,
    between: Any,
    chosen: Any,
    index: Any,
    sign: Any,
    known: Any,
) -> Any:
    """Weights of a fault's slip at the nodes inside the parents that it displaces.

    Parameters
    ----------
    chosen : (n,) parents. index : (n, 10) row of slip of each of their nodes.
    sign : (n, 10) its factor, 0 where a node is not displaced.
    known : (n_node,) bool, nodes that are left out; those found are added.

    Returns
    -------
    nodes : (m,). columns, weights : (m, 10), 0 beyond what is needed.
    """
    nodes = np.empty(CHILDREN * 10 * len(chosen), dtype=np.int64)
    columns = np.empty((len(nodes), 10), dtype=np.int64)
    weights = np.empty((len(nodes), 10), dtype=np.float32)
    found = 0
    for row in range(len(chosen)):
        for child in range(CHILDREN):
            e = CHILDREN * chosen[row] + child
            for k in range(10):
                node = elements[e, k]
                if known[node]:
                    continue
                known[node] = True
                nodes[found] = node
                if middle[node] < 0:
                    a = 0
                    for m in range(10):
                        if parents[chosen[row], m] == node:
                            a = m
                    b = a
                else:
                    # by this child's own edge: the other side may not slip
                    _, a, b = _ends(elements, parents, 6 * e + k - 4)
                for m in range(10):
                    columns[found, m] = max(index[row, m], 0)
                    weights[found, m] = between[a, b, m] * sign[row, m]
                found += 1
    return nodes[:found], columns[:found], weights[:found]
