"""Draws of slip without bounds, and of scales, against integration and Gibbs steps."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.stats
from summed import groups_of

from afterslip_solver.inversion import marginal
from afterslip_solver.inversion.hierarchy import (
    Hierarchy,
    effective_size,
    sample,
)
from afterslip_solver.inversion.marginal import Scales, draw_free

INF = np.inf


def drawn(model, draws, seed=0):
    """Slip, variances and the prior's precision of draws."""
    rng = np.random.default_rng(seed)
    start = np.ones(len(model.lower))
    found = [
        (value, state.variance, state.tau)
        for state, value in draw_free(model, start, draws, rng)
    ]
    return tuple(np.array(column) for column in zip(*found, strict=True))


def one_set(rng):
    """Twelve data, three slips, one variance; the data and the matrices too."""
    G = rng.standard_normal((12, 3))
    d = G @ np.array([1.0, -0.5, 0.3]) + 0.7 * rng.standard_normal(12)
    L = np.diag([1.0, 2.0, 0.5])
    free = np.full(3, INF)
    groups = groups_of(G, d, np.zeros(12, dtype=int))
    return G, d, L, Hierarchy(groups, np.array([True]), L, -free, free)


def many_scales(rng, smoothness=None):
    """Two data sets, an offset, and a known sum."""
    G = np.hstack((rng.standard_normal((30, 4)), np.ones((30, 1))))
    d = G @ np.array([1.0, 0.4, 0.0, 0.8, 0.3])
    dataset = np.repeat([0, 1], 15)
    d += np.where(dataset == 0, 0.3, 1.0) * rng.standard_normal(30)
    known = np.array([[1.0, 1.0, 1.0, 1.0, 0.0]]) / 0.1
    groups = groups_of(
        np.vstack((G, known)), np.append(d, 2.2 / 0.1), np.append(dataset, 2)
    )
    L = 2.1 * np.eye(4) - np.eye(4, k=1) - np.eye(4, k=-1)
    free = np.full(5, INF)
    held = np.array([True, True, False])
    return Hierarchy(groups, held, L, -free, free, smoothness, sums=1)


def test_scales_and_slip_have_the_posterior_that_integration_gives():
    """Without signs slip integrates out: v and tau are left, on a grid."""
    G, d, L, model = one_set(np.random.default_rng(2))
    slip, variance, tau = drawn(model, 6000)
    sv, st = np.meshgrid(np.linspace(0.05, 5, 250), np.linspace(0.02, 60, 1500))
    values, vectors = np.linalg.eigh(G @ np.linalg.inv(L) @ G.T)
    turned = vectors.T @ d
    spread = sv[..., None] ** 2 + st[..., None] ** 2 * values
    log = -0.5 * (np.log(spread) + turned**2 / spread).sum(axis=-1)
    weight = np.exp(log - log.max())
    weight /= weight.sum()
    # the means of slip at each point of the grid: tau^-1 L^-1 G' C^-1 d
    gain = np.linalg.inv(L) @ G.T @ vectors
    means = st[..., None] ** 2 * ((turned / spread) @ gain.T)
    expected = (weight[..., None] * means).sum(axis=(0, 1))
    for k in range(3):
        few = effective_size(slip[:, k])
        limit = 4 * slip[:, k].std() / np.sqrt(few)
        assert slip[:, k].mean() == pytest.approx(expected[k], abs=limit)
    for found, grid, axis in (
        (np.sqrt(variance[:, 0]), sv[0], 0),
        (1 / np.sqrt(tau), st[:, 0], 1),
    ):
        few = effective_size(np.log(found))
        assert few > 1500
        marginal_of = np.cumsum(weight.sum(axis=axis))
        for share in (0.1, 0.25, 0.5, 0.75, 0.9):
            at = min(int(np.searchsorted(marginal_of, share)), len(grid) - 1)
            exact = marginal_of[at]
            below = (found < grid[at] + 0.5 * (grid[1] - grid[0])).mean()
            limit = 4 * np.sqrt(exact * (1 - exact) / few)
            assert below == pytest.approx(exact, abs=limit)


@pytest.mark.parametrize("smoothness", [None, 0.7])
def test_draws_agree_with_gibbs_steps_of_the_same_posterior(smoothness):
    model = many_scales(np.random.default_rng(4), smoothness)
    slip, variance, tau = drawn(model, 5000)
    chain = sample(model, np.ones(5), 12_000, 500, np.random.default_rng(1))
    ours = np.column_stack((slip, np.log(variance[:, :2]), np.log(tau)))
    theirs = np.column_stack(
        (chain.value, np.log(chain.variance[:, :2]), np.log(chain.precision_scale))
    )
    assert (variance[:, 2] == 1.0).all()
    for mine, peer in zip(ours.T, theirs.T, strict=True):
        few = 1 / (1 / effective_size(mine) + 1 / effective_size(peer))
        for share in (0.1, 0.5, 0.9):
            below = (mine < np.quantile(peer, share)).mean()
            limit = 4 * np.sqrt(share * (1 - share) / few)
            assert below == pytest.approx(share, abs=limit)


@pytest.mark.parametrize("smoothness", [None, 0.7])
def test_slope_of_the_density_is_its_derivative(smoothness):
    scales = Scales(many_scales(np.random.default_rng(5), smoothness))
    theta = np.linspace(-0.4, 0.5, scales.count)
    slope = scales.slope(scales.at(theta))
    for k, one in enumerate(np.eye(scales.count)):
        ends = [scales.at(theta + h * one).density for h in (-1e-4, 1e-4)]
        assert slope[k] == pytest.approx((ends[1] - ends[0]) / 2e-4, rel=1e-6)
    state, _ = scales.mode(theta)
    assert np.abs(scales.slope(state)).max() < 0.5


def test_truths_rank_evenly_among_draws():
    """Simulation-based calibration (Talts et al. 2018, arXiv:1804.06788).

    The sampler's prior of the scales has no finite integral: truths come from another
    one and draws are weighed by the ratio of both: the weight below the truth is then
    uniform over truths.
    """
    rng = np.random.default_rng(8)
    G, _, L, posed = one_set(rng)
    root = np.linalg.cholesky(np.linalg.inv(L))
    middle, width = np.array([-0.5, -0.8]), 0.8  # of log v and log tau
    ranks = []
    for seed in range(100):
        scales = middle + width * rng.standard_normal(2)
        v, tau = np.exp(scales)
        truth = root @ rng.standard_normal(3) / np.sqrt(tau)
        data = G @ truth + np.sqrt(v) * rng.standard_normal(len(G))
        model = replace(posed, groups=groups_of(G, data, np.zeros(12, dtype=int)))
        slip, variance, precision = drawn(model, 100, seed)
        logs = np.log(np.column_stack((variance[:, 0], precision)))
        # flat in standard deviations of data and slip: v^1/2 and tau^-1/2 in logarithms
        away = -0.5 * (((logs - middle) / width) ** 2).sum(axis=1)
        away -= logs @ [0.5, -0.5]
        weight = np.exp(away - away.max())
        exact = np.concatenate((truth, scales))
        below = np.column_stack((slip, logs)) < exact
        ranks.append(weight @ below / weight.sum())
    for rank in np.array(ranks).T:
        # one of five tests on a fixed seed
        assert scipy.stats.kstest(rank, "uniform").pvalue > 0.002


def test_slips_that_share_scales_have_the_same_posterior(monkeypatch):
    *_, model = one_set(np.random.default_rng(2))
    alone, _, tau = drawn(model, 5000)
    monkeypatch.setattr(marginal, "MANY_UNKNOWNS", 2)
    shared, _, repeated = drawn(model, 5000, seed=1)
    assert len(np.unique(repeated)) < 0.3 * len(np.unique(tau))
    for mine, peer in zip(alone.T, shared.T, strict=True):
        few = 1 / (1 / effective_size(mine) + 1 / effective_size(peer))
        for share in (0.1, 0.5, 0.9):
            below = (mine < np.quantile(peer, share)).mean()
            limit = 4 * np.sqrt(share * (1 - share) / few)
            assert below == pytest.approx(share, abs=limit)


def test_unknown_that_nothing_determines_is_refused():
    *_, model = one_set(np.random.default_rng(2))
    blind = Hierarchy(
        groups_of(np.zeros((4, 3)), np.ones(4), np.zeros(4, dtype=int)),
        model.free, np.zeros((3, 3)), model.lower, model.upper, 1.0,
    )  # fmt: skip
    with pytest.raises(np.linalg.LinAlgError):
        drawn(blind, 3)
