"""Vectors on a CUDA device: copies, sums and what becomes of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cupy
import cupyx
import numpy as np
from numpy.typing import NDArray

from afterslip_solver.backend.base import LANES
from afterslip_solver.backend.cuda import variants
from afterslip_solver.backend.cuda.iteration import dot_into
from afterslip_solver.backend.cuda.loader import NOWHERE, kernel
from afterslip_solver.backend.cuda.streams import later
from afterslip_solver.backend.cuda.uploading import upload

# bytes of results, which are copied to page-locked memory: that takes a tenth of the
# time. It is used again, and what is larger would be rounded up too far.
_RESULT = range(1 << 20, 1 << 27)
# bytes from which arrays are copied piece by piece
_LARGE = 1 << 26
# thread blocks of an inner product
_DOTS = 1024


class VectorsOnDevice:
    """The part of a backend that works on vectors; see `VectorOps`."""

    xp: Any = cupy

    def asarray(self, a: Any, dtype: Any = None) -> Any:
        """See `Backend`."""
        if isinstance(a, np.ndarray) and a.nbytes >= _LARGE:
            same = dtype is None or a.dtype == dtype
            if same and a.flags.c_contiguous:
                return upload(a)
        return cupy.ascontiguousarray(cupy.asarray(a, dtype=dtype))

    def to_host(self, a: Any) -> NDArray[Any]:
        """See `Backend`."""
        if not isinstance(a, cupy.ndarray) or a.nbytes not in _RESULT:
            return np.asarray(cupy.asnumpy(a))
        out: NDArray[Any] = cupyx.empty_pinned(a.shape, a.dtype)
        a.get(out=out)
        return out

    def later(self, a: Any) -> Callable[[], NDArray[Any]]:
        """See `Backend`."""
        return later(a)

    def dot(self, a: Any, b: Any) -> NDArray[Any]:
        """See `Backend`."""
        sums: NDArray[Any] = cupy.asnumpy(self.partial_dot(a, b)).sum(axis=0)
        return sums

    def partial_dot(self, a: Any, b: Any) -> Any:
        """See `Backend`."""
        a, b = cupy.ascontiguousarray(a), cupy.ascontiguousarray(b)
        partial = cupy.empty((_DOTS, LANES))
        run = kernel("vectors.cu", "dot", *variants.vectors(b.dtype, a.dtype))
        run((_DOTS,), (256,), (np.int64(a.size), a, b, partial))
        return partial

    def dot_into(self, a: Any, b: Any, sums: Any) -> None:
        """See `DeviceIteration`."""
        dot_into(a, b, sums)

    def axpy(self, y: Any, a: NDArray[Any], x: Any) -> None:
        """See `Backend`."""
        _combine("axpy", y, a, x)

    def xpay(self, x: Any, b: NDArray[Any], y: Any) -> None:
        """See `Backend`."""
        _combine("xpay", y, b, x)

    def scale_into(self, x: Any, factor: NDArray[Any], out: Any) -> None:
        """See `Backend`."""
        _combine("scale_into", out, factor, x)

    def blend(self, past: Any, part: Any, weights: Any, out: Any) -> None:
        """See `Backend`."""
        run = kernel("vectors.cu", "blend", *variants.vectors(out.dtype, past.dtype))
        grid = min(-(-out.size // 256), 1 << 20)
        count, n_part = np.int32(len(past)), np.int32(weights.shape[1])
        arguments = (np.int64(out.size), count, n_part, past, part, weights, out)
        run((grid,), (256,), arguments)

    def moved(self, u: Any, x: Any, factor: Any, rows: Any, before: Any) -> Any:
        """See `Backend`."""
        n = len(rows)
        largest = cupy.empty((max(1, min(-(-3 * n // 256), _DOTS)), 2, LANES))
        parts = (NOWHERE, NOWHERE) if x is None else (x, factor)
        run = kernel("conjugate.cu", "moved")
        run((len(largest),), (256,), (np.int32(n), rows, u, *parts, before, largest))
        return largest.max(axis=0)

    def descend(
        self,
        inverse: Any,
        rho: NDArray[Any],
        curvature: Any,
        p: Any,
        q: Any,
        x: Any,
        e: Any,
        z: Any,
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """See `Backend`."""
        n = len(inverse)
        grid = min(-(-n * LANES // 256), _DOTS)
        partial = cupy.empty((grid, 2, LANES))
        four = (np.float64(factor) for factor in rho)
        sums = np.int32(len(curvature)), curvature
        arguments = (np.int32(n), inverse, *four, *sums, p, q, x, e, z, partial)
        kernel("inner.cu", "descend")((grid,), (256,), arguments)
        found: NDArray[Any] = cupy.asnumpy(partial).sum(axis=0)
        return found[0], found[1]


def _combine(name: str, y: Any, factors: NDArray[Any], x: Any) -> None:
    run = kernel("vectors.cu", name, *variants.vectors(y.dtype, x.dtype))
    four = (np.float64(factor) for factor in factors)
    grid = min(-(-y.size // 256), 1 << 20)
    run((grid,), (256,), (np.int64(y.size), y, *four, x))
