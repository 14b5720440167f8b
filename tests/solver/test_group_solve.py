"""What a run sees of its iterates on the trace."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from afterslip_solver import backend as backends
from afterslip_solver.greens.group_solve import GroupSolve


@pytest.fixture
def run():
    limits: Any = 1e-8, 400, np.array([3, 1, 8]), None, None, None, lambda: None
    return GroupSolve(backends.get("cpu"), *limits)


@pytest.mark.parametrize("n", [1, 2, 3, 7, 16, 50, 1001])
def test_largest_values_are_those_of_all_components(run, n):
    rng = np.random.default_rng(n)
    values = [rng.standard_normal((n, 3, 4)) for _ in range(2)]
    expected = [np.abs(v).max(axis=(0, 1)) for v in values]
    assert np.array_equal(run.largest(values), expected)


def test_largest_of_nothing_is_nothing(run):
    assert np.array_equal(run.largest([np.zeros((0, 3, 4))]), np.zeros((1, 4)))


def test_sizes_are_those_of_weighted_sums(run):
    rng = np.random.default_rng(0)
    values = [rng.standard_normal((5, 3, 4)) for _ in range(3)]
    weights = rng.standard_normal((2, 3, 4))
    weights[1, 0] = 0.0
    sums = np.einsum("kml,mncl->kncl", weights, values)
    expected = np.abs(sums).max(axis=(1, 2))
    np.testing.assert_allclose(run.sizes(weights, values), expected, rtol=1e-14)


def test_trace_goes_to_the_host_and_back(run):
    u = np.random.default_rng(0).standard_normal((9, 3, 4))
    found = run.trace_of(u)
    assert found.shape == (4, 3, 3)
    assert np.array_equal(found[2, 1], u[1, :, 2])
    assert np.array_equal(run.to_trace(found), run.on_trace(u))
