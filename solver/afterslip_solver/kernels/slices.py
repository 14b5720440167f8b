"""Block rows in slices of 32, the layout of sparse.cu."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

ROWS = 32


def in_slices(
    indptr: Any, indices: Any, data: Any
) -> tuple[NDArray[np.int32], NDArray[np.int32], Any]:
    """Pad rows to the longest of their slice and lay them side by side.

    Parameters
    ----------
    indptr, indices, data : block CSR, data (n_block, rows, columns).

    Returns
    -------
    starts (n_slice + 1,), columns (n_step, 32) and values (n_step, rows * columns, 32);
    padding has zero values and column 0.
    """
    counts = np.diff(indptr)
    n_slice = -(-len(counts) // ROWS)
    padded = np.zeros(n_slice * ROWS, dtype=np.int64)
    padded[: len(counts)] = counts
    starts = np.zeros(n_slice + 1, dtype=np.int64)
    np.cumsum(padded.reshape(n_slice, ROWS).max(axis=1), out=starts[1:])
    row = np.repeat(np.arange(len(counts)), counts)
    step = starts[row // ROWS] + np.arange(len(indices)) - indptr[row]
    columns = np.zeros((starts[-1], ROWS), dtype=np.int32)
    columns[step, row % ROWS] = indices
    size = data.shape[1] * data.shape[2]
    values = np.zeros((starts[-1], size, ROWS), dtype=data.dtype)
    values[step, :, row % ROWS] = data.reshape(-1, size)
    return starts.astype(np.int32), columns, values
