"""Data that are far off, apart from data that another earth explains."""

import numpy as np

from afterslip_solver.inversion import InversionProblem, InversionSettings
from afterslip_workers.inverting import solving

SIGMA = 0.1


def test_data_that_another_earth_explains_keep_their_weight():
    """Green's functions of a fifth of the stations are off by a half."""
    n, rng = 60, np.random.default_rng(4)
    x = np.linspace(-1, 1, n)
    far = x > 0.6
    G = np.column_stack([np.ones(n), 1 + x])
    # to and fro, so that no slip takes it up
    off = np.where(far, 0.5 * (-1.0) ** np.arange(n), 0.0)
    change = off[:, None] * G
    data = (G + change) @ [2.0, 1.0] + rng.normal(size=n) * SIGMA
    wild = np.array([5, 30, 40])
    data[wild] += [40.0, -25.0, 30.0]
    problem = InversionProblem(
        G=G,
        data=data,
        sigma=np.full(n, SIGMA),
        station=np.arange(n),
        kind=np.full(n, "gnss"),
        grid=np.array([[0, 1, 0, 0], [0, 1, 1, 0]]),
        area=np.ones(2),
        rigidity=np.ones(2),
        sign=np.zeros(2, dtype=np.int64),
        spacing=np.ones((1, 2)),
        open_top=np.array([False]),
        variance_free=np.array([False]),
        changes=change[None],
        rigidity_changes=np.zeros((1, 2)),
    )
    settings = InversionSettings(smoothness=1e-6, draws=200, folds=0)
    weight = solving._robust_weights(problem, settings, np.ones(n, dtype=bool))
    assert (weight[wild] < 0.05).all()
    assert np.median(weight[far]) == 1.0
    assert weight[far].mean() > 0.8
