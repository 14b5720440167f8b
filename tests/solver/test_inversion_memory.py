"""The memory that an inversion is said to need, beside what it takes."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from afterslip_solver.inversion import (
    Block,
    InversionProblem,
    InversionSettings,
    invert,
)
from afterslip_solver.inversion.memory import Sizes, memory_needed


def problem(along, down, stations, changes=0, block=0):
    """Pose a problem of unknowns that the data see alike, with random Green's ones."""
    rng = np.random.default_rng(0)
    n, rows = 2 * along * down, 3 * stations
    G = rng.standard_normal((rows, n))
    sigma = np.full(rows, 0.1)
    posed = InversionProblem(
        G=G,
        data=G @ np.ones(n) + 0.1 * rng.standard_normal(rows),
        sigma=sigma,
        station=np.repeat(np.arange(stations), 3),
        kind=np.full(rows, "gnss"),
        grid=np.array(
            [[0, c, i, j] for c in (0, 1) for i in range(along) for j in range(down)]
        ),
        area=np.full(n, 1e8),
        rigidity=np.full(n, 4e10),
        sign=np.zeros(n, dtype=np.int64),
        spacing=np.array([[1e4, 1e4]]),
        open_top=np.array([False]),
    )
    if changes:
        posed = replace(
            posed,
            changes=0.01 * rng.standard_normal((changes, rows, n)),
            rigidity_changes=np.zeros((changes, n)),
        )
    if block:
        matrix = np.diag(sigma[:block] ** 2)
        posed = replace(posed, covariance=(Block(np.arange(block), matrix),))
    return posed


@pytest.mark.parametrize(
    ("shape", "changes", "block", "largest"),
    [((9, 8, 60), 0, 0, "unknowns"), ((4, 3, 1500), 0, 0, "data"),
     ((3, 3, 500), 5, 0, "other earths"), ((3, 3, 300), 0, 900, "correlated errors")],
)  # fmt: skip
def test_an_inversion_takes_no_more_than_is_said_and_not_far_less(
    shape, changes, block, largest
):
    along, down, stations = shape
    sizes = Sizes(
        rows=3 * stations,
        sources=2 * along * down,
        correlated=(block,) if block else (),
        changes=changes,
    )
    tracemalloc.start()
    try:
        posed = problem(along, down, stations, changes, block)
        invert(posed, InversionSettings())
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    said = memory_needed(sizes)
    assert most < sum(said.values()) < 3 * most
    assert max(said, key=lambda part: said[part]) == largest
