"""Copies of large arrays to the device.

CuPy copies an array to page-locked memory that is as large, and which takes longer to
get than to fill, by one thread. Here all threads fill two small pieces in turn.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import cupy
import cupyx
import numpy as np
from numpy.typing import NDArray

from afterslip_solver.jit.threads import over

# bytes of a piece, and of what a thread copies at least
_PIECE = 1 << 26
_FEW = 1 << 21


def upload(a: NDArray[Any]) -> Any:
    """Return a copy of an array, contiguous in C's order, on the device."""
    out = cupy.empty(a.shape, a.dtype)
    source = a.reshape(-1).view(np.uint8)
    stream = cupy.cuda.get_current_stream()
    pieces = [(cupyx.empty_pinned(_PIECE, np.uint8), _event()) for _ in "ab"]
    for number, start in enumerate(range(0, len(source), _PIECE)):
        piece, copied = pieces[number % 2]
        copied.synchronize()
        part = source[start : start + _PIECE]
        over(len(part), partial(_copy, part, piece), few=_FEW, per_thread=1)
        cupy.cuda.runtime.memcpyAsync(
            out.data.ptr + start,
            piece.ctypes.data,
            len(part),
            cupy.cuda.runtime.memcpyHostToDevice,
            stream.ptr,
        )
        copied.record(stream)
    for _, copied in pieces:
        copied.synchronize()
    return out


def _event() -> Any:
    return cupy.cuda.Event(disable_timing=True)


def _copy(
    source: NDArray[np.uint8], out: NDArray[np.uint8], first: int, last: int
) -> None:
    out[first:last] = source[first:last]
