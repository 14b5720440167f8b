"""A stored curve for another campaign's stations, times and tolerance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from afterslip.archive import StationTable, StoreLayout, SurfaceInterpolator
from afterslip.physics.viscoelastic.store import error_times
from afterslip.units import YEAR
from afterslip_common.curve import spectral_weights, step_weights

Float = NDArray[np.float64]
Lane = dict[str, Any]

# responses are stored in single precision, which moves the figures a little
_ROUNDING = 1.01


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a source must be good for.

    Attributes
    ----------
    times : (n_time,) s, output times.
    until : s, end of the curve.
    time_tolerance : relative error of the curve.
    stations : where ``displacement`` is wanted; None: nowhere.
    """

    layout: StoreLayout
    times: Float
    until: float
    time_tolerance: float
    stations: StationTable | None


def adopt(store: Any, row: int, wanted: Wanted) -> Lane | None:
    """Read one source, and evaluate it where it was not evaluated there.

    Returns
    -------
    Its arrays; None where its curve is not exact enough for the times wanted.
    """
    lane: Lane = {
        v.name: store[v.name][row]
        for v in wanted.layout.grouped
        if v.name not in ("displacement", "space_error")
    }
    if any(v.name == "space_error" for v in wanted.layout.grouped):
        lane["space_error"] = _space_error(store, row, wanted)
    count = int(lane["mode_count"])
    lane["response"] = lane["response"][:count]
    if "recurrence" in lane:
        lane["time_error"] = _time_error(store, lane, wanted)
        if lane["time_error"] > _ROUNDING * wanted.time_tolerance:
            return None
    if wanted.stations is not None and len(wanted.stations):
        lane["displacement"] = _displacement(store, row, lane, wanted)
    return lane


def _space_error(store: Any, row: int, wanted: Wanted) -> Float:
    """(error_time, node), linear between that store's times; NaN where it has none."""
    shape = wanted.layout.of("error_time"), wanted.layout.of("node")
    if "space_error" not in store:
        return np.full(shape, np.nan)
    moments = error_times(wanted.times)[: shape[0] - 1] / YEAR
    known, stored = store["error_time"][:], store["space_error"][row].astype(np.float64)
    after = np.clip(np.searchsorted(known, moments), 1, max(len(known) - 1, 1))
    change = stored.copy()
    change[0] = 0.0
    if len(known) == 1:
        return np.vstack([stored, np.zeros((len(moments), shape[1]))])
    step = known[after] - known[after - 1]
    part = np.minimum((moments - known[after - 1]) / step, 1.0)[:, None]
    later = (1.0 - part) * change[after - 1] + part * change[after]
    return np.vstack([stored[:1], later])


def _time_error(store: Any, lane: Lane, wanted: Wanted) -> float:
    """Error of the curve, relative to its largest change at the times wanted now.

    What Lanczos leaves out grows with time, so that the error at any earlier time is
    at most the stored one, which is relative to the largest change until the end of
    the stored curve.
    """
    before = np.append(store["time"][:], float(store.attrs["until_yr"])) * YEAR
    now = np.append(wanted.times, wanted.until)
    then, change = _largest_change(lane, before), _largest_change(lane, now)
    stored = float(lane["time_error"])
    return stored * then / change if change > 0.0 else stored


def _largest_change(lane: Lane, times: Float) -> float:
    """Largest displacement after the elastic one on the surface, m per m."""
    modes = np.asarray(lane["response"][1:], dtype=np.float64)
    flat = modes.reshape(len(modes), -1)
    found = _coefficients(lane, times)[:, 1:] @ flat
    return float(np.abs(found).max(initial=0.0))


def _coefficients(lane: Lane, times: Float) -> Float:
    """(n_time, n_mode) weights of a spectral lane's modes."""
    return spectral_weights(
        lane["recurrence"][: len(lane["response"])],
        float(lane["start_norm"]),
        float(lane["shift"]),
        times,
    )


def _displacement(store: Any, row: int, lane: Lane, wanted: Wanted) -> Float:
    """(n_time, n_station, 3) float64, m per m, at the wanted stations and times."""
    stations = wanted.stations
    assert stations is not None  # noqa: S101 - asked by the caller
    if _same_points(store, stations, wanted.times):
        return np.asarray(store["displacement"][row], dtype=np.float64)
    xy = np.column_stack([store["node_x"][:], store["node_y"][:]])
    nodes, weights = SurfaceInterpolator(
        xy, store["face_node_connectivity"][:]
    ).weights(np.asarray(stations.x), np.asarray(stations.y), list(stations.name))
    if "recurrence" in lane:
        coefficients = _coefficients(lane, wanted.times)
    else:
        steps = store["step_time"][:] * YEAR
        coefficients = step_weights(steps[: len(lane["response"])], wanted.times)
    response = np.asarray(lane["response"], dtype=np.float64)
    at = np.einsum("sk,mskc->msc", weights, response[:, nodes])
    return np.asarray(np.einsum("tm,msc->tsc", coefficients, at))


def _same_points(store: Any, stations: StationTable, times: Float) -> bool:
    """Tell whether a store was evaluated at these very stations and times."""
    if "displacement" not in store:
        return False
    pairs = (
        (store["station_x"][:], stations.x),
        (store["station_y"][:], stations.y),
        (store["time"][:], times / YEAR),
    )
    return all(np.array_equal(there, np.asarray(here)) for there, here in pairs)
