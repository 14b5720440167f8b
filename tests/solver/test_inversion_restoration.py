"""Slip that is known comes back as the resolution matrix says."""

import dataclasses

import numpy as np
import pytest
from test_inversion import build, fixed

from afterslip_solver.inversion import (
    Block,
    InversionError,
    checkerboard,
    invert,
    spike,
    with_data_of,
)


@pytest.fixture(scope="module")
def thrust():
    return build()


def test_checkerboard_has_squares_of_the_allowed_sign(thrust):
    down = dataclasses.replace(thrust, sign=np.where(thrust.grid[:, 1] == 1, -1, 0))
    slip = checkerboard(down, 2, 3.0)
    place = {
        tuple(row): value for row, value in zip(thrust.grid.tolist(), slip, strict=True)
    }
    assert place[0, 0, 0, 0] == place[0, 0, 1, 1] == place[0, 0, 2, 2] == 3.0
    assert place[0, 0, 2, 0] == place[0, 0, 0, 2] == 0.0
    assert place[0, 1, 0, 0] == -3.0


def test_spike_comes_back_as_its_column_of_the_resolution(thrust):
    slip = spike(thrust, 3, 2)
    assert np.count_nonzero(slip) == 2
    out = invert(with_data_of(thrust, slip), fixed(2.0))
    np.testing.assert_allclose(out.slip, out.resolution @ slip, atol=1e-10)
    with pytest.raises(InversionError, match="at 8, 0: the grid ends at 7, 5"):
        spike(thrust, 8, 0)


def test_errors_of_restored_data_have_the_covariance_of_the_data(thrust):
    rows = np.arange(6)
    matrix = 4e-4 * (0.7 * np.ones((6, 6)) + 0.3 * np.eye(6))
    posed = dataclasses.replace(thrust, covariance=(Block(rows, matrix),))
    none = np.zeros(thrust.G.shape[1])
    draws = np.array([with_data_of(posed, none, seed).data for seed in range(3000)])
    found = np.cov(draws[:, :7].T)
    # the error of a covariance of 3000 draws is about its size / sqrt(3000) * 1.4
    np.testing.assert_allclose(found[:6, :6], matrix, atol=4 * 4e-4 * 0.026)
    np.testing.assert_allclose(found[6, :6], 0.0, atol=4 * 4e-4 * 0.026)
