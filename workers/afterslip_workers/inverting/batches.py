"""Stations that are sampled at once, so that memory holds what is read."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from afterslip.readers.rows import Rows
from afterslip_solver.model import Int

MOST_VALUES = 20_000_000  # read at once, 8 bytes each


def of_stations(rows: Rows, per_station: int) -> Iterator[tuple[Int, Int, Int]]:
    """Yield rows, their stations, and the place of each row's among these.

    Parameters
    ----------
    per_station : values that are read for a station.
    """
    at_once = max(1, MOST_VALUES // per_station)
    stations = np.unique(rows.station)
    for first in range(0, len(stations), at_once):
        chosen = stations[first : first + at_once]
        mine = np.flatnonzero(np.isin(rows.station, chosen))
        yield mine, chosen, np.searchsorted(chosen, rows.station[mine])
