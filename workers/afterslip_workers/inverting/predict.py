"""Green's functions at the data, and what slip predicts for any time."""

from __future__ import annotations

from typing import Any

import numpy as np

from afterslip.archive import GreensStore
from afterslip.readers.rows import Rows
from afterslip_solver.model import Float
from afterslip_workers.inverting import batches

N_TIME = 48


def design_matrix(store: GreensStore, rows: Rows) -> Float:
    """(n_obs, n_source) float64, m per m: each datum's response to each source."""
    G = np.empty((len(rows), store.dataset.sizes["source"]))
    for name in np.unique(rows.dataset):
        mine = np.flatnonzero(rows.dataset == name)
        # all epochs together: each reading is of the whole surface
        epochs, time = np.unique(rows.epoch[mine], return_inverse=True)
        per_station = 3 * G.shape[1] * len(epochs)
        for some, place, column in batches.of_stations(rows.station[mine], per_station):
            motion = _sample(store, rows.x[place], rows.y[place], epochs)
            found = motion[:, time[some], column]
            part = mine[some]
            G[part] = np.einsum("sri,ri->rs", found, rows.direction[part])
    return G


def _sample(store: GreensStore, x: Float, y: Float, times: Float) -> Float:
    """(n_source, n_time, n_station, 3) float64, m per m."""
    found: Any = store.sample(x, y, times)
    return np.asarray(found.values, dtype=np.float64)


def series_times(until: float) -> Float:
    """(n_time,) float64, s, from 0 to ``until``, denser where curves bend most."""
    return np.asarray(until * np.linspace(0.0, 1.0, N_TIME) ** 2)


def station_series(
    store: GreensStore, x: Float, y: Float, slip: Float, times: Float
) -> Float:
    """Predicted motion of stations.

    Parameters
    ----------
    x, y : (n_station,) float64, m.
    slip : (n_source,) float64, m, coefficients.
    times : (n_time,) float64, s.

    Returns
    -------
    (n_time, n_station, 3) float64, m.
    """
    series = np.empty((len(times), len(x), 3))
    for part in batches.of_count(len(x), 3 * len(slip) * len(times)):
        motion = _sample(store, x[part], y[part], times)
        series[:, part] = np.einsum("s,stpc->tpc", slip, motion)
    return series
