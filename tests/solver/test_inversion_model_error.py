"""Errors of the predictions stand beside those of the data."""

import dataclasses

import numpy as np
import pytest
from test_inversion import build

from afterslip_solver.inversion import (
    Block,
    InversionSettings,
    ModelError,
    invert,
    moment_parts,
    with_model_error,
)

QUICK = InversionSettings(draws=300, folds=0)


@pytest.fixture(scope="module")
def thrust():
    return build(n_station=12, sign=1)


def covariance_of(problem):
    whole = np.diag(problem.sigma**2)
    for block in problem.covariance:
        whole[np.ix_(block.rows, block.rows)] = block.matrix
    return whole


def test_rows_of_one_error_are_correlated_and_others_are_not(thrust):
    n = len(thrust.data)
    sigma = np.random.default_rng(0).uniform(0.01, 0.05, (2, n))
    shared = np.arange(n)
    shared[7] = shared[1]
    shared[20] = shared[1]
    dataset = np.zeros(n, dtype=np.int64)
    dataset[20] = 1  # another data set: apart
    corner = np.array([[1.0, 0.4], [0.4, 1.0]]) * 0.02**2
    block = Block(np.array([7, 8]), corner)
    posed = dataclasses.replace(
        thrust,
        sigma=np.full(n, 0.02),
        covariance=(block,),
        dataset=dataset,
        station=np.where(np.arange(n) == 8, thrust.station[7], thrust.station),
    )
    changed = with_model_error(posed, ModelError(sigma, shared))
    changed.check()
    expected = covariance_of(posed) + np.diag((sigma**2).sum(axis=0))
    expected[1, 7] = expected[7, 1] = sigma[:, 1] @ sigma[:, 7]
    np.testing.assert_allclose(covariance_of(changed), expected, atol=1e-15)
    assert not changed.free_variances.any()


def test_scenes_of_pixels_stay_apart(thrust):
    n = len(thrust.data)
    scenes = [np.arange(0, 6), np.arange(6, 12)]
    matrix = 0.02**2 * (0.5 * np.eye(6) + 0.5)
    posed = dataclasses.replace(
        thrust,
        sigma=np.full(n, 0.02),
        station=np.arange(n) % 6,
        covariance=tuple(Block(rows, matrix) for rows in scenes),
    )
    shared = np.arange(n) % 6
    changed = with_model_error(posed, ModelError(np.full((1, n), 0.03), shared))
    assert [block.rows.tolist() for block in changed.covariance[:2]] == [
        rows.tolist() for rows in scenes
    ]
    expected = matrix + 0.03**2 * np.eye(6)
    np.testing.assert_allclose(changed.covariance[0].matrix, expected, atol=1e-15)


def test_differences_to_other_models_are_a_covariance_of_all_rows(thrust):
    n = len(thrust.data)
    difference = 0.02 * np.random.default_rng(1).standard_normal((3, n))
    error = ModelError(np.zeros((1, n)), np.arange(n), difference)
    changed = with_model_error(thrust, error)
    changed.check()
    expected = covariance_of(thrust) + difference.T @ difference
    np.testing.assert_allclose(covariance_of(changed), expected, atol=1e-15)


def test_intervals_widen_with_errors_that_residuals_do_not_show(thrust):
    """A fixed misfit would let one common factor of the variances take them back."""
    sigma = 0.3 * np.abs(thrust.data)[None]
    shared = np.arange(len(thrust.data))
    widths = []
    for factor in (0.0, 1.0, 3.0):
        posed = with_model_error(thrust, ModelError(factor * sigma, shared))
        posterior = invert(posed, QUICK).posterior
        assert posterior is not None
        draws = posterior.slip
        widths.append(float(moment_parts(thrust, draws).sum(axis=1).std()))
    assert widths[0] < 0.8 * widths[1]
    assert widths[1] < 0.8 * widths[2]
