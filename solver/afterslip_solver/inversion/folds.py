"""Folds that never part the data of a station."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from afterslip_solver.model import Float, Int


def deal_stations(
    station: Int, kind: NDArray[np.str_], folds: int, seed: int = 0
) -> Int:
    """Deal stations like cards, kind after kind.

    Every fold gets its share of each kind, so that the few sea-floor sites do not
    fall into one fold by chance. The same arguments give the same folds.

    Parameters
    ----------
    station : (n_obs,) index of the station of each row.
    kind : (n_obs,) label of each row; a station counts with its first label.

    Returns
    -------
    (n_obs,) int64, fold of each row, 0 to folds - 1.
    """
    names, first, inverse = np.unique(station, return_index=True, return_inverse=True)
    shuffled = np.random.default_rng(seed).permutation(len(names))
    order = shuffled[np.argsort(kind[first][shuffled], kind="stable")]
    fold = np.empty(len(names), dtype=np.int64)
    fold[order] = np.arange(len(names)) % folds
    return fold[inverse]


def spatial_blocks(station: Int, position: Float, folds: int) -> Int:
    """Cut the map into compact blocks of about equally many stations.

    The set with the most folds still to make is cut across its longer side, in
    proportion to the folds on either side.

    Parameters
    ----------
    station : (n_obs,) index into ``position``.
    position : (n_station, 2) m.

    Returns
    -------
    (n_obs,) int64, fold of each row.
    """
    names, inverse = np.unique(station, return_inverse=True)
    xy = position[names]
    fold = np.zeros(len(names), dtype=np.int64)
    pending = [(np.arange(len(names)), 0, folds)]
    while pending:
        members, start, parts = pending.pop()
        if parts == 1:
            fold[members] = start
            continue
        axis = int(np.argmax(np.ptp(xy[members], axis=0)))
        # the index breaks ties, so equal coordinates cannot change the outcome
        ordered = members[np.lexsort((members, xy[members, axis]))]
        low = parts // 2
        cut = round(len(ordered) * low / parts)
        pending.append((ordered[:cut], start, low))
        pending.append((ordered[cut:], start + low, parts - low))
    return fold[inverse]
