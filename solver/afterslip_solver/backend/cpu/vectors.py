"""Operations on four-lane vectors, each in one pass; arrays are flat.

Every kernel works on rows ``start..stop`` of four numbers, so that threads may share
them.
"""

from __future__ import annotations

from typing import Any

from afterslip_solver.backend.base import LANES
from afterslip_solver.backend.cpu.lanes import (
    fma,
    load,
    store,
    widened,
    zeros_of,
)
from afterslip_solver.jit.compiling import compiled

# rows of four lanes that make one sum, by any number of threads
SUMMED = 1024


@compiled()
def dot(a: Any, b: Any, sums: Any, start: int, stop: int) -> None:
    """FP64 sums (n, lane) of a b over blocks of ``SUMMED`` rows, from start to stop."""
    n, step = a.shape[0], 4 * LANES
    for block in range(start, stop):
        first = block * SUMMED * LANES
        last = min(first + SUMMED * LANES, n)
        whole = last - (last - first) % step
        # four sums, as one would wait for every addition
        s = t = v = w = zeros_of(sums, 4)
        for p in range(first, whole, step):
            s = _product(a, b, p, s)
            t = _product(a, b, p + LANES, t)
            v = _product(a, b, p + 2 * LANES, v)
            w = _product(a, b, p + 3 * LANES, w)
        for p in range(whole, last, LANES):
            s = _product(a, b, p, s)
        store(sums, block * LANES, (s + t) + (v + w))


@compiled()
def _product(a: Any, b: Any, p: int, s: Any) -> Any:
    return fma(widened(load(a, p)), widened(load(b, p)), s)


@compiled(fastmath={"contract"})
def axpy(y: Any, a: Any, x: Any, start: int, stop: int) -> None:
    """Y += a x with one factor per lane."""
    a0, a1, a2, a3 = a[0], a[1], a[2], a[3]
    for p in range(start * LANES, stop * LANES, LANES):
        y[p] += a0 * x[p]
        y[p + 1] += a1 * x[p + 1]
        y[p + 2] += a2 * x[p + 2]
        y[p + 3] += a3 * x[p + 3]


@compiled(fastmath={"contract"})
def xpay(x: Any, b: Any, y: Any, start: int, stop: int) -> None:
    """Y = x + b y with one factor per lane."""
    b0, b1, b2, b3 = b[0], b[1], b[2], b[3]
    for p in range(start * LANES, stop * LANES, LANES):
        y[p] = x[p] + b0 * y[p]
        y[p + 1] = x[p + 1] + b1 * y[p + 1]
        y[p + 2] = x[p + 2] + b2 * y[p + 2]
        y[p + 3] = x[p + 3] + b3 * y[p + 3]


@compiled()
def scale_into(x: Any, factor: Any, out: Any, start: int, stop: int) -> None:
    """Out = factor x with one factor per lane, in the precision of out."""
    for p in range(start * LANES, stop * LANES, LANES):
        for lane in range(LANES):
            out[p + lane] = factor[lane] * x[p + lane]


@compiled(fastmath={"contract"})
def blend(past: Any, part: Any, weights: Any, out: Any, start: int, stop: int) -> None:
    """Out += sum_k weights_k past_k with a weight per node's part and lane."""
    for i in range(start, stop):
        own = part[i]
        for k in range(past.shape[0]):
            for c in range(past.shape[2]):
                for lane in range(LANES):
                    out[i, c, lane] += weights[k, own, lane] * past[k, i, c, lane]
