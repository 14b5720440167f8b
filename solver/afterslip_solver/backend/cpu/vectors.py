"""Operations on four-lane vectors, each in one pass; arrays are flat.

Every kernel works on rows ``start..stop`` of four numbers, so that threads may share
them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from afterslip_solver.backend.base import LANES
from afterslip_solver.backend.cpu.lanes import (
    as_in,
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


@compiled()
def axpy(y: Any, a: Any, x: Any, start: int, stop: int) -> None:
    """Y += a x with one factor per lane."""
    factor = load(a, 0)
    for p in range(start * LANES, stop * LANES, LANES):
        store(y, p, fma(factor, as_in(y, load(x, p)), load(y, p)))


@compiled()
def xpay(x: Any, b: Any, y: Any, start: int, stop: int) -> None:
    """Y = x + b y with one factor per lane."""
    factor = load(b, 0)
    for p in range(start * LANES, stop * LANES, LANES):
        store(y, p, fma(factor, load(y, p), as_in(y, load(x, p))))


@compiled()
def moved(u: Any, x: Any, factor: Any, rows: Any, before: Any, out: Any) -> None:
    """See `Backend`; out is (2, lane), and x has no rows where there is none."""
    out[...] = 0.0
    for n in range(rows.shape[0]):
        i = rows[n]
        for c in range(3):
            for lane in range(LANES):
                now = u[i, c, lane]
                if x.shape[0]:
                    now += factor[lane] * x[i, c, lane]
                # a number that is none stays
                out[0, lane] = np.maximum(out[0, lane], abs(now - before[n, c, lane]))
                out[1, lane] = np.maximum(out[1, lane], abs(now))
                before[n, c, lane] = now


@compiled()
def scale_into(x: Any, factor: Any, out: Any, start: int, stop: int) -> None:
    """Out = factor x with one factor per lane, in the precision of out."""
    for p in range(start * LANES, stop * LANES, LANES):
        for lane in range(LANES):
            out[p + lane] = factor[lane] * x[p + lane]


@compiled()
def blend(past: Any, part: Any, weights: Any, out: Any, start: int, stop: int) -> None:
    """Out += sum_k weights_k past_k with a weight per node's part and lane."""
    n, components, parts = past.shape[1], past.shape[2], weights.shape[1]
    for i in range(start, stop):
        for c in range(components):
            at = i * components + c
            s = load(out, LANES * at)
            for k in range(past.shape[0]):
                weight = load(weights, LANES * (k * parts + part[i]))
                s = fma(weight, load(past, LANES * (k * n * components + at)), s)
            store(out, LANES * at, s)
