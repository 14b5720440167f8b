"""Correlated errors: against generalised least squares with the full matrix."""

from dataclasses import replace

import numpy as np
import pytest

from afterslip_solver.inversion import (
    Block,
    InversionError,
    InversionProblem,
    InversionSettings,
    Laplacian,
    exponential,
    fit_variogram,
    invert,
    whiten,
)
from afterslip_solver.inversion.choice import cross_validate
from afterslip_solver.inversion.normal import normal_equations


@pytest.fixture
def problem():
    rng = np.random.default_rng(3)
    n_station, grid = 12, np.array([[0, 1, i, j] for i in range(3) for j in range(2)])
    n = 3 * n_station
    G = rng.normal(size=(n, 6))
    station = np.repeat(np.arange(n_station), 3)
    return InversionProblem(
        G=G,
        data=G @ np.linspace(1, 2, 6) + rng.normal(size=n) * 0.1,
        sigma=np.full(n, 0.1),
        station=station,
        kind=np.full(n, "gnss"),
        grid=grid,
        area=np.full(6, 1e8),
        rigidity=np.full(6, 3e10),
        sign=np.zeros(6, dtype=np.int64),
        spacing=np.array([[1e4, 1e4]]),
        open_top=np.array([False]),
    )


def correlated(problem, r=0.8):
    """The three components of every station share errors; the last three do not."""
    matrix = 0.01 * np.array([[1, r, 0], [r, 1, r / 2], [0, r / 2, 1]])
    blocks = [Block(np.arange(i, i + 3), matrix) for i in range(0, 33, 3)]
    return replace(problem, covariance=tuple(blocks)), matrix


def test_correlated_errors_weigh_as_their_full_matrix_does(problem):
    posed, matrix = correlated(problem, 0.7)
    full = np.diag(problem.sigma**2)
    for i in range(0, 33, 3):
        full[i : i + 3, i : i + 3] = matrix
    W = np.linalg.inv(full)
    L = Laplacian().precision(problem.sources)
    expected = np.linalg.solve(
        problem.G.T @ W @ problem.G + 5.0 * L, problem.G.T @ W @ problem.data
    )
    found = invert(posed, InversionSettings(smoothness=5.0, sparsity=0.0, folds=0))
    np.testing.assert_allclose(found.slip, expected, rtol=1e-10)
    independent = invert(
        problem, InversionSettings(smoothness=5.0, sparsity=0.0, folds=0)
    )
    assert np.abs(independent.slip - expected).max() > 1e-4


def test_rows_held_out_are_weighed_by_their_own_marginal_covariance(problem):
    x, y = np.random.default_rng(1).uniform(0, 50e3, (2, 36))
    matrix = exponential(x, y, 0.08, 2e4) + np.diag(np.full(36, 0.01))
    posed = replace(
        problem,
        sigma=np.sqrt(np.diag(matrix)),
        covariance=(Block(np.arange(36), matrix),),
    )
    settings = InversionSettings(smoothness=5.0, sparsity=0.0, folds=3)
    L = Laplacian().precision(problem.sources)
    table = cross_validate(posed, settings, normal_equations(posed, L))
    for k in range(3):
        out = table.fold == k
        W = np.linalg.inv(matrix[np.ix_(~out, ~out)])
        G = problem.G[~out]
        slip = np.linalg.solve(G.T @ W @ G + 5.0 * L, G.T @ W @ problem.data[~out])
        rest = problem.data[out] - problem.G[out] @ slip
        score = rest @ np.linalg.inv(matrix[np.ix_(out, out)]) @ rest / out.sum()
        assert table.fold_scores[0, k] == pytest.approx(score, rel=1e-9)


def test_offsets_of_series_held_out_are_not_in_the_score(problem):
    """Two epochs with an offset say what their difference over root 2 says."""
    rng = np.random.default_rng(4)
    n, later = len(problem.data), 1.5 * problem.G
    moved = later @ np.ones(later.shape[1]) + rng.normal(0, problem.sigma)
    series = replace(
        problem,
        G=np.vstack([problem.G, later]),
        data=np.concatenate([problem.data, moved]) + np.tile(rng.normal(0, 20, n), 2),
        sigma=np.tile(problem.sigma, 2),
        station=np.tile(problem.station, 2),
        kind=np.tile(problem.kind, 2),
        nuisance=np.tile(np.eye(n), (2, 1)),
    )
    change = replace(
        problem,
        G=(later - problem.G) / np.sqrt(2.0),
        data=(moved - problem.data) / np.sqrt(2.0),
    )
    settings = InversionSettings(smoothness=5.0, sparsity=0.0, folds=3)
    L = Laplacian().precision(problem.sources)
    found, expected = (
        cross_validate(posed, settings, normal_equations(posed, L)).fold_scores
        for posed in (series, change)
    )
    # offsets are damped by 1e-10 of the mean diagonal
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_whitened_noise_has_unit_covariance():
    rng = np.random.default_rng(0)
    x, y = rng.uniform(0, 30e3, (2, 8))
    matrix = exponential(x, y, 0.02, 1e4) + np.diag(np.full(8, 1e-5))
    noise = np.linalg.cholesky(matrix) @ rng.normal(size=(8, 40000))
    white = whiten([Block(np.arange(8), matrix)], np.sqrt(np.diag(matrix)), noise)
    # the spread of 28 sample covariances of 40,000 draws: 5 sigma is 0.025
    np.testing.assert_allclose(np.cov(white), np.eye(8), atol=0.03)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"matrix": np.full((3, 3), 0.01)}, "not positive definite"),
        ({"matrix": np.eye(3)}, "sigma squared"),
        ({"matrix": 0.01 * np.eye(2)}, "shape"),
    ],
)
def test_matrix_that_is_no_covariance_of_the_rows_is_refused(problem, change, words):
    block = replace(Block(np.arange(3), 0.01 * np.eye(3)), **change)
    with pytest.raises(InversionError, match=words):
        replace(problem, covariance=(block,)).check()


def test_block_stays_within_its_data_set_and_apart_from_others(problem):
    block = Block(np.arange(3), 0.01 * np.eye(3))
    with pytest.raises(InversionError, match="two blocks"):
        replace(problem, covariance=(block, block)).check()
    dataset = np.array([0] * 2 + [1] * 34)
    with pytest.raises(InversionError, match="joins two data sets"):
        replace(problem, covariance=(block,), dataset=dataset).check()


def test_variogram_finds_the_covariance_that_made_the_noise():
    """Mean over draws: one scene of finite size scatters by tens of per cent."""
    found = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        x, y = rng.uniform(0, 120e3, (2, 700))
        matrix = exponential(x, y, 0.02, 6e3) + np.diag(np.full(700, 0.005**2))
        noise = np.linalg.cholesky(matrix) @ rng.normal(size=700)
        ramp = 0.1 + 4e-7 * x - 2e-7 * y
        fitted = fit_variogram(x, y, noise + ramp)
        found.append([fitted.sigma, fitted.length, fitted.nugget])
    sigma, length, nugget = np.mean(found, axis=0)
    assert sigma == pytest.approx(0.02, rel=0.1)
    assert length == pytest.approx(6e3, rel=0.3)
    assert nugget == pytest.approx(0.005, rel=0.6)


def test_variogram_of_too_few_points_is_refused():
    with pytest.raises(ValueError, match="needs 30"):
        fit_variogram(np.arange(5.0), np.arange(5.0), np.ones(5))
