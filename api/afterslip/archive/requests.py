"""What every reader asks of positions and times, and how it labels its answer."""

from __future__ import annotations

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from afterslip.errors import ArchiveError, one_problem
from afterslip.units import COMPONENTS, YEAR

Float = NDArray[np.float64]
Int = NDArray[np.int64]


def positions(size: int, chosen: ArrayLike | None, dimension: str) -> Int:
    """Return positions along a dimension.

    Parameters
    ----------
    size : length of the dimension.
    chosen : positions asked for; None: all.
    dimension : its name, for messages.

    Raises
    ------
    ArchiveError
        The store does not have them.
    """
    if chosen is None:
        return np.arange(size, dtype=np.int64)
    found = np.atleast_1d(np.asarray(chosen, dtype=np.int64))
    if len(found) and (found.min() < 0 or found.max() >= size):
        raise ArchiveError(f"the store has only {size} {dimension}")
    return found


def times_until(times: ArrayLike, until: float, what: str, unit: str) -> Float:
    """Return times as (n_time,) float64, s after the event.

    Parameters
    ----------
    until : last time that can be asked for, s.
    what : ends there, for messages.
    unit : of messages, "s" or "yr".

    Raises
    ------
    SpecError
        A time is negative, not finite, or later than ``until``.
    """
    t = np.atleast_1d(np.asarray(times, dtype=np.float64))
    if not np.isfinite(t).all() or (t < 0).any():
        raise one_problem("times", None, "must be zero or more, after the event")
    if (t > until * (1 + 1e-9)).any():
        scale = {"s": 1.0, "yr": YEAR}[unit]
        end = f"is after the end of the {what}, {until / scale:g} {unit}"
        raise one_problem("times", f"{t.max() / scale:g} {unit}", end)
    return t


def displacement(found: Float, sources: Int, t: Float, places: str) -> xr.DataArray:
    """Return displacement per slip with its dimensions.

    Parameters
    ----------
    found : (n_source, n_time, n_place, 3) m per m.
    t : (n_time,) s.
    places : name of the dimension of the places.
    """
    return xr.DataArray(
        found,
        dims=("source", "time", places, "component"),
        coords={
            "source": sources,
            "time": ("time", t / YEAR, {"units": "yr"}),
            "component": list(COMPONENTS),
        },
        name="displacement",
        attrs={"units": "m m-1"},
    )
