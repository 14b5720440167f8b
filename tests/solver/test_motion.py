"""How far the surface has moved since the last iteration, on the CPU."""

from __future__ import annotations

import numpy as np
import pytest

from afterslip_solver import backend as backends


@pytest.mark.parametrize("with_correction", [False, True])
def test_the_largest_motion_is_found_and_the_place_stored(with_correction):
    device, rng = backends.get("cpu"), np.random.default_rng(4)
    u = rng.standard_normal((50, 3, 4))
    x = rng.standard_normal((50, 3, 4), np.float32)
    factor = np.array([1.0, -1e3, 0.5, 2.0])
    rows = rng.permutation(50)[:20]
    before = rng.standard_normal((20, 3, 4))
    stored = before.copy()
    now = (u + factor * x if with_correction else u)[rows]
    found = device.moved(u, x if with_correction else None, factor, rows, stored)
    expected = [np.abs(v).max(axis=(0, 1)) for v in (now - before, now)]
    np.testing.assert_allclose(found, expected, rtol=1e-14)
    np.testing.assert_allclose(stored, now, rtol=1e-14)


def test_a_motion_that_is_no_number_shows():
    device = backends.get("cpu")
    u, before = np.zeros((3, 3, 4)), np.zeros((3, 3, 4))
    u[1, 2, 1], u[0, 0, 3] = np.nan, -2.0
    found = device.moved(u, None, None, np.arange(3), before)
    np.testing.assert_array_equal(found, 2 * [[0.0, np.nan, 0.0, 2.0]])
