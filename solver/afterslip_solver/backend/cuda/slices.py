"""Block rows in slices of 32, the layout of sparse.cu."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from afterslip_solver.jit.compiling import compiled
from afterslip_solver.jit.threads import over

ROWS = 32
# times the usual number of steps, from which a thread block is a long one
_LONG = 1.25


def in_slices(
    indptr: Any, indices: Any, data: Any, together: int = 1
) -> tuple[NDArray[np.int32], NDArray[np.int32], Any]:
    """Pad rows to the longest of their slice and lay them side by side.

    Parameters
    ----------
    indptr, indices, data : block CSR, data (n_block, rows, columns).
    together : numbers of a row that lie behind each other.

    Returns
    -------
    starts (n_slice + 1,), columns (n_step, 32), values (n_step, rows * columns * 32);
    the last are (32, together), as often as it divides a row's numbers, and then those
    left over in the same way. Padding has zero values and column 0.
    """
    counts = np.diff(indptr)
    n_slice = -(-len(counts) // ROWS)
    padded = np.zeros(n_slice * ROWS, dtype=np.int64)
    padded[: len(counts)] = counts
    starts = np.zeros(n_slice + 1, dtype=np.int64)
    np.cumsum(padded.reshape(n_slice, ROWS).max(axis=1), out=starts[1:])
    n_step, size = int(starts[-1]), data.shape[1] * data.shape[2]
    columns = np.zeros((n_step, ROWS), dtype=np.int32)
    values = np.zeros((n_step, size * ROWS), dtype=data.dtype)
    # compiled code knows no FP16, and copying needs no number
    bits = np.dtype(f"u{data.dtype.itemsize}")
    blocks = np.ascontiguousarray(data).reshape(-1, size).view(bits)
    tables = (indptr, indices, blocks, together, starts, columns, values.view(bits))
    over(len(counts), partial(_lay, *tables))
    return starts.astype(np.int32), columns, values


def longest_first(steps: NDArray[np.integer], together: int) -> NDArray[np.int32]:
    """Order of thread blocks of so many slices, long ones before all others.

    One of them that began last would keep the others waiting. The rest stays in order:
    neighbours read the same.

    Parameters
    ----------
    steps : (n_slice,) of each slice.
    """
    padded = np.zeros(-(-len(steps) // together) * together, dtype=np.int64)
    padded[: len(steps)] = steps
    of_block = padded.reshape(-1, together).max(axis=1)
    usual = np.median(of_block) if len(of_block) else 0.0
    rank = np.where(of_block > _LONG * usual, -of_block, 0)
    return np.argsort(rank, kind="stable").astype(np.int32)


@compiled()
def _lay(
    indptr: Any,
    indices: Any,
    blocks: Any,
    together: int,
    starts: Any,
    columns: Any,
    values: Any,
    first: int,
    last: int,
) -> None:
    """Copy rows first..last to their places."""
    size = blocks.shape[1]
    for row in range(first, last):
        step, k = starts[row // ROWS], row % ROWS
        for j in range(indptr[row], indptr[row + 1]):
            columns[step, k] = indices[j]
            for c in range(size):
                begin = c - c % together
                width = min(together, size - begin)
                values[step, begin * ROWS + k * width + c % together] = blocks[j, c]
            step += 1
