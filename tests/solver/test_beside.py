"""Two threads solve on one model, as one after the other would."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from afterslip_common.terms import YEAR
from afterslip_solver.greens import prepare
from afterslip_solver.model import SolverSettings

BACKENDS = ["cpu", pytest.param("gpu", marks=pytest.mark.gpu)]
HALF, LONG = 0.5 * YEAR, 30 * YEAR
SCHEMES = [
    SolverSettings(times=(0.0, HALF), until=HALF),
    SolverSettings(times=(0.0, LONG), until=LONG),
    SolverSettings(times=(0.0, HALF), until=HALF, integrator="stepping", step=HALF / 2),
]


def slips(small, model, count):
    """Slip of some groups, no two of them alike."""
    patch = small.patch_slip(model.faults["main"])
    return [(1.0 + 0.5 * k) * np.roll(patch, k, axis=0) for k in range(count)]


@pytest.mark.parametrize("settings", SCHEMES)
@pytest.mark.parametrize("backend", BACKENDS)
def test_twin_that_solves_at_the_same_time_changes_nothing(small, backend, settings):
    model = small.box_model(viscosity=(1e18, 1e18))
    prepared = prepare(model, settings, backend)
    groups = slips(small, model, 4)
    twin = prepared.twin()
    both = threading.Barrier(2)

    def several(own, chosen):
        both.wait(20)
        return [own.solve(slip, model.surface.nodes) for slip in chosen]

    with ThreadPoolExecutor(2) as threads:
        halves = (prepared, groups[:2]), (twin, groups[2:])
        found = list(threads.map(lambda a: several(*a), halves))
    # afterwards: what is made by the first solve was made by two at a time
    alone = [prepared.solve(slip, model.surface.nodes) for slip in groups]
    for one, other in zip(alone, [*found[0], *found[1]], strict=True):
        assert other.outcome == "converged"
        # sums on a device are added in any order
        scale = np.abs(one.response).max()
        limit = 0.0 if backend == "cpu" else 1e-6 * scale
        assert np.abs(one.response - other.response).max() <= limit
        assert abs(one.iterations - other.iterations) <= (backend == "gpu")
