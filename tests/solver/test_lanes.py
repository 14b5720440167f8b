"""Vector instructions take the entries that are meant, or do not compile."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit
from numba.core.errors import TypingError

from afterslip_solver.backend.base import LANES
from afterslip_solver.backend.cpu.lanes import load, store


@njit
def copied(source, target):
    for k in range(0, target.size, LANES):
        store(target, k, load(source, k))


def test_entries_are_taken_as_they_lie_in_memory():
    source = np.arange(24.0).reshape(2, 3, LANES)
    target = np.zeros_like(source)
    copied(source, target)
    np.testing.assert_array_equal(target, source)


@pytest.mark.parametrize(
    ("source", "target"),
    [
        (np.zeros((2, 3, 8))[:, :, ::2], np.zeros((2, 3, LANES))),
        (np.zeros((2, 3, LANES)), np.zeros((LANES, 3, 2)).T),
        (np.zeros((2, 3, LANES), dtype=np.float32), np.zeros((2, 3, LANES))),
    ],
    ids=["strided source", "transposed target", "other precision"],
)
def test_what_would_take_other_entries_is_not_compiled(source, target):
    with pytest.raises(TypingError, match="lanes of"):
        copied(source, target)
