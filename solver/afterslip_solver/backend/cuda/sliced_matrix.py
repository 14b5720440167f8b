"""Matrices of 3 x 3 blocks in slices, as those of linear elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from afterslip_solver.backend.cuda import half, variants
from afterslip_solver.backend.cuda.loader import kernel
from afterslip_solver.backend.cuda.slices import ROWS, in_slices

# up to which four warps share a slice: one would wait for its steps, one after the
# other, while most of the device has nothing to do
_SHARED = 1 << 18
# numbers in FP16 that a thread reads at once
_TOGETHER = 8


class SlicedMatrix:
    """A matrix of 3 x 3 blocks and what is done with it; see sparse.cu.

    Parameters
    ----------
    indptr, indices, data : block CSR, data (n_block, 3, 3).
    to_device : copies an array.

    Attributes
    ----------
    bytes : memory of the matrix.
    """

    def __init__(
        self, indptr: Any, indices: Any, data: Any, to_device: Callable[[Any], Any]
    ) -> None:
        self._n = len(indptr) - 1
        self._half = data.dtype == np.float16
        host = in_slices(indptr, indices, data, _TOGETHER if self._half else 1)
        self._parts = [to_device(part) for part in host]
        self.bytes = int(sum(part.nbytes for part in self._parts))
        self._packed = half.PackedBlocks()

    def residual(self, b: Any, x: Any, out: Any) -> None:
        """Out = A x, b - A x where b is an array, or out + A x where that is out."""
        self._run("multiply3", x, x, b, out)

    def relax(self, inverse: Any, b: Any, x: Any, gain: float, out: Any) -> None:
        """Out = x + gain D^-1 (b - A x); D^-1 is in FP16 where the matrix is."""
        diagonal = self._packed.of(inverse) if self._half else inverse
        self._run("relax3", x, diagonal, b, x, x.dtype.type(gain), out)

    def _run(self, name: str, x: Any, *arguments: Any) -> None:
        few = self._n <= _SHARED
        options = variants.sparse(x.dtype, self._parts[-1].dtype)
        run = kernel("sparse.cu", f"{name}_few" if few else name, *options)
        rows, threads = (ROWS, 4 * ROWS) if few else (64, 64)
        given = (np.int32(self._n), *self._parts, *arguments)
        run((-(-self._n // rows),), (threads,), given)
