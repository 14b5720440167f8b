"""Aggregates of vertices by uniform cells, and the matrix of their translations."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from afterslip_solver.model import Bool, Float, Int
from afterslip_solver.operators.elasticity import HostMatrix, traces

_BISECTIONS = 24


def uniform_aggregates(points: Float, per_aggregate: float) -> Int:
    """Give each vertex the number of its aggregate: the cubic cell that it lies in.

    Cells have one spacing everywhere. It is chosen by bisection.

    Parameters
    ----------
    points : (n, 3) m. per_aggregate : wanted mean number of vertices in a cell.

    Returns
    -------
    (n,) int64, numbered from 0 without gaps.
    """
    low = points.min(axis=0)
    extent = float((points.max(axis=0) - low).max())
    wanted = max(1.0, len(points) / per_aggregate)
    small, large = np.log(extent) - np.log(float(len(points))), np.log(extent) + 1.0
    for _ in range(_BISECTIONS):
        middle = 0.5 * (small + large)
        count = len(np.unique(_cell(points - low, np.exp(middle))))
        small, large = (middle, large) if count > wanted else (small, middle)
    _, own = np.unique(_cell(points - low, np.exp(large)), return_inverse=True)
    return own.astype(np.int64)


def _cell(offset: Float, spacing: float) -> Int:
    index = np.floor(offset / spacing).astype(np.int64)
    size = index.max(axis=0) + 1
    return np.asarray((index[:, 0] * size[1] + index[:, 1]) * size[2] + index[:, 2])


def translations(aggregates: Int) -> csr_array:
    """(n_vertex, n_aggregate) prolongation: every vertex moves with its aggregate."""
    n = len(aggregates)
    return csr_array(
        (np.ones(n), aggregates, np.arange(n + 1)), shape=(n, int(aggregates.max()) + 1)
    )


def coarse_matrix(
    fine: HostMatrix, aggregates: Int, fixed: Bool
) -> tuple[HostMatrix, Bool]:
    """Galerkin matrix P^T K P of the translations.

    Parameters
    ----------
    fine : of linear elements. aggregates : (n_vertex,). fixed : (n_vertex, 3).

    Returns
    -------
    matrix, and (n_aggregate, 3) bool, components in which nothing of it can move;
    these are uncoupled.
    """
    n = int(aggregates.max()) + 1
    all_fixed = np.ones((n, 3), dtype=np.bool_)
    np.logical_and.at(all_fixed, aggregates, fixed)
    free = (~fixed).astype(np.float64)
    rows = np.repeat(np.arange(len(fine.indptr) - 1), np.diff(fine.indptr))
    key = aggregates[rows] * n + aggregates[fine.indices]
    order = np.argsort(key, kind="stable")
    key = key[order]
    first = np.flatnonzero(np.r_[True, key[1:] != key[:-1]])
    data = fine.data[order]
    data *= free[rows[order]][:, :, None]
    data *= free[fine.indices[order]][:, None, :]
    data = np.add.reduceat(data, first, axis=0)
    coarse_row, column = np.divmod(key[first], n)
    indptr = np.searchsorted(coarse_row, np.arange(n + 1))
    own = coarse_row == column
    diagonal = data[own]
    size = float(traces(diagonal).mean()) / 3.0
    diagonal[all_fixed[:, :, None] & np.eye(3, dtype=bool)] = size
    data[own] = diagonal
    return HostMatrix(indptr, column.astype(np.int32), data, diagonal), all_fixed
