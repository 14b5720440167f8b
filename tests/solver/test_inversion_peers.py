"""The same matrices in CVXPY, scikit-learn and emcee; each is optional."""

import dataclasses

import numpy as np
import pytest
from summed import groups_of
from test_inversion import build, fixed

from afterslip_solver.inversion import Laplacian, invert
from afterslip_solver.inversion.convex import minimise
from afterslip_solver.inversion.hierarchy import (
    Hierarchy,
    effective_size,
    sample,
)

# numpy warns of what these packages do inside
pytestmark = pytest.mark.filterwarnings("default")


@pytest.fixture(scope="module")
def thrust():
    return build(n_station=20, noise=0.05)


def system(problem, smoothness):
    """Rows and data whose squared residual is the objective."""
    root = np.linalg.cholesky(smoothness * Laplacian().precision(problem.sources)).T
    rows = np.vstack((problem.G / problem.sigma[:, None], root))
    return rows, np.concatenate((problem.data / problem.sigma, np.zeros(len(root))))


@pytest.mark.parametrize("kind", ["positive", "bounded", "sparse", "sparse positive"])
def test_slip_agrees_with_cvxpy(thrust, kind):
    cvxpy = pytest.importorskip("cvxpy")
    rows, data = system(thrust, 2.0)
    n = thrust.G.shape[1]
    lower = {"positive": 0.0, "bounded": -0.1, "sparse positive": 0.0}.get(
        kind, -np.inf
    )
    upper = 2.0 if kind == "bounded" else np.inf
    weight = 200.0 if "sparse" in kind else 0.0
    bounds = np.full(n, lower), np.full(n, upper)
    found = minimise(rows.T @ rows, rows.T @ data, np.full(n, weight), *bounds)
    a = cvxpy.Variable(n)
    limits = [a >= lower] if np.isfinite(lower) else []
    limits += [a <= upper] if np.isfinite(upper) else []
    goal = cvxpy.sum_squares(rows @ a - data) + weight * cvxpy.norm1(a)
    tight = {"tol_gap_abs": 1e-12, "tol_gap_rel": 1e-12, "tol_feas": 1e-12}
    least = cvxpy.Problem(cvxpy.Minimize(goal), limits).solve("CLARABEL", **tight)
    size = np.abs(found.value).max()
    np.testing.assert_allclose(found.value, a.value, atol=1e-6 * size)
    own = np.sum((rows @ found.value - data) ** 2) + weight * np.abs(found.value).sum()
    assert own <= least * (1 + 1e-9)
    assert 0 <= found.gap < 1e-9 * least


@pytest.mark.parametrize("positive", [False, True])
def test_sparse_slip_agrees_with_the_lasso_of_scikit_learn(thrust, positive):
    linear = pytest.importorskip("sklearn.linear_model")
    rows, data = system(thrust, 2.0)
    n = len(rows)
    peer = linear.Lasso(
        alpha=200.0 / (2 * n), fit_intercept=False, positive=positive,
        tol=1e-14, max_iter=200_000,
    ).fit(rows, data)  # fmt: skip
    posed = dataclasses.replace(thrust, sign=np.full(len(thrust.grid), int(positive)))
    found = invert(posed, fixed(2.0, 200.0)).slip
    np.testing.assert_allclose(found, peer.coef_, atol=1e-6 * np.abs(found).max())


def test_draws_have_the_moments_of_emcee():
    """Slip between bounds, its scale and the variance, drawn by an ensemble."""
    emcee = pytest.importorskip("emcee")
    rng = np.random.default_rng(6)
    G = rng.standard_normal((14, 3))
    d = G @ np.array([1.0, 0.1, 0.4]) + 0.5 * rng.standard_normal(14)
    L = np.diag([2.0, 2.0, 2.0]) - np.eye(3, k=1) - np.eye(3, k=-1)
    model = Hierarchy(
        groups_of(G, d, np.zeros(14, dtype=int)),
        np.array([True]),
        L,
        np.zeros(3),
        np.full(3, np.inf),
    )
    chain = sample(model, np.ones(3), 6000, 300, rng)

    def log_density(p):
        slip, noise, scale = p[:3], p[3], p[4]
        if (slip < 0).any() or noise <= 0 or scale <= 0:
            return -np.inf
        misfit = np.sum((d - G @ slip) ** 2) / noise**2 + slip @ L @ slip / scale**2
        return -0.5 * misfit - 14 * np.log(noise) - 3 * np.log(scale)

    sampler = emcee.EnsembleSampler(40, 5, log_density)
    sampler.random_state = np.random.RandomState(0).get_state()
    sampler.run_mcmc(rng.uniform(0.3, 1.5, (40, 5)), 6000)
    few = 40 * 5000 / sampler.get_autocorr_time(quiet=True).max()
    peer = sampler.get_chain(discard=1000, flat=True)
    own = np.column_stack(
        (chain.value, np.sqrt(chain.variance), chain.precision_scale**-0.5)
    )
    for mine, theirs in zip(own.T, peer.T, strict=True):
        # four standard errors of both; shares, as the prior's scale has a long tail
        error = 0.25 * (1 / effective_size(np.log(mine)) + 1 / few)
        for share in (0.25, 0.5, 0.75):
            level = np.quantile(theirs, share)
            assert (mine < level).mean() == pytest.approx(share, abs=4 * error**0.5)
