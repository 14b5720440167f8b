"""Levels of linear elements: of the mesh and, where it was refined, of its parents."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array, diags_array

from afterslip_solver.model import Float, Int
from afterslip_solver.operators.elasticity import (
    Elasticity,
    HostMatrix,
    assemble,
    assemble_linear,
)
from afterslip_solver.operators.parents import CHILDREN
from afterslip_solver.operators.springs import add_vertical


@dataclass(frozen=True, eq=False, slots=True)
class Linear:
    """Linear elements on some of a mesh's vertices.

    Attributes
    ----------
    matrix : of them, held components uncoupled; its ``diagonal`` lacks the springs.
    vertices : (n_vertex,) the space's node of each row.
    embedding : (rows of the finer level, n_vertex), linear fields as finer ones.
    """

    matrix: HostMatrix
    vertices: Int
    embedding: csr_array


def linear_levels(operator: Elasticity, nested: bool = True) -> list[Linear]:
    """Levels of linear elements, finest first.

    Where no vertex was moved when the mesh was refined, each matrix is the Galerkin
    matrix of the finer one: a parent's modulus is the mean of its children's.

    Parameters
    ----------
    nested : go on to what the mesh was refined from, if it was.
    """
    space = operator.space
    lam, mu = operator.moduli
    first = assemble(space, lam, mu, order=1)
    springs = None if operator.springs is None else operator.springs.linear
    if springs is not None:
        add_vertical(springs, first.indptr, first.indices, first.data)
    found = [Linear(first, space.vertices, space.embedding)]
    order = space.element_rank
    lam, mu, volume = lam[order], mu[order], space.volume[order]
    for level in space.parents if nested else ():
        lam, mu = _means(lam, volume), _means(mu, volume)
        volume = volume.reshape(-1, CHILDREN).sum(axis=1)
        fixed = space.fixed[level.vertices]
        matrix = assemble_linear(level, fixed, lam, mu)
        if springs is not None:
            down = level.embedding @ diags_array(1.0 - fixed[:, 2])
            springs = (down.T @ springs @ down).tocsr()
            add_vertical(springs, matrix.indptr, matrix.indices, matrix.data)
        found.append(Linear(matrix, level.vertices, level.embedding))
    return found


def _means(values: Float, weight: Float) -> Float:
    """Means of each eight children's values."""
    share = weight.reshape(-1, CHILDREN)
    total = (values.reshape(-1, CHILDREN) * share).sum(axis=1)
    return np.asarray(total / share.sum(axis=1))
