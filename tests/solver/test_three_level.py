"""The published three-level preconditioner: its levels, its loops and its answers."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import bsr_array

from afterslip_solver.krylov import pcg
from afterslip_solver.multigrid import build, build_three_level, make_preconditioner
from afterslip_solver.multigrid.three_level import ThreeLevelSettings
from afterslip_solver.multigrid.uniform import (
    coarse_matrix,
    translations,
    uniform_aggregates,
)
from afterslip_solver.operators.elasticity import assemble


@pytest.fixture
def problem(small, shaken_box):
    s = shaken_box
    k = small.elasticity(s.mesh, s.fixed, s.lam, s.mu)
    f = np.random.default_rng(4).standard_normal(k.shape) * k.free
    return k, f


def test_aggregates_are_the_cells_of_one_spacing():
    points = np.random.default_rng(1).random((4000, 3)) * [3.0, 2.0, 1.0]
    own = uniform_aggregates(points, 8.0)
    count = own.max() + 1
    assert set(own) == set(range(count))
    assert abs(count - 500) < 50
    low = np.full((count, 3), np.inf)
    high = np.full((count, 3), -np.inf)
    np.minimum.at(low, own, points)
    np.maximum.at(high, own, points)
    # 500 cells of 6 cubic units have sides of 0.229
    assert (high - low).max() < 0.25
    assert np.median(np.bincount(own)) > 5


def test_coarse_matrix_is_the_galerkin_product(problem):
    k, _ = problem
    space = k.space
    fixed = np.ascontiguousarray(space.fixed[space.vertices])
    lam, mu = k.moduli
    fine = assemble(space, lam, mu, order=1)
    dense = bsr_array((fine.data.copy(), fine.indices, fine.indptr)).toarray()
    own = uniform_aggregates(space.nodes[space.vertices], 4.0)
    coarse, held = coarse_matrix(fine, own, fixed)
    step = translations(own).toarray()
    p = np.kron(step, np.eye(3)) * (~fixed).reshape(-1, 1)
    expected = p.T @ dense @ p
    found = bsr_array((coarse.data, coarse.indices, coarse.indptr)).toarray()
    moves = ~held.reshape(-1)
    assert moves.any()
    scale = np.abs(expected).max()
    np.testing.assert_allclose(
        found[moves][:, moves], expected[moves][:, moves], atol=1e-12 * scale
    )
    assert np.abs(found[~moves][:, moves]).max(initial=0.0) == 0.0
    assert (np.diag(found) > 0.0).all()


def test_answer_is_that_of_the_cycle(problem, small):
    k, f = problem
    f[:, :, 1] = 0.0
    solver = build_three_level(k)
    found = pcg(k, solver, f, tolerance=1e-10)
    assert found.outcome == "converged"
    assert (found.relative[[0, 2, 3]] <= 1e-10).all()
    expected = pcg(k, build(k), f, tolerance=1e-10)
    assert np.abs(found.values[:, :, 1]).max() == 0.0
    # the error is the residual's times the condition number of D^-1 K, below 1e3
    size = np.abs(expected.values).max()
    np.testing.assert_allclose(found.values, expected.values, atol=1e-7 * size)


def test_inner_loops_reach_their_tolerances(problem):
    k, f = problem
    solver = build_three_level(k)
    out = np.empty_like(f)
    solver.apply(f, np.sqrt(k.backend.dot(f, f)), out)
    for loop, tolerance in zip(solver.loops, (0.5, 0.25, 0.15), strict=True):
        left = np.empty_like(loop.b)
        k.backend.residual(loop.matrix, loop.b, loop.x, left)
        norms = [np.linalg.norm(v.reshape(-1, 4), axis=0) for v in (left, loop.b)]
        # FP32 rounding of the recurrence
        assert (norms[0] <= (tolerance + 1e-4) * norms[1]).all()


def test_inner_iterations_are_counted_and_limited(problem):
    k, f = problem
    solver = build_three_level(
        k, ThreeLevelSettings(tolerances=(1e-9, 1e-9, 1e-9), limits=(3, 5, 7))
    )
    out = np.empty_like(f)
    solver.apply(f, np.ones(4), out)
    assert solver.inner_iterations() == [3, 5, 7]
    assert solver.inner_iterations() == [0, 0, 0]


def test_multigrid_needs_fewer_iterations(problem):
    k, f = problem
    counts = {
        name: pcg(k, make_preconditioner(name, k), f).iterations
        for name in ("multigrid", "three_level")
    }
    assert counts["multigrid"] < counts["three_level"] < 40
