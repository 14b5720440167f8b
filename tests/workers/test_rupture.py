"""Windows behind a rupture front: columns, prior, moment rate, against closed forms."""

from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

from afterslip.frame import Frame
from afterslip.physics.waves.reader import SeriesReader
from afterslip.readers.motion import lowpassed
from afterslip.readers.rows import Rows, Sampled
from afterslip.schemas.earth import Frame as FrameSpec
from afterslip.schemas.windows import Windows
from afterslip.spec.rupture import delays
from afterslip_common.source_time import smooth_step
from afterslip_solver.inversion import (
    InTime,
    InversionProblem,
    Laplacian,
    SourceGrid,
    moment_rate,
    share_times,
)

RISE = 4.0
GROW = smooth_step(RISE)
TRAVEL = np.array([[2.0, 5.0], [4.0, 3.0]])  # s, by source and station
SAMPLE = np.arange(0.0, 40.1, 0.25)
SIZE = np.array([1.0, -0.5, 0.2])  # of east, north, up


def moved(time, source, station):
    """Displacement per metre of slip, (..., 3)."""
    return (1.0 + source) * GROW(time - TRAVEL[source, station])[..., None] * SIZE


def rate(time, source, station):
    """Its rate: of a raised cosine."""
    t = time - TRAVEL[source, station]
    inside = (t > 0.0) & (t < RISE)
    value = np.where(inside, (1.0 - np.cos(2.0 * np.pi * t / RISE)) / RISE, 0.0)
    return (1.0 + source) * value[..., None] * SIZE


@pytest.fixture(scope="module")
def reader():
    def array(of):
        return np.array([[of(SAMPLE, k, s).T for s in range(2)] for k in range(2)])

    by_time = ("source", "station", "component", "sample")
    data = xr.Dataset(
        {
            "displacement": (by_time, array(moved)),
            "seismogram": (by_time, array(rate)),
            "offset": (by_time[:3], array(moved)[..., -1]),
            "station_x": ("station", [0.0, 1e4]),
            "station_y": ("station", [0.0, 0.0]),
            "steps": ("source", [1, 1]),
        },
        {"sample": SAMPLE},
    )
    return SeriesReader(data)


def rows(kind, epochs, sampled=None):
    n = len(epochs)
    component = np.tile(np.repeat(np.arange(3), n), 2)
    count = len(component)
    return Rows(
        stations=("A", "B"),
        x=np.array([0.0, 1e4]),
        y=np.zeros(2),
        station=np.repeat([0, 1], 3 * n),
        component=component,
        direction=np.eye(3)[component],
        value=np.zeros(count),
        sigma=np.ones(count),
        kind=np.full(count, kind),
        dataset=np.full(count, "d"),
        epoch=np.tile(epochs, 6),
        line=np.arange(count),
        given=np.ones(count, dtype=bool),
        sampled={"d": sampled} if sampled else {},
    )


DELAY = np.array([[0.0, 1.3], [2.0, 3.3], [4.0, 5.3]])


def expected(data, of):
    found = np.empty((len(data), *DELAY.shape))
    for r in range(len(data)):
        for w, k in np.ndindex(*DELAY.shape):
            at = of(data.epoch[r : r + 1] - DELAY[w, k], k, data.station[r])
            found[r, w, k] = at[0, data.component[r]]
    return found


@pytest.mark.parametrize(("kind", "of"), [("displacement", moved), ("velocity", rate)])
def test_columns_are_the_series_that_begin_later(reader, kind, of):
    data = rows(kind, np.arange(0.0, 38.0, 1.1), Sampled(1.1))
    # a cubic spline through 16 samples of a rise
    np.testing.assert_allclose(
        reader.columns(data, DELAY), expected(data, of), atol=2e-3
    )


def test_columns_are_filtered_as_the_data_are(reader):
    epochs = 2.0 * np.arange(18)
    data = rows("displacement", epochs, Sampled(0.5, 4, 0.2))
    found = reader.columns(data, DELAY)
    fine = np.arange(0.0, 34.1, 0.5)
    for w, k in np.ndindex(*DELAY.shape):
        for station in range(2):
            whole = lowpassed(moved(fine - DELAY[w, k], k, station).T, 0.5, 0.2)
            mine = data.station == station
            np.testing.assert_allclose(
                found[mine, w, k], whole[:, ::4].ravel(), atol=2e-3
            )


def test_columns_between_points_of_the_ground_are_those_of_its_displacement():
    """On a ground that moves as a plane, cubics between points are exact."""
    x, y = np.linspace(-4e3, 4e3, 9), np.linspace(-3e3, 3e3, 7)
    slope = 1.0 + 1e-4 * x[None, :] - 5e-5 * y[:, None]
    field = slope[..., None, None] * moved(SAMPLE, 0, 0).T
    by_ground = ("source", "row", "column", "component", "sample")
    ground = SeriesReader(
        xr.Dataset(
            {"wavefield": (by_ground, field[None]), "steps": ("source", [1])},
            {"sample": SAMPLE, "row": y, "column": x},
        )
    )
    epochs = np.arange(0.0, 30.0, 1.5)
    for kind, of in (("displacement", moved), ("velocity", rate)):
        data = replace(rows(kind, epochs, Sampled(1.5)), x=np.array([700.0, -2e3]))
        there = (1.0 + 1e-4 * data.x)[data.station]
        found = ground.columns(data, np.array([[1.3]]))[:, 0, 0]
        exact = of(data.epoch - 1.3, 0, 0)[np.arange(len(data)), data.component]
        np.testing.assert_allclose(found, there * exact, atol=2e-3)
    stays = replace(rows("gnss", np.array([0.0])), x=np.array([700.0, -2e3]))
    found = ground.columns(stays, np.zeros((2, 1)))
    np.testing.assert_allclose(found[:3, 1, 0], 1.07 * SIZE)


def test_what_stays_does_not_know_when_it_began(reader):
    found = reader.columns(rows("gnss", np.array([0.0])), DELAY)
    np.testing.assert_allclose(found, found[:, :1].repeat(3, axis=1))
    np.testing.assert_allclose(found[:3, 0, 1], 2.0 * SIZE)


def test_windows_begin_when_the_front_arrives():
    windows = Windows(
        count=3,
        spacing="2 s",
        rupture_speed=2.0,
        hypocentre={"x": 1.0, "y": 0.0, "depth": 4.0},
    )
    frame = Frame.of(FrameSpec(kind="local"))
    places = np.array([[1e3, 0.0, -4e3], [4e3, 4e3, -4e3]])
    found = delays(windows, frame, places)
    np.testing.assert_allclose(found, [[0.0, 2.5], [2.0, 4.5], [4.0, 6.5]])


def problem():
    n = 4
    return InversionProblem(
        G=np.ones((1, n)), data=np.ones(1), sigma=np.ones(1),
        station=np.zeros(1, dtype=np.int64), kind=np.array(["gnss"]),
        grid=np.array([[0, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 1, 1, 0]]),
        area=np.full(n, 2e6), rigidity=np.full(n, 3e10), sign=np.zeros(n, np.int64),
        spacing=np.ones((1, 2)), open_top=np.array([False]),
    )  # fmt: skip


def test_moment_rate_is_that_of_each_window_and_sums_up_to_the_moment():
    slip = np.zeros((1, 2, 4))
    slip[0, 0], slip[0, 1] = [0.0, 1.0, 0.0, 2.0], [0.0, 0.5, 0.0, 0.0]
    delay = np.array([[0.0, 0.0, 3.0, 3.0], [2.0, 2.0, 5.0, 5.0]])
    times = np.linspace(0.0, 12.0, 481)
    found = moment_rate(problem(), slip, delay, GROW, times)[0]
    step = times[1] - times[0]
    assert found.sum() * step == pytest.approx(3.5 * 6e16)
    middle = 0.5 * (times[1:] + times[:-1])

    def bump(begin):
        t = middle - begin
        inside = (t > 0) & (t < RISE)
        return np.where(inside, (1.0 - np.cos(2 * np.pi * t / RISE)) / RISE, 0.0)

    exact = 6e16 * (bump(0.0) + 2.0 * bump(3.0) + 0.5 * bump(2.0))
    np.testing.assert_allclose(found, exact, atol=1e-3 * exact.max())


def test_rupture_and_rise_times_are_those_of_the_summed_windows():
    slip = np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 0.0]])
    delay = np.array([[1.0, 2.0, 3.0], [3.0, 4.0, 5.0]])
    times = np.linspace(0.0, 12.0, 2401)
    found = share_times(slip, delay, GROW, times, np.array([0.1, 0.5]))
    # a raised cosine has done half of it in the middle
    assert found[1, 0] == pytest.approx(3.0, abs=1e-2)
    # two of them, 2 s apart: in the middle between their middles
    assert found[1, 1] == pytest.approx(5.0, abs=1e-2)
    assert found[0, 0] == pytest.approx(
        1.0 + np.interp(0.1, GROW(times), times), abs=1e-2
    )
    assert np.isnan(found[:, 2]).all()


def test_prior_of_windows_leaves_their_sum_the_prior_of_slip():
    places = np.array([[0, 0, k, 0] for k in range(5)])
    grid = SourceGrid(places, np.ones((1, 2)), np.array([False]))
    space = Laplacian().precision(grid)
    four = SourceGrid(
        np.tile(grid.place, (4, 1)), np.ones((4, 2)), np.zeros(4, dtype=bool)
    )
    prior = InTime(Laplacian(), (1.0,) * 4, coseismic=False)
    whole = prior.precision(four)
    assert whole.shape == (20, 20)
    # covariance of the sum of four independent windows, each a quarter
    ridge = 1e-9 * np.eye(20)
    covariance = np.linalg.inv(whole + ridge)
    summed = covariance.reshape(4, 5, 4, 5).sum(axis=(0, 2))
    np.testing.assert_allclose(
        summed, np.linalg.inv(space + 0.25e-9 * np.eye(5)), rtol=1e-5
    )
    coupled = InTime(Laplacian(), (1.0,) * 4, 1.0, coseismic=False).in_time()
    even = np.ones(4)
    np.testing.assert_allclose(coupled @ even, prior.in_time() @ even)
    assert coupled[0, 1] < 0.0
