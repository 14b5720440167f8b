"""What is known of the errors of Green's functions, at the data."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from afterslip.archive import GreensStore
from afterslip.physics.base import EstimatesError
from afterslip.readers.rows import Rows
from afterslip_solver.model import Float, Int
from afterslip_workers.inverting import batches

_AXES = 3.0  # the length of an error is shared alike by three directions


def estimates_error(store: GreensStore) -> bool:
    """Whether the errors of all of a store's Green's functions were estimated."""
    reader = store.reader
    return isinstance(reader, EstimatesError) and bool(reader.largest_space_error())


def mesh_sigma(
    store: GreensStore, rows: Rows, slip: Float, starts: Sequence[float]
) -> Float:
    """Return the standard deviation of predictions that the mesh is to blame for.

    Errors of all sources are taken to point the same way: what a mesh does to one
    patch it does to the next, and what cancels between sources is not counted.

    Parameters
    ----------
    store : whose reader estimates errors.
    slip : (n_block, n_source) float64, m, of the event and of each increment.
    starts : (n_block,) s, when each begins.

    Returns
    -------
    (2, n_obs) float64, m, elastic and the change since; 0 where not estimated.
    """
    reader = store.reader
    if not isinstance(reader, EstimatesError):
        return np.zeros((2, len(rows)))
    found = np.zeros((2, len(rows)))
    since = rows.epoch[:, None] - np.asarray(starts)
    lags, of_lag = np.unique(np.maximum(since, 0.0), return_inverse=True)
    of_lag = of_lag.reshape(since.shape)
    most = 2 * slip.shape[1] * len(lags)
    for mine, chosen, column in batches.of_stations(rows.station, most):
        # one reading of the store for all times
        error = reader.space_error(rows.x[chosen], rows.y[chosen], lags).values
        for block, amount in enumerate(np.abs(slip)):
            begun = since[mine, block] >= 0.0
            at = np.tensordot(amount, error, axes=1)[:, of_lag[mine, block], column]
            found[:, mine] += np.where(begun, at, 0.0)
    return np.asarray(np.nan_to_num(found / np.sqrt(_AXES)))


def shared_errors(rows: Rows) -> Int:
    """(n_obs,) int64, one index for the epochs of a component of a station."""
    key = np.column_stack((rows.station, rows.component))
    return np.unique(key, axis=0, return_inverse=True)[1].astype(np.int64).ravel()
