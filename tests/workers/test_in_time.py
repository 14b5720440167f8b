"""Slip through time against the convolution written out, and against elastic rock."""

from typing import cast

import numpy as np
import pytest
import xarray as xr

from afterslip.archive import GreensStore
from afterslip.readers.rows import Rows
from afterslip_common.terms import YEAR
from afterslip_solver.inversion import InversionProblem, InversionSettings, invert
from afterslip_workers.inverting.in_time import (
    designs,
    lag_rule,
    series,
    solve_in_time,
)

TAU = 1.5 * YEAR
ENDS = [0.1 * YEAR, 0.5 * YEAR, 3.0 * YEAR]
N_STATION, N_SOURCE = 14, 4
RNG = np.random.default_rng(12)
ELASTIC = RNG.normal(size=(N_SOURCE, N_STATION, 3))
RELAXED = 0.8 * RNG.normal(size=(N_SOURCE, N_STATION, 3))


def step(times):
    """Response to a step of slip: (n_source, n_time, n_station, 3)."""
    grown = 1.0 - np.exp(-np.asarray(times) / TAU)
    return ELASTIC[:, None] + grown[None, :, None, None] * RELAXED[:, None]


class FakeStore:
    """Curves with one relaxation time; stations differ by x."""

    dataset = xr.Dataset({"response": ("source", np.zeros(N_SOURCE))})

    def sampler(self, x, y):
        return lambda times: step(times)[:, :, np.asarray(x, dtype=int)]


STORE = cast("GreensStore", FakeStore())


def rows(epochs):
    """All components of all stations at epochs in yr."""
    n = N_STATION * 3
    station = np.tile(np.repeat(np.arange(N_STATION), 3), len(epochs))
    component = np.tile(np.arange(3), N_STATION * len(epochs))
    count = len(station)
    return Rows(
        stations=tuple(f"S{k}" for k in range(N_STATION)),
        x=np.arange(N_STATION, dtype=float),
        y=np.zeros(N_STATION),
        station=station,
        component=component,
        direction=np.eye(3)[component],
        value=np.zeros(count),
        sigma=np.full(count, 0.01),
        kind=np.full(count, "gnss"),
        dataset=np.full(count, "d"),
        epoch=np.repeat(epochs, n) * YEAR,
        line=np.arange(count),
        given=np.ones(count, dtype=bool),
    )


def convolved(slip, time, n=4000):
    """Motion (n_station, 3) of many small steps of slip, one after the other.

    Midpoint rule: its error is the square of a step over TAU, here below 1e-6.
    """
    moved = np.einsum("s,sxc->xc", slip[0], step([time])[:, 0])
    for start, end, block in zip([0.0, *ENDS[:-1]], ENDS, slip[1:], strict=True):
        at = start + (np.arange(n) + 0.5) * (end - start) / n
        at = at[at < time]
        if len(at):
            response = step(time - at).sum(axis=1) / n
            moved = moved + np.einsum("s,sxc->xc", block, response)
    return moved


SLIP = np.array([[1.0, 2.0, 0.5, 1.5], [0.2, 0.1, 0.3, 0.2],
                 [0.3, 0.2, 0.1, 0.4], [0.5, 0.1, 0.2, 0.6]])  # fmt: skip


def test_response_to_increments_is_the_convolution_with_every_earlier_one():
    epochs = np.array([0.0, 0.05, 0.3, 0.5, 2.0, 5.0])
    data = rows(epochs)
    G, elastic = designs(STORE, data, ENDS)
    found = np.einsum("rbs,bs->r", G, SLIP).reshape(len(epochs), N_STATION, 3)
    expected = [convolved(SLIP, t * YEAR) for t in epochs]
    # the last partial step of the midpoint rule is 1/4000 of an increment
    np.testing.assert_allclose(found, expected, atol=2e-3)
    past = np.einsum("rbs,bs->r", elastic, SLIP).reshape(len(epochs), -1, 3)
    np.testing.assert_allclose(
        past[-1], np.einsum("s,sxc->xc", SLIP.sum(axis=0), ELASTIC)
    )
    np.testing.assert_allclose(past[0], np.einsum("s,sxc->xc", SLIP[0], ELASTIC))


def test_integral_of_one_relaxation_is_exact():
    """In closed form: u(t) = 1 - exp(-t / TAU), slip from 0.1 to 0.5 yr."""
    start, end = ENDS[0], ENDS[1]
    for time in (0.3 * YEAR, 5 * YEAR):
        lags, weights = lag_rule(time, ENDS)
        found = weights[2] @ (1.0 - np.exp(-lags / TAU))
        last = min(time, end)
        decayed = np.exp(-(time - last) / TAU) - np.exp(-(time - start) / TAU)
        expected = (last - start - TAU * decayed) / (end - start)
        assert found == pytest.approx(expected, rel=1e-10)


def test_increment_that_has_not_begun_moves_nothing():
    _, weights = lag_rule(0.3 * YEAR, ENDS)
    assert (weights[3] == 0).all()
    assert weights.sum(axis=1) == pytest.approx([1.0, 1.0, 0.5, 0.0])


def test_series_is_what_the_design_predicts():
    data = rows(np.array([0.3, 2.0]))
    G, _ = designs(STORE, data, ENDS)
    times = np.array([0.3, 2.0]) * YEAR
    moved = series(STORE, data.x, data.y, SLIP, ENDS, times)
    np.testing.assert_allclose(moved.ravel(), np.einsum("rbs,bs->r", G, SLIP))


@pytest.fixture(scope="module")
def estimated():
    """Slip from the convolved motion with noise of a known size."""
    epochs = np.array([0.0, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 1.0, 1.7, 2.4, 3.0])
    data = rows(epochs)
    clean = np.concatenate([convolved(SLIP, t * YEAR).ravel() for t in epochs])
    noise = np.random.default_rng(5).normal(0, 0.01, len(clean))
    problem = InversionProblem(
        G=np.zeros((len(data), N_SOURCE)),
        data=clean + noise,
        sigma=data.sigma,
        station=data.station,
        kind=data.kind,
        grid=np.array([[0, 1, i, j] for i in range(2) for j in range(2)]),
        area=np.full(N_SOURCE, 1e8),
        rigidity=np.full(N_SOURCE, 3e10),
        sign=np.ones(N_SOURCE, dtype=np.int64),
        spacing=np.array([[1e4, 1e4]]),
        open_top=np.array([False]),
    )
    design = designs(STORE, data, ENDS)
    return solve_in_time(
        problem,
        InversionSettings(sparsity=0.0, folds=4),
        design,
        ENDS,
        (0.0, 0.1),
        (1.0,),
        lambda posed, settings: (invert(posed, settings), np.ones(len(data))),
    )


def test_slip_and_moment_come_back_within_their_band(estimated):
    solution, _, history = estimated
    off = np.abs(history.slip - SLIP)
    assert (off < 5 * history.sigma + 0.02).all()
    truth = np.cumsum(SLIP.sum(axis=1)) * 1e8 * 3e10
    low, high = history.interval
    assert (np.abs(history.moment - truth) < 2 * (high - low)).all()
    assert ((low < truth) & (truth < high)).sum() >= len(truth) - 1
    assert solution.slip == pytest.approx(SLIP.sum(axis=0), abs=0.05)


def test_rock_that_does_not_flow_fits_worse_and_finds_another_moment(estimated):
    solution, _, history = estimated
    fit = solution.fit.weighted_variance_reduction
    assert fit > 0.999
    assert history.variance_reduction_elastic < fit - 0.01
    truth = SLIP.sum() * 1e8 * 3e10
    wrong = abs(history.moment_elastic[-1] - truth)
    assert wrong > 5 * abs(history.moment[-1] - truth)


def test_afterslip_far_smaller_than_coseismic_slip_is_smoothed_on_its_own_scale():
    """Slip of 40 m, then of 0.4 m, with noise that drowns what is rough of the latter.

    A prior that allows increments as large as the earthquake leaves them to the noise.
    """
    rng = np.random.default_rng(7)
    n = 30
    x = np.linspace(0.0, 1.0, n)
    bump = np.exp(-0.5 * ((x - 0.5) / 0.15) ** 2)
    slip = np.array([40.0 * bump, 0.4 * bump])
    stations = 45
    seat = np.linspace(-0.2, 1.2, stations)
    kernel = np.exp(-0.5 * ((seat[:, None] - x) / 0.12) ** 2) / n
    # each station once at the event and once after it
    design = np.zeros((2 * stations, 2, n))
    design[:, 0] = np.tile(kernel, (2, 1))
    design[stations:, 1] = kernel
    sigma = np.full(2 * stations, 0.02)
    data = np.einsum("rbs,bs->r", design, slip) + rng.normal(0, sigma)
    problem = InversionProblem(
        G=np.zeros((2 * stations, n)),
        data=data,
        sigma=sigma,
        station=np.tile(np.arange(stations), 2),
        kind=np.full(2 * stations, "gnss"),
        grid=np.array([[0, 1, i, 0] for i in range(n)]),
        area=np.full(n, 1e8),
        rigidity=np.full(n, 3e10),
        sign=np.zeros(n, dtype=np.int64),
        spacing=np.array([[1e4, 1e4]]),
        open_top=np.array([False]),
    )

    def afterslip(amplitudes):
        *_, history = solve_in_time(
            problem,
            InversionSettings(sparsity=0.0, folds=5),
            (design, design),
            [YEAR],
            (0.0,),
            amplitudes,
            lambda posed, settings: (invert(posed, settings), np.ones(len(data))),
        )
        return history

    as_large, chosen = afterslip((1.0,)), afterslip((1.0, 0.3, 0.1, 0.03))
    assert chosen.amplitude < 1.0
    error = [np.std(found.slip[1] - slip[1]) for found in (as_large, chosen)]
    assert error[1] < 0.5 * error[0]


def test_data_far_off_say_less_of_the_slip_that_all_increments_would_show():
    rng = np.random.default_rng(5)
    design = rng.normal(size=(40, 2, 4))
    problem = InversionProblem(
        G=np.zeros((40, 4)),
        data=rng.normal(size=40),
        sigma=np.full(40, 0.1),
        station=np.arange(40),
        kind=np.full(40, "gnss"),
        grid=np.array([[0, 1, i, 0] for i in range(4)]),
        area=np.full(4, 1e8),
        rigidity=np.full(4, 3e10),
        sign=np.zeros(4, dtype=np.int64),
        spacing=np.array([[1e4, 1e4]]),
        open_top=np.array([False]),
    )

    def detectable(weight):
        solution, _, _ = solve_in_time(
            problem,
            InversionSettings(smoothness=1.0, folds=0, draws=0),
            (design, design),
            [YEAR],
            (0.0,),
            (1.0,),
            lambda posed, settings: (invert(posed, settings), np.full(40, weight)),
        )
        return solution.detectable_slip

    np.testing.assert_allclose(detectable(0.25), 2.0 * detectable(1.0))
