"""Direct solution of a symmetric positive definite system, level by level."""

from __future__ import annotations

import numpy as np
import scipy.linalg as la
import scipy.sparse as sp

from afterslip_solver.model import Bool, Float, Int


def solve_directly(matrix: sp.csr_matrix, position: Float, right: Float) -> Float:
    """Solve by a block-tridiagonal Cholesky factorisation and one refinement.

    Levels of the matrix's graph, counted from the rows with the lowest position,
    couple with their neighbours only, so dense factors (LAPACK) of one level at a
    time are a whole factorisation. Across a mesh levels are small, and this takes a
    small part of the time of a general sparse LU.

    Parameters
    ----------
    matrix : (n, n), symmetric positive definite. position : (n,) of each row along
        the mesh, best on its longest axis. right : (n, n_right).

    Returns
    -------
    (n, n_right). Raises LinAlgError where the matrix is not positive definite.
    """
    matrix.eliminate_zeros()
    # fixed rows hold a diagonal alone
    alone = np.diff(matrix.indptr) < 2
    levels = _levels(matrix, position, ~alone)
    factors: list[Float] = []
    below: list[sp.csr_matrix] = []
    for k, rows in enumerate(levels):
        strip = matrix[rows]
        block = strip[:, rows].toarray()
        if k:
            coupling = strip[:, levels[k - 1]]
            # `_levels` puts the rows that touch this level last
            first = int(coupling.indices.min(initial=len(levels[k - 1]) - 1))
            w = la.solve_triangular(
                factors[-1][first:, first:], coupling[:, first:].T.toarray(), lower=True
            )
            block -= w.T @ w
            below.append(coupling)
        factors.append(la.cholesky(block, lower=True, overwrite_a=True))

    diagonal = matrix.diagonal()[:, None]

    def solve(b: Float) -> Float:
        parts = [b[rows] for rows in levels]
        for k, coupling in enumerate(below):
            parts[k] = la.cho_solve((factors[k], True), parts[k])
            parts[k + 1] = parts[k + 1] - coupling @ parts[k]
        parts[-1] = la.cho_solve((factors[-1], True), parts[-1])
        for k in reversed(range(len(below))):
            known = below[k].T @ parts[k + 1]
            parts[k] = parts[k] - la.cho_solve((factors[k], True), known)
        out = b / diagonal
        out[np.concatenate(levels)] = np.concatenate(parts)
        return np.asarray(out)

    found = solve(right)
    return np.asarray(found + solve(right - matrix @ found))


def _levels(matrix: sp.csr_matrix, position: Float, todo: Bool) -> list[Int]:
    """Rows by distance in the graph; those that touch the next level come last."""
    pattern = sp.csr_matrix(
        (np.ones(matrix.nnz, np.int32), matrix.indices, matrix.indptr), matrix.shape
    )
    todo = todo.copy()
    levels: list[Int] = []
    while todo.any():
        low = position[todo].min()
        front = todo & (position <= low + 1e-9 * np.ptp(position))
        while front.any():
            levels.append(np.flatnonzero(front))
            todo &= ~front
            front = todo & (pattern @ front.astype(np.int32) > 0)
    for k, rows in enumerate(levels[:-1]):
        after = np.zeros(len(position), np.int32)
        after[levels[k + 1]] = 1
        levels[k] = rows[np.argsort((pattern @ after)[rows] > 0, kind="stable")]
    return levels
