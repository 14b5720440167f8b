"""Matrices of 3 x 3 blocks in slices, as those of linear elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from afterslip_solver.backend.cuda import half, variants
from afterslip_solver.backend.cuda.loader import kernel
from afterslip_solver.backend.cuda.slices import ROWS, in_slices, longest_first

# rows up to which there are few
_SHARED = 1 << 18
# of a thread block, where there are many
_SLICES = 2
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
        # four warps share a slice then: one would wait for its steps, one after the
        # other, while most of the device has nothing to do
        self._few = self._n <= _SHARED
        host = in_slices(indptr, indices, data, _TOGETHER if self._half else 1)
        order = longest_first(np.diff(host[0]), 1 if self._few else _SLICES)
        self._parts = [to_device(part) for part in (order, *host)]
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
        options = variants.sparse(x.dtype, self._parts[-1].dtype)
        run = kernel("sparse.cu", f"{name}_few" if self._few else name, *options)
        threads = 4 * ROWS if self._few else _SLICES * ROWS
        given = (np.int32(self._n), *self._parts, *arguments)
        run((len(self._parts[0]),), (threads,), given)
