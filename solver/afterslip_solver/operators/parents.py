"""The elements that a uniformly refined mesh came from.

`refine_uniformly` numbers the children of an element behind each other. So a refined
mesh shows its parents by itself, also after it was stored: nothing goes with it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from afterslip_solver.elements.tetrahedron import barycentric_gradients
from afterslip_solver.model import Float, Int
from afterslip_solver.operators.pattern import Pattern, matrix_pattern

CHILDREN = 8
_CORNERS = np.arange(4)


@dataclass(frozen=True, eq=False, slots=True)
class Parents:
    """Linear elements that were halved to make those of a finer level.

    Attributes
    ----------
    cells : (n_elem, 4) int32, this level's vertices; element e has the children
        8e..8e+7, in the order of the mesh.
    vertices : (n_vertex,) the space's node of each vertex.
    embedding : (vertices of the finer level, n_vertex) linear fields as finer ones.
    gradients : (n_elem, 4, 3) float64, 1/m. volume : (n_elem,) m3.
    vertex_pattern : of the matrix.
    """

    cells: NDArray[np.int32]
    vertices: Int
    embedding: csr_array
    gradients: Float
    volume: Float
    vertex_pattern: Pattern


def ancestors(
    cells: NDArray[np.int32], vertices: Int, nodes: Float
) -> tuple[Parents, ...]:
    """Parents, grandparents and so on of elements; none if they were not refined.

    Parameters
    ----------
    cells : (n_elem, 4) in the order of the mesh. vertices : (n_vertex,) of them.
    nodes : (n_node, 3) m, what ``vertices`` points to.
    """
    found: list[Parents] = []
    while (up := _parents(cells, vertices, nodes)) is not None:
        found.append(up)
        cells, vertices = up.cells, up.vertices
    return tuple(found)


def _parents(cells: NDArray[np.int32], vertices: Int, nodes: Float) -> Parents | None:
    """Undo a refinement: child a keeps the parent's corner a and halves its edges."""
    if len(cells) % CHILDREN:
        return None
    corners = cells.reshape(-1, CHILDREN, 4)[:, :4]
    # the middle of edge (a, b) is corner b of child a and corner a of child b
    if not np.array_equal(corners, corners.swapaxes(1, 2)):
        return None
    kept = np.zeros(len(vertices), dtype=np.bool_)
    kept[corners[:, _CORNERS, _CORNERS]] = True
    number = np.cumsum(kept, dtype=np.int32) - 1
    parents = number[corners[:, _CORNERS, _CORNERS]]
    ends = np.full((len(vertices), 2), -1, dtype=np.int32)
    ends[kept] = np.arange(kept.sum())[:, None]
    for a in range(4):
        for b in range(a):
            ends[corners[:, a, b]] = np.sort(parents[:, [a, b]], axis=1)
    own = vertices[kept]
    rows = np.repeat(np.arange(len(ends)), 2)
    halves = np.full(ends.size, 0.5)
    gradients, volume = barycentric_gradients(nodes[own], parents.astype(np.int64))
    return Parents(
        cells=parents,
        vertices=own,
        embedding=csr_array(
            (halves, (rows, ends.ravel())), shape=(len(ends), len(own))
        ),
        gradients=gradients,
        volume=volume,
        vertex_pattern=matrix_pattern(parents, len(own)),
    )
