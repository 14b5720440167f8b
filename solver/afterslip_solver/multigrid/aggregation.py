"""Smoothed aggregation below the linear elements, set up on the host by pyamg."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyamg
from scipy.sparse import bsr_array, bsr_matrix

from afterslip_solver.model import Bool, Float
from afterslip_solver.operators.checks import rigid_motions
from afterslip_solver.operators.elasticity import HostMatrix


@dataclass(frozen=True, slots=True)
class HostLevel:
    """A matrix and the prolongation from the next level."""

    matrix: bsr_array
    prolongation: bsr_array


def aggregate(
    matrix: HostMatrix, nodes: Float, fixed: Bool, strength: float, max_coarse: int
) -> tuple[list[HostLevel], bsr_array]:
    """Levels from the linear elements down, and the coarsest matrix.

    Parameters
    ----------
    matrix : of linear elements, fixed components uncoupled.
    nodes : (n_vertex, 3) float64, m.
    fixed : (n_vertex, 3) bool.
    strength : threshold of the symmetric strength of connection.
    max_coarse : stop when a level has at most this many nodes.
    """
    fine = bsr_matrix((matrix.data, matrix.indices, matrix.indptr))
    modes = rigid_motions(nodes)
    # fixed components must not be moved by the coarse levels
    modes[fixed] = 0.0
    with warnings.catch_warnings(), _same_random_numbers():
        warnings.simplefilter("ignore")
        solver = pyamg.smoothed_aggregation_solver(
            fine,
            B=modes.reshape(-1, 6),
            strength=("symmetric", {"theta": strength}),
            improve_candidates=None,
            presmoother=None,
            postsmoother=None,
            max_coarse=max_coarse,
        )
    matrices = [fine, *(_regular(level.A) for level in solver.levels[1:])]
    levels = [
        HostLevel(matrix, level.P)
        for matrix, level in zip(matrices[:-1], solver.levels[:-1], strict=True)
    ]
    return levels, matrices[-1]


@contextmanager
def _same_random_numbers() -> Iterator[None]:
    """Start NumPy's global generator at a fixed place, and put it back.

    pyamg draws from it to estimate spectral radii; a child that starts afresh must
    build the hierarchy of its predecessor to the last bit.
    """
    state = np.random.get_state()  # noqa: NPY002
    np.random.seed(0)  # noqa: NPY002
    try:
        yield
    finally:
        np.random.set_state(state)  # noqa: NPY002


def _regular(matrix: Any) -> Any:
    """Give a one to the empty rows that aggregates with few motions leave."""
    matrix = bsr_matrix(matrix)
    matrix.sort_indices()
    size = matrix.blocksize[0]
    for row, column, block in _diagonal_blocks(matrix):
        if row == column:
            d = block[np.arange(size), np.arange(size)]
            top = float(np.abs(d).max(initial=0.0)) or 1.0
            idle = np.flatnonzero(d <= 1e-10 * top)
            block[idle, :] = 0.0
            block[:, idle] = 0.0
            block[idle, idle] = top
    return matrix


def _diagonal_blocks(matrix: Any) -> Any:
    rows = np.repeat(np.arange(len(matrix.indptr) - 1), np.diff(matrix.indptr))
    for k in np.flatnonzero(rows == matrix.indices):
        yield rows[k], matrix.indices[k], matrix.data[k]
