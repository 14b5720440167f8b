"""Data far off neither spoil slip nor widen what the others say of it."""

import numpy as np
import pytest

from afterslip_solver.inversion import InversionProblem, InversionSettings
from afterslip_workers.inverting.solving import _far_off

N_STATION, N_SOURCE, SIGMA, TRIALS = 30, 6, 0.002, 40


def posed(data, G):
    n = len(data)
    return InversionProblem(
        G=G,
        data=data,
        sigma=np.full(n, SIGMA),
        station=np.repeat(np.arange(N_STATION), 3),
        kind=np.full(n, "gnss"),
        grid=np.array([[0, c, k, 0] for c in (0, 1) for k in range(3)]),
        area=np.full(N_SOURCE, 1e9),
        rigidity=np.full(N_SOURCE, 3e10),
        sign=np.zeros(N_SOURCE, dtype=np.int64),
        spacing=np.array([[3e4, 3e4]]),
        open_top=np.array([True]),
    )


def trials(blunder, *, robust, **settings):
    """Share of 95 % intervals that hold, rms error in m and factors of variances."""
    asked = InversionSettings(folds=0, draws=300, **settings)
    held, error, factor = [], [], []
    for seed in range(TRIALS):
        rng = np.random.default_rng(seed)
        G = 0.1 * rng.normal(size=(3 * N_STATION, N_SOURCE))
        slip = rng.normal(size=N_SOURCE)
        data = G @ slip + rng.normal(0, SIGMA, len(G))
        data[rng.choice(len(G), 3, replace=False)] += blunder * rng.choice([-1, 1], 3)
        found, _ = _far_off(posed(data, G), asked, np.full(len(G), robust))
        assert found.posterior is not None
        low, high = found.posterior.interval()
        held.append((low <= slip) & (slip <= high))
        error.append(found.slip - slip)
        factor.append(found.estimated_variance[0])
    return np.mean(held), float(np.sqrt(np.mean(np.square(error)))), np.median(factor)


@pytest.mark.parametrize("settings", [{}, {"smoothness": 1e-3}])
def test_intervals_and_slip_are_those_of_data_without_blunders(settings):
    """Three of 90 data are off by nothing, 100 and 1000 standard deviations."""
    _, usual, plain = trials(0.0, robust=False, **settings)
    for blunder in (0.0, 0.2, 2.0):
        held, error, factor = trials(blunder, robust=True, **settings)
        # 240 intervals of 95 %
        assert 0.88 <= held <= 0.98, blunder
        assert error < 1.5 * usual, blunder
        # a blunder counts by the knee: three add some percent each
        assert factor == pytest.approx(plain, rel=0.1 if blunder == 0.0 else 0.35)


def test_without_robust_data_sets_nothing_is_cut():
    _, error, factor = trials(2.0, robust=False)
    assert factor > 1e3
    assert error > 0.01
