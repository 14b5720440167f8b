"""The suite's own factorisation against SciPy's."""

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as spla

from afterslip_solver.verification.direct import solve_directly


def grid_matrix(n, rng):
    """Springs on a shuffled n x n grid in two components, its first column held."""
    line = sp.diags([-1.0, 2.5, -1.0], [-1, 0, 1], shape=(n, n))
    grid = sp.kron(line, sp.eye(n)) + sp.kron(sp.eye(n), line)
    matrix = sp.block_diag([grid, 3.0 * grid]).tolil()
    x = np.tile(np.repeat(np.arange(n), n), 2).astype(float)
    held = np.flatnonzero(x == 0)
    matrix[held, :] = 0.0
    matrix[:, held] = 0.0
    matrix[held, held] = 7.0
    order = rng.permutation(len(x))
    return sp.csr_matrix(matrix)[order][:, order], x[order]


def test_levels_give_what_a_general_factorisation_gives():
    rng = np.random.default_rng(1)
    matrix, x = grid_matrix(9, rng)
    right = rng.standard_normal((len(x), 2))
    expected = spla.spsolve(matrix.tocsc(), right)
    found = solve_directly(matrix, x, right)
    assert np.abs(found - expected).max() < 1e-13 * np.abs(expected).max()


def test_any_start_will_do():
    rng = np.random.default_rng(2)
    matrix, x = grid_matrix(6, rng)
    right = rng.standard_normal((len(x), 1))
    found = solve_directly(matrix, rng.standard_normal(len(x)), right)
    assert np.abs(matrix @ found - right).max() < 1e-12


def test_an_indefinite_matrix_is_refused():
    rng = np.random.default_rng(3)
    matrix, x = grid_matrix(5, rng)
    with pytest.raises(np.linalg.LinAlgError):
        solve_directly(sp.csr_matrix(matrix - 4.0 * sp.eye(len(x))), x, x[:, None])
