"""Operations on four-lane vectors, each in one pass; arrays are flat."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from afterslip_solver.kernels.lanes import LANES


@njit(cache=True, nogil=True, fastmath={"contract", "reassoc"})
def dot(a: Any, b: Any) -> Any:
    """Lane-wise inner product, summed in blocks of 1024 rows."""
    total = np.zeros(LANES)
    n = a.shape[0] // LANES
    for first in range(0, n, 1024):
        s0 = s1 = s2 = s3 = 0.0
        for i in range(first, min(first + 1024, n)):
            p = LANES * i
            s0 += a[p] * b[p]
            s1 += a[p + 1] * b[p + 1]
            s2 += a[p + 2] * b[p + 2]
            s3 += a[p + 3] * b[p + 3]
        total[0] += s0
        total[1] += s1
        total[2] += s2
        total[3] += s3
    return total


@njit(cache=True, nogil=True, fastmath={"contract"})
def axpy(y: Any, a: Any, x: Any) -> None:
    """Y += a x with one factor per lane."""
    a0, a1, a2, a3 = a[0], a[1], a[2], a[3]
    for p in range(0, y.shape[0], LANES):
        y[p] += a0 * x[p]
        y[p + 1] += a1 * x[p + 1]
        y[p + 2] += a2 * x[p + 2]
        y[p + 3] += a3 * x[p + 3]


@njit(cache=True, nogil=True, fastmath={"contract"})
def xpay(x: Any, b: Any, y: Any) -> None:
    """Y = x + b y with one factor per lane."""
    b0, b1, b2, b3 = b[0], b[1], b[2], b[3]
    for p in range(0, y.shape[0], LANES):
        y[p] = x[p] + b0 * y[p]
        y[p + 1] = x[p + 1] + b1 * y[p + 1]
        y[p + 2] = x[p + 2] + b2 * y[p + 2]
        y[p + 3] = x[p + 3] + b3 * y[p + 3]


@njit(cache=True, nogil=True)
def scale_into(x: Any, factor: Any, out: Any) -> None:
    """Out = factor x with one factor per lane, in the precision of out."""
    for p in range(0, x.shape[0], LANES):
        for lane in range(LANES):
            out[p + lane] = factor[lane] * x[p + lane]


@njit(cache=True, nogil=True, fastmath={"contract"})
def blend(past: Any, part: Any, weights: Any, out: Any, start: int, stop: int) -> None:
    """Out += sum_k weights_k past_k with a weight per node's part and lane."""
    for i in range(start, stop):
        own = part[i]
        for k in range(past.shape[0]):
            for c in range(past.shape[2]):
                for lane in range(LANES):
                    out[i, c, lane] += weights[k, own, lane] * past[k, i, c, lane]
