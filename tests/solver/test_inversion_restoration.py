"""Slip that is known comes back as the resolution matrix says."""

import dataclasses

import numpy as np
import pytest
import xarray as xr
from test_inversion import build, fixed

from afterslip.errors import SpecError
from afterslip.restoration import checkerboard, resolution_tests, restore, spike
from afterslip_solver.inversion import Block, KnownSum, invert, with_data_of
from afterslip_workers.inverting.resolution import resolution_length
from afterslip_workers.inverting.uncertainty import about_peak


@pytest.fixture(scope="module")
def thrust():
    return build()


def result_of(problem, out):
    """What a result holds of the matrices."""
    made = xr.Dataset(
        {
            "resolution_matrix": (("source", "true_source"), out.resolution),
            "covariance_matrix": (("source", "true_source"), out.covariance),
        }
    )
    if problem.sign.any():
        made["slip_bounds"] = (("source", "limit"), np.column_stack(problem.bounds))
    return made


def test_checkerboard_has_squares_of_the_allowed_sign(thrust):
    sign = np.where(thrust.grid[:, 1] == 1, -1, 0)
    slip = checkerboard(thrust.grid, sign, 2, 3.0)
    place = {
        tuple(row): value for row, value in zip(thrust.grid.tolist(), slip, strict=True)
    }
    assert place[0, 0, 0, 0] == place[0, 0, 1, 1] == place[0, 0, 2, 2] == 3.0
    assert place[0, 0, 2, 0] == place[0, 0, 0, 2] == 0.0
    assert place[0, 1, 0, 0] == -3.0


def test_spike_comes_back_as_its_column_of_the_resolution(thrust):
    slip = spike(thrust.grid, thrust.sign, 3, 2)
    assert np.count_nonzero(slip) == 2
    out = invert(with_data_of(thrust, slip), fixed(2.0))
    np.testing.assert_allclose(out.slip, out.resolution @ slip, atol=1e-10)
    np.testing.assert_allclose(restore(result_of(thrust, out), slip), out.slip)
    with pytest.raises(SpecError, match="the grid ends at 7,5"):
        spike(thrust.grid, thrust.sign, 8, 0)


def test_bounded_restoration_from_matrices_is_the_bounded_inversion(thrust):
    """No Green's functions there: only matrices of the inversion without bounds."""
    signed = dataclasses.replace(thrust, sign=np.ones(len(thrust.grid), dtype=int))
    slip = spike(thrust.grid, signed.sign, 3, 2)
    out = invert(with_data_of(signed, slip), fixed(2.0))
    assert (out.slip == 0).any()
    found = restore(result_of(signed, out), slip)
    np.testing.assert_allclose(found, out.slip, atol=1e-8)


@pytest.mark.slow
def test_errors_of_a_restoration_have_the_spread_of_inverted_errors(thrust):
    none = np.zeros(thrust.G.shape[1])
    out = invert(thrust, fixed(2.0))
    result = result_of(thrust, out)
    draws = np.array([restore(result, none, seed) for seed in range(300)])
    inverted = np.array(
        [invert(with_data_of(thrust, none, s), fixed(2.0)).slip for s in range(300)]
    )
    # a standard deviation of 300 draws is off by four per cent: 4 of both errors
    ratio = draws.std(axis=0) / inverted.std(axis=0)
    np.testing.assert_allclose(ratio, 1.0, atol=4 * 0.058)


def test_known_sums_are_restored_with_the_slip(thrust):
    size = thrust.area * (thrust.grid[:, 1] == 1)
    known = KnownSum(size, 1.0, 1e-3 * size.sum())
    posed = dataclasses.replace(thrust, known=(known,))
    slip = checkerboard(thrust.grid, thrust.sign, 2)
    out = invert(with_data_of(posed, slip), fixed(2.0))
    np.testing.assert_allclose(out.slip, out.resolution @ slip, atol=1e-8)


def test_share_that_is_recovered_is_one_where_all_comes_back():
    n = 4
    result = xr.Dataset(
        {
            "resolution_matrix": (("source", "true_source"), np.diag([1, 1, 0.5, 0.5])),
            "covariance_matrix": (("source", "true_source"), np.eye(n)),
        }
    )
    tests = {"whole": np.array([1.0, 2, 0, 0]), "half": np.array([0, 0, 3.0, 1])}
    made = resolution_tests(result, tests)
    assert made["test_recovered"].values == pytest.approx([1.0, 0.5])


def test_a_result_without_matrices_says_so():
    with pytest.raises(SpecError, match="is not in the result"):
        restore(xr.Dataset(), np.zeros(3))


def test_resolution_length_is_the_width_of_a_gaussian_row():
    x = np.arange(41) * 1e3
    place = np.column_stack([x, 0 * x, 0 * x])
    apart = x[:, None] - x[None, :]
    # the square of exp(-x^2 / 2 s^2) has the deviation s / sqrt 2
    rows = np.exp(-0.5 * (apart / 4e3) ** 2)
    block = np.zeros((41, 2), dtype=np.int64)
    length = resolution_length(rows, block, place)
    assert length[20] == pytest.approx(4e3 / np.sqrt(2), rel=1e-3)
    assert resolution_length(np.eye(41), block, place).max() == 0.0


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


def flat_fault(slip):
    """Make a result on 21 by 21 nodes of a level fault of 20 km, without sources."""
    x, y = np.meshgrid(np.arange(21) * 1e3, np.arange(21) * 1e3, indexing="ij")
    first = (np.arange(20)[:, None] * 21 + np.arange(20)).ravel()
    corners = np.concatenate(
        [
            np.column_stack([first, first + 21, first + 22]),
            np.column_stack([first, first + 22, first + 1]),
        ]
    )
    node, triangle = ("fault_node",), ("fault_triangle", "corner")
    return xr.Dataset(
        {
            "fault_x": (node, x.ravel()),
            "fault_y": (node, y.ravel()),
            "fault_z": (node, np.zeros(441)),
            "fault_index": (node, np.zeros(441, dtype=int)),
            "fault_triangles": (triangle, corners),
            "fault_slip": (("fault_node", "c"), slip(x.ravel(), y.ravel())),
            "source_fault": ("source", [0, 0]),
            "source_component": ("source", [0, 1]),
            "source_position": (("source", "xyz"), [[9e3, 9e3, 0.0], [9e3, 9e3, 0.0]]),
            "source_area": ("source", [36e6, 64e6]),
        }
    )


def test_the_peak_is_averaged_over_the_length_of_its_source():
    """A cone of 2 m that falls by 0.1 m per km, of dip slip: 8 km by its source."""

    def cone(x, y):
        slip = 2.0 - 1e-4 * np.hypot(x - 10e3, y - 10e3)
        return np.column_stack([0.0 * slip, slip])

    found = flat_fault(cone)
    weight, length = about_peak(found, np.eye(2))
    assert length == 8e3
    assert weight.sum() == pytest.approx(1.0)
    # two thirds of the radius is the mean distance in a disc; nodes are 1 km apart
    mean = weight @ found["fault_slip"].values[:, 1]
    assert mean == pytest.approx(2.0 - 0.1 * 4.0 * 2 / 3, abs=0.02)


def test_the_peak_is_averaged_over_what_the_data_resolve():
    """Two sources of dip slip 10 km apart that share every datum: 2 x 10 / sqrt 2."""
    found = flat_fault(lambda x, y: np.column_stack([0.0 * x, x < 500.0]))
    found["source_component"] = ("source", [1, 1])
    found["source_position"] = (("source", "xyz"), [[0.0, 0, 0], [10e3, 0, 0]])
    _, length = about_peak(found, np.full((2, 2), 0.5))
    assert length == pytest.approx(10e3 * np.sqrt(2))
