"""What data of a rupture move by: series that begin later, filtered as the data are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from afterslip.readers.motion import lowpassed
from afterslip.readers.rows import Rows, Sampled

if TYPE_CHECKING:
    from afterslip.physics.waves.reader import SeriesReader

Float = NDArray[np.float64]
Int = NDArray[np.int64]


def rupture_columns(reader: SeriesReader, rows: Rows, delay: Float) -> Float:
    """Return (n_obs, n_window, n_source) float64; see `base.RuptureReader`."""
    G = np.empty((len(rows), *delay.shape))
    still = np.flatnonzero(~rows.moving)
    if len(still):
        # all slip is done when what stays is measured
        G[still] = _offsets(reader, rows, still, delay.shape[1])[:, None, :]
    for mine, how in _series(rows):
        G[mine] = _delayed(reader, rows, mine, how, delay)
    return G


def _stations(rows: Rows, mine: Int) -> tuple[Float, Float, list[str], Int]:
    """Return x, y and names of the stations of some rows, and each row's among them."""
    which, place = np.unique(rows.station[mine], return_inverse=True)
    names = [rows.stations[k] for k in which]
    return rows.x[which], rows.y[which], names, place.ravel()


def _offsets(reader: SeriesReader, rows: Rows, mine: Int, n: int) -> Float:
    """(n_row, n_source) float64, displacement that stays along each datum."""
    x, y, names, place = _stations(rows, mine)
    take = reader.offsets(x, y, names)
    direction = rows.direction[mine]
    found = [np.einsum("ri,ri->r", take(k)[place], direction) for k in range(n)]
    return np.column_stack(found)


def _series(rows: Rows) -> Iterator[tuple[Int, Sampled]]:
    """Yield rows of series that were sampled at the same times."""
    for name, how in rows.sampled.items():
        mine = np.flatnonzero(rows.dataset == name)
        first = np.full(len(rows.stations), np.inf)
        np.minimum.at(first, rows.station[mine], rows.epoch[mine])
        begin = first[rows.station[mine]]
        for time in np.unique(begin):
            yield mine[begin == time], how


def _delayed(
    reader: SeriesReader, rows: Rows, mine: Int, how: Sampled, delay: Float
) -> Float:
    """(n_row, n_window, n_source) float64, of series with the same begin."""
    x, y, names, place = _stations(rows, mine)
    take = reader.motion(x, y, names, str(rows.kind[mine[0]]))
    epoch = rows.epoch[mine]
    times, of_row = np.unique(epoch, return_inverse=True)
    index = of_row.ravel()
    if how.lowpass is not None:
        # the filter needs every sample of the file, also those that are no data
        index = np.rint((epoch - times[0]) / how.sampling).astype(np.int64)
        times = times[0] + how.sampling * np.arange(index.max() + 1)
    G = np.empty((len(mine), *delay.shape))
    for source in range(delay.shape[1]):
        lag = times - delay[:, source, None]
        moved = take(source)(np.maximum(lag, 0.0)) * (lag > 0.0)
        if how.lowpass is not None:
            moved = lowpassed(moved, how.sampling, how.lowpass)
        for window in range(len(delay)):
            at = moved[place, :, window, index]
            G[:, window, source] = np.einsum("ri,ri->r", at, rows.direction[mine])
    return G
