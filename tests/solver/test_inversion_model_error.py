"""Errors of the predictions stand beside those of the data."""

import dataclasses
import tracemalloc

import numpy as np
import pytest
from test_inversion import build

from afterslip_solver.inversion import (
    Block,
    InversionError,
    InversionSettings,
    ModelError,
    invert,
    moment_parts,
    with_model_error,
)
from afterslip_solver.inversion.normal import quadratics

QUICK = InversionSettings(draws=300, folds=0)


@pytest.fixture(scope="module")
def thrust():
    return build(n_station=12, sign=1)


def covariance_of(problem):
    whole = np.diag(problem.sigma**2)
    for block in problem.covariance:
        whole[np.ix_(block.rows, block.rows)] = block.matrix
    return whole + problem.common.T @ problem.common if problem.common.size else whole


def in_one_matrix(problem):
    """Return the same problem with one dense covariance of all rows."""
    whole = covariance_of(problem)
    return dataclasses.replace(
        problem,
        sigma=np.sqrt(np.diag(whole)),
        covariance=(Block(np.arange(len(whole)), whole),),
        common=np.zeros((0, 0)),
    )


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


@pytest.fixture
def differing(thrust):
    """Errors in common of all rows, beside correlated pixels and an offset."""
    n = len(thrust.data)
    rng = np.random.default_rng(4)
    pixels = Block(np.arange(3, 9), 0.02**2 * (0.5 * np.eye(6) + 0.5))
    posed = dataclasses.replace(
        thrust,
        sigma=np.full(n, 0.02),
        covariance=(pixels,),
        nuisance=np.ones((n, 1)),
    )
    error = ModelError(
        np.zeros((1, n)), np.arange(n), 0.03 * rng.standard_normal((3, n))
    )
    return with_model_error(posed, error)


@pytest.mark.parametrize("share", [1.0, 0.6])
def test_errors_in_common_weigh_as_their_dense_covariance_does(differing, share):
    """Also where some rows are held out, of which nothing must be said."""
    rows = np.random.default_rng(5).random(len(differing.data)) < share
    (found,) = quadratics(differing, rows)
    (expected,) = quadratics(in_one_matrix(differing), rows)
    for name in ("matrix", "right", "power"):
        ours, theirs = getattr(found, name), getattr(expected, name)
        size = np.abs(theirs).max()
        np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-10 * size)
    assert found.count == expected.count


def test_errors_in_common_give_the_slip_and_scores_of_their_dense_covariance(differing):
    settings = InversionSettings(choice="cross_validation", folds=3, draws=0)
    ours, theirs = (invert(p, settings) for p in (differing, in_one_matrix(differing)))
    assert ours.smoothness == pytest.approx(theirs.smoothness, rel=1e-9)
    tables = ours.cross_validation, theirs.cross_validation
    assert tables[0] is not None
    assert tables[1] is not None
    np.testing.assert_allclose(tables[0].fold_scores, tables[1].fold_scores, 1e-6)
    np.testing.assert_allclose(ours.slip, theirs.slip, atol=1e-6)
    np.testing.assert_allclose(ours.covariance, theirs.covariance, atol=1e-9)
    assert ours.fit.chi_square == pytest.approx(theirs.fit.chi_square, rel=1e-9)


def test_errors_in_common_need_no_matrix_of_data_by_data():
    """Of 5,000 data it would take 200 MB; of 100,000, 80 GB."""
    posed = build(n_station=1700, sign=0)
    n = len(posed.data)
    error = ModelError(np.zeros((1, n)), np.arange(n), np.full((2, n), 0.01))
    tracemalloc.start()
    quadratics(with_model_error(posed, error))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.25 * 8 * n**2


def test_errors_in_common_are_refused_beside_variances_to_be_estimated(differing):
    free = dataclasses.replace(differing, variance_free=np.array([True]))
    with pytest.raises(InversionError, match="variances that are fixed"):
        free.check()


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
