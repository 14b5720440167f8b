"""Data far off: against the minimiser of Huber's loss found by a general method."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.integrate
import scipy.optimize
import scipy.stats

from afterslip_solver.inversion import Block, InversionError, InversionProblem
from afterslip_solver.inversion.normal import independent_rows, quadratics
from afterslip_solver.inversion.robust import (
    CUT_SQUARE,
    KNEE,
    cut,
    huber_weights,
    reweighted,
    robust_weights,
)


def problem(data):
    n = len(data)
    return InversionProblem(
        G=np.column_stack([np.ones(n), np.linspace(-1, 1, n)]),
        data=data,
        sigma=np.full(n, 0.1),
        station=np.arange(n),
        kind=np.full(n, "gnss"),
        grid=np.array([[0, 1, 0, 0], [0, 1, 1, 0]]),
        area=np.ones(2),
        rigidity=np.ones(2),
        sign=np.zeros(2, dtype=np.int64),
        spacing=np.ones((1, 2)),
        open_top=np.array([False]),
    )


def least_squares(posed):
    ((_, design, data),) = independent_rows(posed)
    return np.linalg.lstsq(design, data, rcond=None)[0]


@pytest.fixture
def outliers():
    rng = np.random.default_rng(2)
    data = 2.0 + 3.0 * np.linspace(-1, 1, 60) + rng.normal(size=60) * 0.1
    data[[5, 30, 31]] += [40.0, -25.0, 30.0]
    return problem(data)


def test_weights_lead_to_the_minimiser_of_hubers_loss(outliers):
    every = np.ones(60, dtype=bool)
    weight = robust_weights(outliers, every, lambda p: p.data - p.G @ least_squares(p))
    found = least_squares(reweighted(outliers, weight))
    scale = 1.4826 * np.median(np.abs(outliers.data - outliers.G @ found)) / 0.1

    def loss(a):
        z = np.abs(outliers.data - outliers.G @ a) / 0.1 / scale
        return np.where(z < KNEE, z**2 / 2, KNEE * z - KNEE**2 / 2).sum()

    fine = {"xatol": 1e-8, "fatol": 1e-10}
    best = scipy.optimize.minimize(loss, found, method="Nelder-Mead", options=fine).x
    np.testing.assert_allclose(found, best, atol=2e-3)
    # three of sixty gross errors: least squares is off by metres, this by centimetres
    assert np.abs(found - [2.0, 3.0]).max() < 0.05
    assert np.abs(least_squares(outliers) - [2.0, 3.0]).max() > 0.5


def test_only_rows_that_ask_for_it_weigh_less(outliers):
    some = np.arange(60) < 20
    residual = outliers.data - outliers.G @ [2.0, 3.0]
    weight = huber_weights(outliers, residual, some)
    assert weight[5] < 0.01
    assert (weight[20:] == 1.0).all()


def test_correlated_rows_keep_their_correlation_and_lose_weight(outliers):
    block = Block(np.arange(2), 0.01 * np.array([[1, 0.5], [0.5, 1]]))
    posed = replace(outliers, covariance=(block,))
    weight = np.ones(60)
    weight[0] = 0.25
    found = reweighted(posed, weight)
    np.testing.assert_allclose(
        found.covariance[0].matrix, 0.01 * np.array([[4, 1], [1, 1]])
    )
    assert found.sigma[0] == pytest.approx(0.2)


def test_errors_in_common_are_no_outliers():
    """Against the minimiser of Huber's loss of slip and of the common error's size.

    The common error is of 60 deviations at one end and none at the other, and not of
    the shape of either source.
    """
    n = 60
    rng = np.random.default_rng(3)
    x = np.linspace(-1, 1, n)
    common = np.where(x > 0.5, 6.0, 0.0)[None]
    data = 2.0 + 3.0 * x + rng.normal(size=n) * 0.1 + common[0]
    data[[5, 30]] += [40.0, -25.0]
    posed = replace(problem(data), common=common, variance_free=np.array([False]))

    def fit(p):
        whole = np.linalg.inv(np.diag(p.sigma**2) + p.common.T @ p.common)
        slip = np.linalg.solve(p.G.T @ whole @ p.G, p.G.T @ whole @ p.data)
        return p.data - p.G @ slip

    weight = robust_weights(posed, np.ones(n, dtype=bool), fit)
    design = np.column_stack((posed.G, common[0]))

    def sizes(a):
        return np.abs(data - design @ a) / 0.1

    def loss(a, scale):
        z = sizes(a) / scale
        hubers = np.where(z < KNEE, z**2 / 2, KNEE * z - KNEE**2 / 2).sum()
        return scale**2 * hubers + a[2] ** 2 / 2

    found, fine = np.array([2.0, 3.0, 1.0]), {"xatol": 1e-8, "fatol": 1e-10}
    for _ in range(10):
        scale = 1.4826 * np.median(sizes(found))
        found = scipy.optimize.minimize(
            loss, found, (scale,), "Nelder-Mead", options=fine
        ).x
    limit = KNEE * scale / np.maximum(sizes(found), KNEE * scale)
    np.testing.assert_allclose(weight, limit, atol=0.02)
    assert (weight[[5, 30]] < 0.02).all()
    assert np.median(weight[x > 0.5]) == 1.0


def test_cut_gaussian_data_count_as_many_as_their_mean_square():
    """Against the integral of min(z², knee²) under the Gaussian density."""

    def cut_square(z):
        return min(z * z, KNEE**2) * scipy.stats.norm.pdf(z)

    ends = {"points": (-KNEE, KNEE), "limit": 200}
    expected, _ = scipy.integrate.quad(cut_square, -12.0, 12.0, **ends)
    assert pytest.approx(expected, rel=1e-9) == CUT_SQUARE


def test_data_far_off_count_in_variances_by_the_knee_however_far_they_are(outliers):
    every = np.ones(60, dtype=bool)
    sums = []
    for factor in (1.0, 100.0):
        residual = np.random.default_rng(4).normal(size=60) * 0.1
        residual[[5, 30]] += factor * np.array([4.0, -3.0])
        posed = replace(outliers, data=residual)
        weight = huber_weights(posed, residual, every)
        (cut_sums,) = quadratics(cut(posed, weight, every))
        sums.append(cut_sums.power)
        assert cut_sums.count == pytest.approx(60 * CUT_SQUARE)
    assert sums[1] == pytest.approx(sums[0])
    some = np.arange(60) < 20
    (cut_sums,) = quadratics(cut(posed, np.ones(60), some))
    assert cut_sums.count == pytest.approx(40 + 20 * CUT_SQUARE)


def test_counts_that_are_not_of_every_datum_are_refused(outliers):
    with pytest.raises(InversionError, match="counted has shape"):
        replace(outliers, counted=np.ones(3)).check()
