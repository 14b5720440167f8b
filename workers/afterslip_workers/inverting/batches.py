"""Stations that are sampled at once, so that memory holds what is read."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from afterslip_solver.model import Int

MOST_VALUES = 20_000_000  # read at once, 8 bytes each


def of_count(count: int, per_station: int) -> Iterator[slice]:
    """Yield the parts of so many stations.

    Parameters
    ----------
    per_station : values that are read for a station.
    """
    at_once = max(1, MOST_VALUES // per_station)
    for first in range(0, count, at_once):
        yield slice(first, first + at_once)


def of_stations(station: Int, per_station: int) -> Iterator[tuple[Int, Int, Int]]:
    """Yield rows, their stations, and the place of each row's among these.

    Parameters
    ----------
    station : (n_row,) int64, of each row.
    per_station : values that are read for a station.
    """
    stations = np.unique(station)
    for part in of_count(len(stations), per_station):
        chosen = stations[part]
        mine = np.flatnonzero(np.isin(station, chosen))
        yield mine, chosen, np.searchsorted(chosen, station[mine])
