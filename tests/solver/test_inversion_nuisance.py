"""Offsets of one data set each, integrated out, against posteriors that hold them."""

from dataclasses import replace

import numpy as np
import pytest
from summed import groups_of

from afterslip_solver.inversion.hierarchy import Hierarchy, conditional
from afterslip_solver.inversion.marginal import Scales
from afterslip_solver.inversion.nuisance import nuisance_of
from afterslip_solver.inversion.posterior import to_bounds

SLIPS, OFFSETS = 4, 3
N = SLIPS + OFFSETS


def posed(smoothness=None):
    """Two data sets, the first with an offset, the second with offset and rate."""
    rng = np.random.default_rng(5)
    G = np.hstack((rng.standard_normal((40, SLIPS)), np.zeros((40, OFFSETS))))
    dataset = np.repeat([0, 1], 20)
    G[:20, 4], G[20:, 5], G[20:, 6] = 1.0, 1.0, np.arange(20) / 20
    d = G @ np.array([1.0, 0.4, 0.0, 0.8, 0.3, -2.0, 1.0])
    d += np.where(dataset == 0, 0.3, 1.0) * rng.standard_normal(40)
    L = 2.1 * np.eye(SLIPS) - np.eye(SLIPS, k=1) - np.eye(SLIPS, k=-1)
    free = np.full(N, np.inf)
    groups = groups_of(G, d, dataset)
    held = np.array([True, True])
    return Hierarchy(groups, held, L, -free, free, smoothness)


@pytest.mark.parametrize("smoothness", [None, 2.0])
def test_posterior_of_the_scales_is_that_with_offsets_in_it(smoothness):
    whole = posed(smoothness)
    beside = nuisance_of(whole)
    assert beside is not None
    alone = beside.model
    assert [group.count for group in alone.groups] == [19, 18]
    rng = np.random.default_rng(1)
    count = Scales(whole).count
    theta = rng.standard_normal((6, count))
    states = [(Scales(whole).at(t), Scales(alone).at(t)) for t in theta]
    apart = [a.density - b.density for a, b in states]
    # they differ by the determinant of the offsets' matrix, whatever the scales
    assert np.ptp(apart) < 1e-9 * max(abs(a.density) for a, _ in states)
    for a, b in states:
        assert np.allclose(a.mean[:SLIPS], b.mean, rtol=1e-9, atol=1e-12)
        assert np.allclose(a.covariance[:SLIPS, :SLIPS], b.covariance, rtol=1e-9)


def test_offsets_are_drawn_with_the_mean_and_covariance_that_slip_leaves_them():
    model = replace(posed(2.0), free=np.array([False, False]))
    chain, inside = to_bounds(model, np.ones(N), 20000, np.random.default_rng(0))
    given = conditional(model, np.ones(2), 2.0)
    covariance = np.linalg.inv(given.matrix)
    error = np.sqrt(np.diag(covariance) / len(inside))
    assert (np.abs(inside.mean(axis=0) - covariance @ given.right) < 4 * error).all()
    size = np.sqrt(np.outer(np.diag(covariance), np.diag(covariance)))
    # a covariance of n draws errs by at most sqrt(2 / n) of the standard deviations
    found = np.cov(inside.T)
    assert (np.abs(found - covariance) < 5 * np.sqrt(2 / len(inside)) * size).all()
    assert np.array_equal(chain.value, inside), "nothing is bounded"


def test_slip_at_its_bounds_takes_offsets_along_to_the_nearest_point():
    """As where all unknowns are taken to the bounds together."""
    model = replace(posed(2.0), free=np.array([False, False]))
    upper = model.upper.copy()
    upper[:SLIPS] = 0.5
    model = replace(model, upper=upper)
    chain, inside = to_bounds(model, np.full(N, 0.1), 200, np.random.default_rng(0))
    given = conditional(model, np.ones(2), 2.0).matrix
    assert (inside[:, :SLIPS] <= 0.5).all()
    # stationary in the offsets: no gradient of the distance along them
    away = (inside - chain.value) @ given
    assert np.abs(away[:, SLIPS:]).max() < 1e-9 * np.abs(away).max()


def test_offsets_that_two_data_sets_share_stay_in_the_posterior():
    rng = np.random.default_rng(5)
    G = np.hstack((rng.standard_normal((10, 2)), np.ones((10, 1))))
    groups = groups_of(G, rng.standard_normal(10), np.repeat([0, 1], 5))
    free = np.full(3, np.inf)
    assert (
        nuisance_of(Hierarchy(groups, np.array([True, True]), np.eye(2), -free, free))
        is None
    )
