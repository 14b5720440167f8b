"""An uncertain earth is drawn with the slip."""

import dataclasses

import numpy as np
import pytest
from test_inversion import build

from afterslip_solver.inversion import InversionSettings, invert, moment_parts
from afterslip_solver.inversion.earths import bilinear_groups, with_earths
from afterslip_solver.inversion.normal import quadratics

ONE = InversionSettings(smoothness=0.2, draws=4000, folds=0)


@pytest.fixture(scope="module")
def thrust():
    return build(n_station=12, sign=0)


def of_one_source(problem, change, truth=2.0, sigma=0.05):
    """One unknown, whose Green's function one thing changes; errors as stated."""
    keep = np.arange(problem.G.shape[1]) == 5
    names = ("area", "rigidity", "sign")
    part = {name: getattr(problem, name)[keep] for name in names}
    G = problem.G[:, keep] / np.abs(problem.G[:, keep]).max()
    rng = np.random.default_rng(2)
    return dataclasses.replace(
        problem,
        G=G,
        data=truth * G[:, 0] + sigma * rng.standard_normal(len(G)),
        sigma=np.full(len(G), sigma),
        grid=np.zeros((1, 4), dtype=np.int64),
        variance_free=np.array([False]),
        changes=change * (0.7 * G + 0.3 * np.roll(G, 1))[None],
        rigidity_changes=np.zeros((1, 1)),
        **part,
    )


def integrated(problem, smoothness):
    """Mean and deviation of slip by quadrature: covariance of the data by slip."""
    grid = np.linspace(0.0, 4.0, 4001)
    own = InversionSettings().regulariser.precision(problem.sources)
    roughness = float(own[0, 0])
    log = np.empty(len(grid))
    for k, slip in enumerate(grid):
        part = problem.changes[0, :, 0] * slip
        whole = np.diag(problem.sigma**2) + np.outer(part, part)
        rest = problem.data - problem.G[:, 0] * slip
        log[k] = -0.5 * (
            rest @ np.linalg.solve(whole, rest) + np.linalg.slogdet(whole)[1]
        )
        log[k] -= 0.5 * smoothness * roughness * slip**2
    weight = np.exp(log - log.max())
    weight /= weight.sum()
    mean = weight @ grid
    return mean, np.sqrt(weight @ (grid - mean) ** 2)


def drawn(problem):
    found = invert(problem, ONE).posterior
    assert found is not None
    return found


@pytest.mark.parametrize("change", [0.03, 0.06])
def test_slip_has_the_posterior_of_a_covariance_that_depends_on_slip(thrust, change):
    """To 4000 draws' error of the mean and deviation, were 300 independent."""
    posed = of_one_source(thrust, change)
    mean, sigma = integrated(posed, 0.2)
    posterior = drawn(posed)
    assert abs(posterior.slip.mean() - mean) < 3.0 * sigma / np.sqrt(300)
    assert posterior.slip.std() == pytest.approx(sigma, rel=3.0 / np.sqrt(600))
    without = dataclasses.replace(posed, changes=np.zeros((0, 0, 0)))
    assert drawn(without).slip.std() < 0.8 * sigma


def test_sums_of_rows_are_those_of_the_changed_earth(thrust):
    rng = np.random.default_rng(0)
    changes = 0.1 * thrust.G * rng.standard_normal((3, 1, 1))
    nuisance = np.ones((len(thrust.data), 1))
    posed = dataclasses.replace(thrust, changes=changes, nuisance=nuisance)
    earth = rng.standard_normal(3)
    (found,) = (group.at(earth) for group in bilinear_groups(posed))
    there = dataclasses.replace(posed, G=posed.G + np.tensordot(earth, changes, 1))
    (expected,) = quadratics(there)
    np.testing.assert_allclose(found.matrix, expected.matrix, rtol=1e-9, atol=1e-6)
    np.testing.assert_allclose(found.right, expected.right, rtol=1e-9, atol=1e-6)


def test_draws_of_the_moment_have_the_rigidity_of_their_earth(thrust):
    slip = np.ones((2, thrust.G.shape[1]))
    posed = dataclasses.replace(
        thrust,
        changes=np.zeros((1, *thrust.G.shape)),
        rigidity_changes=0.2 * thrust.rigidity[None],
    )
    moment = moment_parts(posed, slip, np.array([[0.0], [1.0]])).sum(axis=1)
    assert moment[1] == pytest.approx(1.2 * moment[0])


def test_the_chosen_slip_counts_the_changes_once(thrust):
    slip = np.full(thrust.G.shape[1], 0.5)
    posed = dataclasses.replace(thrust, changes=0.1 * thrust.G[None])
    changed = with_earths(posed, slip)
    assert not changed.changes.size
    assert not changed.covariance
    part = 0.1 * thrust.G @ slip
    np.testing.assert_allclose(changed.common, part[None], rtol=1e-12)
    deviation = np.sqrt(thrust.sigma**2 + part**2)
    np.testing.assert_allclose(changed.deviation, deviation, rtol=1e-12)
    assert np.isfinite(invert(posed, InversionSettings(draws=100, folds=0)).slip).all()
