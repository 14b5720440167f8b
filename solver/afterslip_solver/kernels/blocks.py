"""Block matrix times four lanes.

Matrices are block CSR with flat values (rows * columns per block, row-major);
vectors are flat, 4 lanes innermost. Every kernel works on block rows
``start..stop`` so that a caller may share rows between threads.
"""

from __future__ import annotations

from typing import Any

from numba import njit

from afterslip_solver.kernels.lanes import LANES, row_times_lanes

WIDTH = 3 * LANES


@njit(cache=True, nogil=True)
def multiply3(
    indptr: Any, indices: Any, data: Any, x: Any, out: Any, start: int, stop: int
) -> None:
    """Out = A x for 3 x 3 blocks."""
    for i in range(start, stop):
        s = row_times_lanes(data, indices, x, indptr[i], indptr[i + 1])
        for m in range(WIDTH):
            out[WIDTH * i + m] = s[m]


@njit(cache=True, nogil=True)
def residual3(
    indptr: Any,
    indices: Any,
    data: Any,
    b: Any,
    x: Any,
    out: Any,
    start: int,
    stop: int,
) -> None:
    """Out = b - A x for 3 x 3 blocks."""
    for i in range(start, stop):
        s = row_times_lanes(data, indices, x, indptr[i], indptr[i + 1])
        for m in range(WIDTH):
            out[WIDTH * i + m] = b[WIDTH * i + m] - s[m]


@njit(cache=True, nogil=True, fastmath={"contract"})
def chebyshev3(
    indptr: Any,
    indices: Any,
    data: Any,
    inverse: Any,
    b: Any,
    x: Any,
    d: Any,
    keep: float,
    gain: float,
    out: Any,
    start: int,
    stop: int,
) -> None:
    """D = keep d + gain D^-1 (b - A x); out = x + d. One pass over A."""
    for i in range(start, stop):
        s = row_times_lanes(data, indices, x, indptr[i], indptr[i + 1])
        o = WIDTH * i
        for lane in range(LANES):
            r0 = b[o + lane] - s[lane]
            r1 = b[o + LANES + lane] - s[LANES + lane]
            r2 = b[o + 2 * LANES + lane] - s[2 * LANES + lane]
            for row in range(3):
                p = o + row * LANES + lane
                q = 9 * i + 3 * row
                z = inverse[q] * r0 + inverse[q + 1] * r1 + inverse[q + 2] * r2
                step = keep * d[p] + gain * z
                d[p] = step
                out[p] = x[p] + step


@njit(cache=True, nogil=True, fastmath={"contract"})
def relax_rows3(
    indptr: Any,
    indices: Any,
    data: Any,
    rows: Any,
    inverse: Any,
    b: Any,
    x: Any,
    gain: float,
    out: Any,
    start: int,
    stop: int,
) -> None:
    """Out = x + gain D^-1 (b - A x) on ``rows``, which A has only."""
    for i in range(start, stop):
        s = row_times_lanes(data, indices, x, indptr[i], indptr[i + 1])
        o = WIDTH * rows[i]
        for lane in range(LANES):
            r0 = b[o + lane] - s[lane]
            r1 = b[o + LANES + lane] - s[LANES + lane]
            r2 = b[o + 2 * LANES + lane] - s[2 * LANES + lane]
            for row in range(3):
                p = row * LANES + lane
                q = 9 * rows[i] + 3 * row
                z = inverse[q] * r0 + inverse[q + 1] * r1 + inverse[q + 2] * r2
                out[o + p] = x[o + p] + gain * z


@njit(cache=True, nogil=True, fastmath={"contract"})
def multiply(
    indptr: Any,
    indices: Any,
    data: Any,
    rows: int,
    columns: int,
    x: Any,
    out: Any,
    start: int,
    stop: int,
) -> None:
    """Out = A x for blocks of any size (coarse levels)."""
    for i in range(start, stop):
        o = i * rows * LANES
        for m in range(rows * LANES):
            out[o + m] = 0
        for k in range(indptr[i], indptr[i + 1]):
            p = indices[k] * columns * LANES
            q = k * rows * columns
            for r in range(rows):
                s0 = out[o + r * LANES]
                s1 = out[o + r * LANES + 1]
                s2 = out[o + r * LANES + 2]
                s3 = out[o + r * LANES + 3]
                for c in range(columns):
                    a = data[q + r * columns + c]
                    s0 += a * x[p + c * LANES]
                    s1 += a * x[p + c * LANES + 1]
                    s2 += a * x[p + c * LANES + 2]
                    s3 += a * x[p + c * LANES + 3]
                out[o + r * LANES] = s0
                out[o + r * LANES + 1] = s1
                out[o + r * LANES + 2] = s2
                out[o + r * LANES + 3] = s3


@njit(cache=True, nogil=True, fastmath={"contract"})
def scale_blocks(
    inverse: Any, rows: int, r: Any, keep: float, gain: float, out: Any
) -> None:
    """Out = keep out + gain D^-1 r with square diagonal blocks."""
    n = r.shape[0] // (rows * LANES)
    for i in range(n):
        o = i * rows * LANES
        for a in range(rows):
            q = (i * rows + a) * rows
            for lane in range(LANES):
                s = inverse[q] * r[o + lane]
                for c in range(1, rows):
                    s += inverse[q + c] * r[o + c * LANES + lane]
                p = o + a * LANES + lane
                out[p] = keep * out[p] + gain * s if keep != 0 else gain * s


@njit(cache=True, nogil=True)
def transfer(
    indptr: Any,
    indices: Any,
    weights: Any,
    mask: Any,
    x: Any,
    out: Any,
    add: bool,
    start: int,
    stop: int,
) -> None:
    """Out (+)= mask * (W x) with one weight for all three components of a node.

    ``mask`` is (rows, 3) and is 0 where a component is held fixed.
    """
    for i in range(start, stop):
        for a in range(3):
            keep = mask[i, a]
            for lane in range(LANES):
                m = a * LANES + lane
                s = keep * 0
                for k in range(indptr[i], indptr[i + 1]):
                    s += weights[k] * x[WIDTH * indices[k] + m]
                s *= keep
                out[WIDTH * i + m] = out[WIDTH * i + m] + s if add else s
