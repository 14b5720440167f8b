"""Slip through time: priors, sums over blocks and the moment so far."""

from dataclasses import replace

import numpy as np
import pytest

from afterslip_solver.inversion import (
    InTime,
    InversionProblem,
    InversionSettings,
    KnownSum,
    Laplacian,
    SourceGrid,
    in_blocks,
    invert,
    moment_history,
    total,
)

DAYS = (10.0, 20.0, 70.0)


@pytest.fixture
def problem():
    """Six patches of two components, and twelve stations at four epochs."""
    rng = np.random.default_rng(7)
    cells = [(c, i, j) for c in (0, 1) for i in range(3) for j in range(2)]
    n, n_obs = len(cells), 144
    return InversionProblem(
        G=rng.normal(size=(n_obs, n)),
        data=rng.normal(size=n_obs),
        sigma=rng.uniform(0.1, 0.2, n_obs),
        station=np.tile(np.repeat(np.arange(12), 3), 4),
        kind=np.full(n_obs, "gnss"),
        grid=np.array([[0, *cell] for cell in cells]),
        area=rng.uniform(1e8, 2e8, n),
        rigidity=np.full(n, 3e10),
        sign=np.zeros(n, dtype=np.int64),
        spacing=np.array([[1e4, 2e4]]),
        open_top=np.array([True]),
    )


@pytest.fixture
def design(problem):
    rng = np.random.default_rng(9)
    return rng.normal(size=(len(problem.data), 4, problem.G.shape[1]))


def test_precision_is_that_of_a_random_walk_and_of_changes_of_the_rate(problem):
    prior = InTime(Laplacian(), DAYS, coupling=0.3, amplitude=0.5)
    sources = problem.sources
    L = Laplacian().precision(sources)
    n = len(L)
    tiled = SourceGrid(
        np.concatenate([np.add(sources.place, [k, 0, 0, 0]) for k in range(4)]),
        np.tile(sources.spacing, (4, 1)),
        np.tile(sources.open_top, 4),
    )
    found = prior.precision(tiled)
    slip = np.random.default_rng(1).normal(size=(4, n))
    share = np.array(DAYS) / 100
    penalty = slip[0] @ L @ slip[0]
    for k in range(3):
        penalty += 4.0 * slip[k + 1] @ L @ slip[k + 1] / share[k]
    middle = [0.05, 0.2, 0.65]
    for k in range(2):
        change = slip[k + 2] / share[k + 1] - slip[k + 1] / share[k]
        penalty += 4.0 * 0.3 * change @ L @ change / (middle[k + 1] - middle[k])
    flat = slip.ravel()
    assert flat @ found @ flat == pytest.approx(penalty)


def test_blocks_are_solved_as_one_ridge_regression(problem, design):
    posed = in_blocks(problem, design)
    prior = InTime(Laplacian(), DAYS, coupling=0.1)
    settings = InversionSettings(
        smoothness=2.0, sparsity=0.0, folds=0, regulariser=prior
    )
    found = invert(posed, settings)
    G = design.reshape(len(design), -1) / problem.sigma[:, None]
    P = np.kron(prior.in_time(), Laplacian().precision(problem.sources))
    expected = np.linalg.solve(G.T @ G + 2 * P, G.T @ (problem.data / problem.sigma))
    np.testing.assert_allclose(found.slip, expected, rtol=1e-8, atol=1e-12)


def test_total_adds_slip_and_its_covariance_over_the_blocks(problem, design):
    settings = InversionSettings(
        smoothness=2.0, sparsity=0.0, folds=0, regulariser=InTime(Laplacian(), DAYS)
    )
    found = invert(in_blocks(problem, design), settings)
    whole = total(problem, design, found)
    n = problem.G.shape[1]
    add = np.hstack([np.eye(n)] * 4)
    np.testing.assert_allclose(whole.slip, add @ found.slip)
    np.testing.assert_allclose(whole.covariance, add @ found.covariance @ add.T)
    # sum over the blocks of what evenly spread slip moves
    evenly = np.vstack([np.eye(n)] * 4) / 4
    np.testing.assert_allclose(whole.resolution, add @ found.resolution @ evenly)
    assert whole.moment == pytest.approx(moment_history(problem, found)[0][-1])


def test_moment_so_far_has_the_limits_of_its_draws(problem, design):
    settings = InversionSettings(
        smoothness=2.0, sparsity=0.0, folds=0, regulariser=InTime(Laplacian(), DAYS)
    )
    found = invert(in_blocks(problem, design), settings)
    moment, spread = moment_history(problem, found)
    assert spread is not None
    low, high = spread
    of_solution = found.slip.reshape(4, 12).cumsum(axis=0)
    assert found.posterior is not None
    draws = found.posterior.slip.reshape(-1, 4, 12).cumsum(axis=1)
    size = problem.area * problem.rigidity

    def length(slip):
        part = slip * size
        return np.hypot(part[..., :6].sum(axis=-1), part[..., 6:].sum(axis=-1))

    np.testing.assert_allclose(moment, length(of_solution))
    np.testing.assert_allclose(low, np.quantile(length(draws), 0.025, axis=0))
    np.testing.assert_allclose(high, np.quantile(length(draws), 0.975, axis=0))
    bare = invert(in_blocks(problem, design), replace(settings, draws=0))
    assert moment_history(problem, bare)[1] is None


def test_two_increments_are_coupled_and_one_has_a_scale_alone():
    one = InTime(Laplacian(), (30.0,), coupling=0.3, amplitude=0.5)
    np.testing.assert_allclose(one.in_time(), np.diag([1.0, 4.0]))
    two = InTime(Laplacian(), (10.0, 30.0), coupling=0.3, amplitude=0.5)
    first, second = 0.25, 0.75
    # rates differ by b/second - a/first over the distance of the middles, 1/2
    change = np.array([-1 / first, 1 / second])
    expected = np.diag([1 / first, 1 / second]) + 0.3 * np.outer(change, change) / 0.5
    np.testing.assert_allclose(two.in_time()[1:, 1:], expected / 0.5**2)
    np.testing.assert_allclose(two.in_time()[0], [1.0, 0.0, 0.0])


def test_a_sum_that_is_known_is_of_all_blocks_together(problem, design):
    row = np.linspace(1.0, 2.0, problem.G.shape[1])
    known = KnownSum(row, value=50.0, sigma=1e-3)
    posed = in_blocks(replace(problem, known=(known,)), design)
    prior = InTime(Laplacian(), DAYS, coupling=0.1)
    settings = InversionSettings(
        smoothness=2.0, sparsity=0.0, folds=0, regulariser=prior
    )
    slip = invert(posed, settings).slip
    assert np.tile(row, 4) @ slip == pytest.approx(50.0, abs=0.05)
    free = invert(in_blocks(problem, design), settings).slip
    assert abs(np.tile(row, 4) @ free - 50.0) > 5.0


def test_total_detects_slip_above_the_errors_that_were_estimated(problem, design):
    """Stated a tenth as large, they are found to be as large as they are."""
    settings = InversionSettings(
        folds=0, draws=200, regulariser=InTime(Laplacian(), DAYS)
    )
    found = []
    for factor in (1.0, 0.1):
        posed = replace(problem, sigma=factor * problem.sigma)
        solution = invert(in_blocks(posed, design), settings)
        found.append(total(posed, design, solution).detectable_slip)
    np.testing.assert_allclose(found[1], found[0], rtol=1e-6)
