"""The evidence of two models' Green's functions, against integrals done otherwise."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.integrate

from afterslip_solver.inversion import (
    InversionError,
    InversionProblem,
    InversionSettings,
    Laplacian,
    log_bayes_factor,
)

RNG = np.random.default_rng(2)
G = RNG.normal(size=(12, 2))
OTHER = G + 0.25 * RNG.normal(size=(12, 2))
DATA = G @ [0.6, 0.9] + 0.2 * RNG.standard_normal(12)


def pose(G, sign=0, free=False):
    n = G.shape[1]
    return InversionProblem(
        G=G,
        data=DATA,
        sigma=np.full(12, 0.2),
        station=np.repeat(np.arange(4), 3),
        kind=np.full(12, "gnss"),
        grid=np.array([[0, 1, i, 0] for i in range(n)]),
        area=np.ones(n),
        rigidity=np.ones(n),
        sign=np.full(n, sign),
        spacing=np.array([[1.0, 1.0]]),
        open_top=np.array([False]),
        variance_free=np.array([free]),
    )


def log_gaussian(G, variance, tau):
    """Log density of the data with slip integrated out, without signs."""
    L = Laplacian().precision(pose(G).sources)
    covariance = variance * 0.04 * np.eye(12) + G @ np.linalg.inv(tau * L) @ G.T
    _, size = np.linalg.slogdet(covariance)
    return -0.5 * (size + DATA @ np.linalg.solve(covariance, DATA))


def test_without_signs_and_with_given_weights_it_is_that_of_gaussians():
    settings = InversionSettings(smoothness=0.5, draws=8_000, folds=0)
    found = log_bayes_factor(pose(G), pose(OTHER), settings)
    exact = log_gaussian(OTHER, 1.0, 0.5) - log_gaussian(G, 1.0, 0.5)
    assert abs(exact) > 1.0
    assert found.value == pytest.approx(exact, abs=5 * found.error)
    assert found.error < 0.1


def test_signs_are_in_it_exactly():
    L = Laplacian().precision(pose(G).sources)

    def evidence(G):
        def density(b, a):
            slip = np.array([a, b])
            misfit = np.sum((DATA - G @ slip) ** 2) / 0.04
            return np.exp(-0.5 * (misfit + 0.5 * slip @ L @ slip))

        # so that the bound cuts through the posterior
        return scipy.integrate.dblquad(density, 0, 3, 0, 3, epsabs=1e-14)[0]

    turned = [g * [1.0, -1.0] for g in (G, OTHER)]
    settings = InversionSettings(smoothness=0.5, draws=8_000, folds=0)
    for first, second in ((G, OTHER), turned):
        exact = np.log(evidence(second) / evidence(first))
        found = log_bayes_factor(pose(first, 1), pose(second, 1), settings)
        assert found.value == pytest.approx(exact, abs=5 * found.error)
        assert found.error < 0.1 + 0.02 * abs(exact)


def test_unknown_variance_and_smoothness_are_integrated_over():
    def evidence(G):
        # flat priors of sqrt(v) and tau^-1/2, on a grid of their logarithms
        log_v, log_tau = np.linspace(-4, 5, 70), np.linspace(-16, 8, 120)
        table = np.array(
            [
                [
                    log_gaussian(G, np.exp(v), np.exp(t)) + 0.5 * v - 0.5 * t
                    for t in log_tau
                ]
                for v in log_v
            ]
        )
        most = table.max()
        return most + np.log(np.exp(table - most).sum())

    settings = InversionSettings(draws=8_000, folds=0)
    found = log_bayes_factor(pose(G, free=True), pose(OTHER, free=True), settings)
    exact = evidence(OTHER) - evidence(G)
    assert found.value == pytest.approx(exact, abs=4 * found.error + 0.02)
    back = log_bayes_factor(pose(OTHER, free=True), pose(G, free=True), settings)
    assert back.value == pytest.approx(-exact, abs=5 * back.error + 0.02)


def test_models_of_other_data_are_refused():
    other = replace(pose(OTHER), data=DATA + 1.0)
    with pytest.raises(InversionError, match="differ in data"):
        log_bayes_factor(pose(G), other, InversionSettings(draws=16, folds=0))


@pytest.mark.parametrize("place", [0, 1])
def test_models_in_an_uncertain_earth_are_refused(place):
    """A draw of the earth would put one model in the place of the path between both."""
    models = [pose(G), pose(OTHER)]
    models[place] = replace(models[place], changes=0.1 * G[None])
    with pytest.raises(InversionError, match="no evidence where Green's functions"):
        log_bayes_factor(models[0], models[1], InversionSettings(draws=16, folds=0))
