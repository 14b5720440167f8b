"""Ranges of loops that threads share."""

from __future__ import annotations

import threading
from functools import partial

import numpy as np
import pytest

from afterslip_solver.jit.threads import over, take_rows


@pytest.fixture
def four_cores(monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda _: range(4))


def test_ranges_make_up_the_loop(four_cores):
    count = np.zeros(1000, dtype=int)

    def add(first, last):
        count[first:last] += 1

    over(len(count), add, few=10)
    assert (count == 1).all()


def test_a_loop_within_a_range_has_no_threads_of_its_own(four_cores):
    count, threads = np.zeros((8, 1000), dtype=int), []

    def outer(first, last):
        for row in range(first, last):
            over(1000, partial(inner, row), few=10)

    def inner(row, first, last):
        threads.append((row, threading.get_ident()))
        count[row, first:last] += 1

    over(8, outer, few=1)
    assert (count == 1).all()
    assert len(threads) == 8
    assert threading.get_ident() not in {thread for _, thread in threads}
    threads.clear()
    over(1000, partial(inner, 0), few=10)
    assert len(threads) > 1


@pytest.mark.parametrize("shape", [(50_000,), (50_000, 3), (50_000, 2, 3)])
def test_rows_are_taken_in_any_order(four_cores, shape):
    generator = np.random.default_rng(3)
    source = generator.random(shape)
    for rows in (generator.integers(0, 50_000, 60_000), np.zeros(0, dtype=int)):
        np.testing.assert_array_equal(take_rows(source, rows), source[rows])
