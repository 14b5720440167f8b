"""Levels of linear elements: of the mesh and, where it was refined, of its parents."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.sparse import csr_array

from afterslip_solver.jit.threads import over
from afterslip_solver.model import Bool, Int
from afterslip_solver.operators import assembly
from afterslip_solver.operators.elasticity import (
    Elasticity,
    HostMatrix,
    uncoupled,
)
from afterslip_solver.operators.parents import Parents

# rows that are worth a thread
_FEW = 500


@dataclass(frozen=True, eq=False, slots=True)
class Linear:
    """Linear elements on some of a mesh's vertices.

    Attributes
    ----------
    matrix : of them, fixed components uncoupled.
    vertices : (n_vertex,) the space's node of each row.
    embedding : (rows of the finer level, n_vertex), linear fields as finer ones.
    """

    matrix: HostMatrix
    vertices: Int
    embedding: csr_array


def linear_levels(operator: Elasticity, nested: bool = True) -> list[Linear]:
    """Levels of linear elements, finest first.

    Parameters
    ----------
    nested : go on to what the mesh was refined from, if it was.
    """
    space = operator.space
    with ThreadPoolExecutor(1) as beside:
        # one thread's work for a good part
        made = beside.submit(lambda: (space.embedding, space.parents if nested else ()))
        matrix = operator.on_linear_elements()
    embedding, parents = made.result()
    found = [Linear(matrix, space.vertices, embedding)]
    fixed = space.fixed[space.vertices]
    for level in parents:
        coarse = space.fixed[level.vertices]
        matrix = galerkin(matrix, level, fixed, coarse)
        found.append(Linear(matrix, level.vertices, level.embedding))
        fixed = coarse
    return found


def galerkin(
    matrix: HostMatrix, level: Parents, fixed: Bool, coarse: Bool
) -> HostMatrix:
    """Restrict a finer level's matrix to the linear elements of its parents.

    Parameters
    ----------
    fixed, coarse : (n, 3) fixed components of both levels.
    """
    up, down = level.embedding, level.embedding.T.tocsr()
    indptr, indices = level.vertex_pattern
    data = np.zeros((len(indices), 3, 3))
    add = partial(
        assembly.add_product,
        *(down.indptr, down.indices, down.data),
        *(up.indptr, up.indices, up.data),
        matrix.indptr,
        matrix.indices,
        matrix.data,
        np.ascontiguousarray(fixed),
        indptr,
        indices,
        data,
    )
    over(len(coarse), add, _FEW)
    return uncoupled(indptr, indices, data, coarse)
