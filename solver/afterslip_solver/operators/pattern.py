"""Which nodes share an element."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from afterslip_solver.model import Int

# (indptr, indices) of a matrix of nodes, rows sorted
Pattern = tuple[Int, NDArray[np.int32]]


def node_graph(elements: NDArray[np.integer], n_node: int) -> csr_array:
    """Nodes that share an element, as a sparse matrix with the diagonal."""
    n_elem, n_local = elements.shape
    touch = csr_array(
        (
            np.ones(elements.size, np.int32),
            elements.ravel(),
            np.arange(0, elements.size + 1, n_local),
        ),
        shape=(n_elem, n_node),
    )
    return (touch.T @ touch).tocsr()


def matrix_pattern(elements: NDArray[np.integer], n_node: int) -> Pattern:
    """(indptr, indices) of the matrix of elements (n_elem, n_local)."""
    graph = node_graph(elements, n_node)
    graph.sort_indices()
    return graph.indptr.astype(np.int64), graph.indices.astype(np.int32)
