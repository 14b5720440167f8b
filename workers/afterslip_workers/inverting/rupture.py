"""Slip in windows of time behind a rupture front: columns, solution, moment rate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import xarray as xr

from afterslip.archive import GreensStore
from afterslip.error_class import ErrorClass
from afterslip.frame import Frame
from afterslip.physics.base import RuptureReader
from afterslip.readers.rows import Rows, Sampled
from afterslip.schemas.windows import Windows
from afterslip.spec.rupture import delays
from afterslip_solver.inversion import (
    InTime,
    InversionProblem,
    InversionSettings,
    InversionSolution,
    in_blocks,
    limits,
    moment_rate,
    reweighted,
    share_times,
    total,
)
from afterslip_solver.model import Float
from afterslip_workers.errors import TaskError
from afterslip_workers.inverting.in_time import COUPLINGS, Solve, best_prior

# times at which the moment is followed, and predicted series drawn
_TIMES = 161
# of a source's slip: begin and end of its rise
_SHARES = np.array([0.1, 0.9])
# of the largest slip: times of less are those of noise
LEAST_SLIP = 0.1
_DRAWS = 400

Growth = tuple[Callable[[Float], Float], float]


@dataclass(frozen=True, slots=True)
class Windowed:
    """Windows of the unit sources and what they do to the data.

    Attributes
    ----------
    delay : (n_window, n_source) s, when each begins.
    design : (n_obs, n_window, n_source) m per m, m/s per m of velocities.
    share : of a window's slip, of (...) s after its begin. rise : s, of all of it.
    """

    delay: Float
    design: Float
    share: Callable[[Float], Float]
    rise: float

    @property
    def times(self) -> Float:
        """(n_time,) s, from the event to the end of all slip."""
        return np.linspace(0.0, float(self.delay.max()) + self.rise, _TIMES)


@dataclass(frozen=True, slots=True)
class Rupture:
    """Slip and moment through the seconds of a rupture.

    Attributes
    ----------
    delay : (n_window, n_source) s.
    slip, sigma : (n_window, n_source) m.
    time : (n,) s, middles of the intervals of ``rate``.
    rate : (n,) N m/s. interval : (2, n) limits of 95 %; None without draws.
    begun, rise : (n_source,) s, when a tenth of the slip is done, and from then until
        nine tenths are; nan where there is little slip.
    coupling : weight of changes from window to window.
    window : s, that the slip of one takes.
    """

    delay: Float
    slip: Float
    sigma: Float
    time: Float
    rate: Float
    interval: Float | None
    begun: Float
    rise: Float
    coupling: float
    window: float


def windowed(
    windows: Windows, frame: Frame, growth: Growth, store: GreensStore, rows: Rows
) -> Windowed:
    """Return the windows of a request.

    Parameters
    ----------
    growth : share of a window's slip, of (...) s after its begin, and s, of all of it.

    Raises
    ------
    TaskError
        The physics follows no rupture.
    """
    reader = store.reader
    if not isinstance(reader, RuptureReader):
        raise no_rupture()
    places = store.dataset["source_position"].values.astype(np.float64)
    delay = delays(windows, frame, places)
    return Windowed(delay, reader.columns(rows, delay), *growth)


def no_rupture() -> TaskError:
    """Return the error of a request for windows that a physics does not offer."""
    text = "windows: Green's functions of this campaign follow no rupture"
    return TaskError(ErrorClass.BAD_INPUT, text)


def solve_in_windows(
    problem: InversionProblem,
    settings: InversionSettings,
    windows: Windowed,
    smoothness: float | str,
    solve: Solve,
) -> tuple[InversionSolution, Float, Rupture]:
    """Estimate the slip of all windows; held-out data choose how they are coupled.

    Parameters
    ----------
    problem : of slip without windows.
    smoothness : weight of changes from window to window, or "auto".
    solve : returns a solution and the weights of its data.

    Returns
    -------
    The solution for the slip of all windows together, the weights of the data, and
    slip through time.
    """
    count = len(windows.delay)
    posed = in_blocks(problem, windows.design)
    tried: Sequence[float] = COUPLINGS if count > 1 else COUPLINGS[:1]
    if smoothness != "auto":
        tried = (float(smoothness),)
    priors = [
        InTime(settings.regulariser, (1.0,) * count, weight, coseismic=False)
        for weight in tried
    ]
    chosen = best_prior(priors, posed, settings, solve)
    solution, weight = solve(posed, replace(settings, regulariser=chosen))
    rupture = _followed(problem, solution, windows, chosen.coupling)
    weighed = reweighted(problem, weight)
    return total(weighed, windows.design, solution), weight, rupture


def _followed(
    problem: InversionProblem,
    solution: InversionSolution,
    windows: Windowed,
    coupling: float,
) -> Rupture:
    shape = windows.delay.shape
    slip, times = solution.slip.reshape(shape), windows.times
    how = windows.delay, windows.share, times
    sigma = np.sqrt(np.maximum(np.diag(solution.covariance), 0.0))
    interval = None
    if solution.posterior is not None:
        sigma = solution.posterior.sigma
        step = max(1, len(solution.posterior.slip) // _DRAWS)
        free, within = (
            moment_rate(problem, part[::step].reshape(-1, *shape), *how)
            for part in (solution.posterior.free, solution.posterior.slip)
        )
        interval = np.stack(limits(free, within))
    begin, end = share_times(slip, *how, _SHARES)
    amount = np.abs(slip.sum(axis=0))
    little = amount < LEAST_SLIP * amount.max()
    return Rupture(
        delay=windows.delay,
        slip=slip,
        sigma=sigma.reshape(shape),
        time=0.5 * (times[1:] + times[:-1]),
        rate=moment_rate(problem, slip[None], *how)[0],
        interval=interval,
        begun=np.where(little, np.nan, begin),
        rise=np.where(little, np.nan, end - begin),
        coupling=coupling,
        window=windows.rise,
    )


def station_series(
    store: GreensStore, x: Float, y: Float, rupture: Rupture
) -> tuple[Float, Float]:
    """Return times (n_time,), s, and predicted displacements (n_time, n_station, 3)."""
    reader = store.reader
    assert isinstance(reader, RuptureReader)  # noqa: S101 - `windowed` has checked it
    times = np.linspace(0.0, store.until, _TIMES)
    n = len(x)
    count = n * 3 * len(times)
    component = np.tile(np.arange(3), n * len(times))
    rows = Rows(
        stations=tuple(f"{k}" for k in range(n)),
        x=x,
        y=y,
        station=np.tile(np.repeat(np.arange(n), 3), len(times)),
        component=component,
        direction=np.eye(3)[component],
        value=np.zeros(count),
        sigma=np.ones(count),
        kind=np.full(count, "displacement"),
        dataset=np.full(count, "all"),
        epoch=np.repeat(times, 3 * n),
        line=np.zeros(count, dtype=np.int64),
        given=np.zeros(count, dtype=bool),
        sampled={"all": Sampled(float(times[1]))},
    )
    moved = np.einsum("rws,ws->r", reader.columns(rows, rupture.delay), rupture.slip)
    return times, moved.reshape(len(times), n, 3)


def rupture_variables(rupture: Rupture) -> dict[str, xr.Variable]:
    """Variables of the result."""
    seconds, rate = {"units": "s"}, {"units": "N m s-1"}
    by_window = ("window", "source")
    made = {
        "window_begin": xr.Variable(by_window, rupture.delay, seconds),
        "slip_window": xr.Variable(by_window, rupture.slip, {"units": "m"}),
        "slip_window_sigma": xr.Variable(by_window, rupture.sigma, {"units": "m"}),
        "rate_time": xr.Variable(("rate_time",), rupture.time, seconds),
        "moment_rate": xr.Variable(("rate_time",), rupture.rate, rate),
        "rupture_time": xr.Variable(("source",), rupture.begun, seconds),
        "rise_time": xr.Variable(("source",), rupture.rise, seconds),
    }
    if rupture.interval is not None:
        made["moment_rate_interval"] = xr.Variable(
            ("rate_time", "limit"), rupture.interval.T, rate
        )
    return made


def rupture_figures(rupture: Rupture) -> dict[str, Any]:
    """Numbers that people quote: the centroid in time and the coupling of windows."""
    step = rupture.time[1] - rupture.time[0]
    moment = float(rupture.rate.sum()) * step
    found = {"window_smoothness": rupture.coupling, "window_rise": rupture.window}
    if moment > 0.0:
        found["centroid_time"] = float(rupture.rate @ rupture.time) * step / moment
    return found


def data_seconds(rows: Rows) -> dict[str, xr.Variable]:
    """Return times in s and units of the data, where some are of ground motion."""
    if not rows.moving.any():
        return {}
    unit = np.where(rows.kind == "velocity", "m s-1", "m").astype(object)
    seconds = np.where(rows.moving, rows.epoch, np.nan)
    return {
        "obs_time": xr.Variable(("obs",), seconds, {"units": "s"}),
        "obs_unit": xr.Variable(("obs",), unit),
    }
