"""The elements that a uniformly refined mesh came from.

`refine_uniformly` numbers the children of an element behind each other. So a refined
mesh shows its parents by itself, also after it was stored: nothing goes with it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from afterslip_solver.mesh.lattice import corners_of_children
from afterslip_solver.mesh.tables.midpoints import interpolation
from afterslip_solver.model import Int
from afterslip_solver.operators.pattern import Pattern, matrix_pattern

_CORNERS = np.arange(4)


@dataclass(frozen=True, eq=False, slots=True)
class Parents:
    """Linear elements that were halved to make those of a finer level.

    Attributes
    ----------
    cells : (n_elem, 4) int32, this level's vertices; element e has the children
        8e..8e+7, in the order of the mesh.
    vertices : (n_vertex,) what each stands for, see `ancestors`.
    embedding : (vertices of the finer level, n_vertex) linear fields as finer ones.
    vertex_pattern : of the matrix.
    """

    cells: NDArray[np.int32]
    vertices: Int
    embedding: csr_array
    vertex_pattern: Pattern


def ancestors(cells: NDArray[np.int32], vertices: Int) -> tuple[Parents, ...]:
    """Parents, grandparents and so on of elements; none if they were not refined.

    Parameters
    ----------
    cells : (n_elem, 4) in the order of the mesh.
    vertices : (n_vertex,) what their numbers stand for; the parents' ones stay.
    """
    found: list[Parents] = []
    while (up := _parents(cells, vertices)) is not None:
        found.append(up)
        cells, vertices = up.cells, up.vertices
    return tuple(found)


def _parents(cells: NDArray[np.int32], vertices: Int) -> Parents | None:
    """Undo a refinement: child a keeps the parent's corner a and halves its edges."""
    corners = corners_of_children(cells)
    if corners is None:
        return None
    coarse = np.zeros(len(vertices), dtype=np.bool_)
    coarse[corners[:, _CORNERS, _CORNERS]] = True
    number = np.cumsum(coarse, dtype=np.int32) - 1
    parents = np.ascontiguousarray(number[corners[:, _CORNERS, _CORNERS]])
    ends = np.full((len(vertices), 2), -1, dtype=np.int32)
    ends[coarse] = np.arange(coarse.sum())[:, None]
    for a in range(4):
        for b in range(a):
            ends[corners[:, a, b]] = np.sort(parents[:, [a, b]], axis=1)
    own = vertices[coarse]
    return Parents(
        cells=parents,
        vertices=own,
        embedding=interpolation(ends, len(own)),
        vertex_pattern=matrix_pattern(parents, len(own)),
    )
