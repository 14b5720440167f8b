"""Matrices of 3 x 3 blocks in slices, as those of linear elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cupy
import numpy as np
from numpy.typing import NDArray

from afterslip_solver.backend.cuda import half, variants
from afterslip_solver.backend.cuda.loader import NOWHERE, kernel
from afterslip_solver.backend.cuda.slices import ROWS, in_slices, longest_first

# rows up to which there are few
_SHARED = 1 << 18
# of a thread block, where there are many
_SLICES = 2
# of numbers in FP16
_LARGEST = float(np.finfo(np.float16).max)
# numbers in FP16 that a thread reads at once
_TOGETHER = 8


class SlicedMatrix:
    """A matrix of 3 x 3 blocks and what is done with it; see sparse.cu.

    Parameters
    ----------
    indptr, indices, data : block CSR, data (n_block, 3, 3).
    to_device : copies an array. store : precision of the matrix, default that of data.

    Attributes
    ----------
    bytes : memory of the matrix.
    """

    def __init__(
        self,
        indptr: Any,
        indices: Any,
        data: Any,
        to_device: Callable[..., Any],
        store: Any = None,
    ) -> None:
        self._n = len(indptr) - 1
        self._half = (data.dtype if store is None else store) == np.float16
        # four warps share a slice then: one would wait for its steps, one after the
        # other, while most of the device has nothing to do
        self._few = self._n <= _SHARED
        host = in_slices(indptr, indices, data, _TOGETHER if self._half else 1)
        order = longest_first(np.diff(host[0]), 1 if self._few else _SLICES)
        *tables, values = (to_device(part) for part in (order, *host))
        self._parts = [*tables, to_device(values, store)]
        self.bytes = int(sum(part.nbytes for part in self._parts))
        self._packed = half.PackedBlocks()

    def residual(self, b: Any, x: Any, out: Any) -> None:
        """Out = A x, b - A x where b is an array, or out + A x where that is out."""
        self._run("multiply3", x, x, b, out)

    def relax(
        self, inverse: Any, b: Any, x: Any, gain: float, out: Any, rows: Any = NOWHERE
    ) -> None:
        """Out = x + gain D^-1 (b - A x); D^-1 is in FP16 where the matrix is.

        Parameters
        ----------
        rows : of which nodes the rows are, where not of all; `Row` in sparse.cu.
        """
        diagonal = self._packed.of(inverse) if self._half else inverse
        self._run("relax3", x, rows, diagonal, b, x, x.dtype.type(gain), out)

    def _run(self, name: str, x: Any, *arguments: Any) -> None:
        options = variants.sparse(x.dtype, self._parts[-1].dtype)
        run = kernel("sparse.cu", f"{name}_few" if self._few else name, *options)
        threads = 4 * ROWS if self._few else _SLICES * ROWS
        given = (np.int32(self._n), *self._parts, *arguments)
        run((len(self._parts[0]),), (threads,), given)


# `Row` of sparse.cu
_ROW = np.dtype([("node", np.int32), ("size", np.float32)])


class SlicedRows:
    """Some rows of a matrix of 3 x 3 blocks, which are relaxed without the others.

    They are in the order of their lengths, in which rows of quadratic elements differ
    by far, and divided by powers of two that make their numbers suit FP16.

    Parameters
    ----------
    rows : (n,) their numbers. assembled : indptr, indices and data of them.
    inverse : (n_node, 3, 3) float32 inverse diagonal blocks of all rows.
    store, to_device : as in `SlicedMatrix`; numbers too large for FP16 are in FP32.
    """

    def __init__(
        self,
        rows: NDArray[np.int64],
        assembled: tuple[Any, Any, NDArray[np.float32]],
        inverse: Any,
        store: Any,
        to_device: Callable[..., Any],
    ) -> None:
        indptr, indices, data = assembled
        order = np.argsort(-np.diff(indptr), kind="stable")
        counts = np.diff(indptr)[order]
        starts = np.concatenate([[0], np.cumsum(counts)])
        take = np.repeat(indptr[order] - starts[:-1], counts) + np.arange(starts[-1])
        self._inverse = inverse[to_device(rows[order])]
        table = np.empty(len(rows), dtype=_ROW)
        table["node"] = rows[order]
        table["size"] = _sizes(cupy.asnumpy(self._inverse))
        values = data[take] / np.repeat(table["size"], counts)[:, None, None]
        if max(values.max(), -values.min()) > _LARGEST:
            store = np.float32
        self._rows = to_device(table.view(np.int64))
        columns = indices[take]
        self._matrix = SlicedMatrix(starts, columns, values, to_device, store)
        own = self._matrix.bytes + self._rows.nbytes + self._inverse.nbytes
        self.bytes = int(own)

    def relax(self, b: Any, x: Any, gain: float, spare: Any) -> None:
        """X += gain D^-1 (b - A x) on these rows; ``spare`` is overwritten."""
        rows = self._rows
        self._matrix.relax(self._inverse, b, x, gain, spare, rows)
        spread = kernel("sparse.cu", "spread_rows", *variants.sparse(x.dtype))
        grid = -(-3 * len(rows) // 128)
        spread((grid,), (128,), (np.int32(len(rows)), rows, spare, x))


def _sizes(inverse: NDArray[np.float32]) -> NDArray[np.float32]:
    """(n,) powers of two near the diagonals whose inverses (n, 3, 3) are given."""
    largest = inverse.diagonal(axis1=1, axis2=2).max(axis=1)
    # 1 where a node is held
    free = np.where(largest > 0.0, largest, 1.0)
    return np.asarray(np.exp2(-np.round(np.log2(free))), dtype=np.float32)
