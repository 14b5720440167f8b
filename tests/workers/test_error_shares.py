"""Errors as shares of the largest displacements, and those of two causes together."""

import numpy as np
import pytest

from afterslip_workers.engines.viscoelastic.error_shares import Errors


def test_error_is_relative_to_the_largest_change_until_then():
    motion = np.zeros((1, 3, 2, 3))
    motion[0, :, 0, 0] = [1.0, 0.4, 0.1]
    error = np.zeros((1, 3, 2))
    error[0, :, 1] = [0.02, 0.01, 0.02]
    # the first point would be out of reach, but is beside a trace
    error[0, :, 0] = 9.0
    found = Errors.of(motion, error, np.zeros((2, 3)), np.array([0.5, 1.5])).largest
    assert found.elastic == pytest.approx(0.02)
    assert found.change == pytest.approx(0.05)


def test_errors_farther_from_traces_are_of_points_that_count():
    motion, error = np.zeros((1, 1, 3, 3)), np.zeros((1, 1, 3))
    motion[0, 0, :, 0] = [1.0, 0.5, 0.2]
    error[0, 0] = [9.0, 0.03, 0.01]
    points = np.zeros((3, 3))
    found = Errors.of(motion, error, points, np.array([0.5, 1.5, 2.5])).largest
    assert (found.elastic, found.farther) == pytest.approx((0.03, 0.01))
    assert found.change is None
    # all are near: there is nothing else to go by
    found = Errors.of(motion, error, points, np.array([0.5, 1.5, 1.5])).largest
    assert found.farther is None


def test_errors_of_mesh_and_walls_add_point_by_point():
    points = np.array([[0.0, 0, 0], [50e3, 0, 0]])
    off = np.full(2, 3.0)
    mesh = Errors(np.array([[[0.008, 0.001]]]), points, off)
    # measured at other points, in another order
    walls = Errors(np.array([[[0.009, 0.003]]]), points[::-1] + 1e3, off)
    both = mesh.beside(walls)
    expected = np.hypot([0.008, 0.001], [0.003, 0.009])
    np.testing.assert_allclose(both.share[0, 0], expected)
    # the largest is smaller than that of the largest ones together
    assert both.largest.elastic < 0.01 < np.hypot(0.008, 0.009)
    # as large as allowed exactly where both are
    edge = Errors(np.array([[[np.sqrt(0.01**2 - 0.003**2), 0.0]]]), points, off)
    left = edge.over_what_is_left(walls, 0.01)
    assert left.largest.elastic == pytest.approx(0.01)


def test_solves_without_numbers_have_no_error_that_meets_an_accuracy():
    motion, error = np.ones((1, 2, 2, 3)), np.full((1, 2, 2), 0.001)
    error[0, 0] = np.nan
    found = Errors.of(motion, error, np.zeros((2, 3)), np.full(2, 3.0)).largest
    assert found.largest == np.inf
    motion[:] = np.nan
    lost = Errors.of(motion, error, np.zeros((2, 3)), np.full(2, 3.0)).largest
    assert lost.elastic == np.inf
    still = Errors.of(
        0.0 * np.ones_like(motion),
        np.zeros((1, 2, 2)),
        np.zeros((2, 3)),
        np.full(2, 3.0),
    )
    assert still.largest.largest == 0.0
