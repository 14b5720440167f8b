"""Block matrix times four lanes.

Matrices are block CSR with flat values (nine per block, row-major); vectors are flat,
4 lanes innermost. Every kernel works on block rows ``start..stop`` so that a caller
may share rows between threads.
"""

from __future__ import annotations

from typing import Any

from afterslip_solver.backend.base import LANES
from afterslip_solver.backend.cpu.lanes import (
    fma,
    load,
    prefetch,
    repeated,
    rows,
    splat,
    store,
    strided,
    zeros_of,
)
from afterslip_solver.jit.compiling import compiled

WIDTH = 3 * LANES
# bytes: the hardware does not read so far ahead
_AHEAD = 4096


@compiled(inline="always")
def three(x: Any, o: int) -> Any:
    """Three components of a node, whose first is at ``o``."""
    return load(x, o), load(x, o + LANES), load(x, o + 2 * LANES)


@compiled(inline="always")
def put_three(x: Any, o: int, s: Any, t: Any, w: Any) -> None:
    """Write them."""
    store(x, o, s)
    store(x, o + LANES, t)
    store(x, o + 2 * LANES, w)


@compiled(inline="always")
def subtracted(found: Any, b: Any, row: int, out: Any) -> None:
    """Write a row of b - A x, where A x is ``found``."""
    o = WIDTH * row
    s, t, w = three(b, o)
    put_three(out, o, s - found[0], t - found[1], w - found[2])


@compiled(inline="always")
def _row(indptr: Any, indices: Any, data: Any, x: Any, i: int) -> Any:
    """Row i of A x, by component.

    Two blocks at a time add to three sums each: with three in all, a block would wait
    for the additions of the one before. Columns are read eight entries at a time, so
    that none lies behind the block.
    """
    a = b = c = d = e = f = zeros_of(x, 16)
    start, stop = indptr[i], indptr[i + 1]
    pairs = (stop - start) >> 1
    for pair in range(pairs):
        k = start + 2 * pair
        p, o, q = 9 * k, WIDTH * indices[k], WIDTH * indices[k + 1]
        prefetch(data, p, _AHEAD)
        a = fma(strided(data, p, 0), repeated(x, o), a)
        b = fma(strided(data, p + 1, 0), repeated(x, o + LANES), b)
        c = fma(strided(data, p + 1, 1), repeated(x, o + 2 * LANES), c)
        d = fma(strided(data, p + 9, 0), repeated(x, q), d)
        e = fma(strided(data, p + 10, 0), repeated(x, q + LANES), e)
        f = fma(strided(data, p + 10, 1), repeated(x, q + 2 * LANES), f)
    # one at most; a branch here would count references to the arrays
    for k in range(start + 2 * pairs, stop):
        p, o = 9 * k, WIDTH * indices[k]
        a = fma(strided(data, p, 0), repeated(x, o), a)
        b = fma(strided(data, p + 1, 0), repeated(x, o + LANES), b)
        c = fma(strided(data, p + 1, 1), repeated(x, o + 2 * LANES), c)
    return rows((a + b + c) + (d + e + f))


@compiled()
def multiply(
    indptr: Any,
    indices: Any,
    data: Any,
    x: Any,
    out: Any,
    add: bool,
    start: int,
    stop: int,
) -> None:
    """Out (+)= A x."""
    for i in range(start, stop):
        s, t, w = _row(indptr, indices, data, x, i)
        o = WIDTH * i
        if add:
            s += load(out, o)
            t += load(out, o + LANES)
            w += load(out, o + 2 * LANES)
        put_three(out, o, s, t, w)


@compiled()
def residual(
    indptr: Any,
    indices: Any,
    data: Any,
    b: Any,
    x: Any,
    out: Any,
    start: int,
    stop: int,
) -> None:
    """Out = b - A x."""
    for i in range(start, stop):
        subtracted(_row(indptr, indices, data, x, i), b, i, out)


@compiled()
def _step(inverse: Any, q: int, r0: Any, r1: Any, r2: Any) -> Any:
    """One row of D^-1 r."""
    s = splat(inverse[q]) * r0
    s = fma(splat(inverse[q + 1]), r1, s)
    return fma(splat(inverse[q + 2]), r2, s)


@compiled()
def relaxed(
    found: Any, inverse: Any, b: Any, x: Any, factor: Any, row: int, out: Any, at: int
) -> None:
    """Write a row of x + gain D^-1 (b - A x), where A x is ``found``, at ``at``."""
    o, q = WIDTH * row, 9 * row
    s = load(b, o) - found[0]
    t = load(b, o + LANES) - found[1]
    w = load(b, o + 2 * LANES) - found[2]
    for c in range(3):
        z = _step(inverse, q + 3 * c, s, t, w)
        store(out, at + c * LANES, fma(factor, z, load(x, o + c * LANES)))


@compiled()
def relax(
    indptr: Any,
    indices: Any,
    data: Any,
    inverse: Any,
    b: Any,
    x: Any,
    gain: float,
    out: Any,
    start: int,
    stop: int,
) -> None:
    """Out = x + gain D^-1 (b - A x)."""
    factor = splat(gain)
    for i in range(start, stop):
        found = _row(indptr, indices, data, x, i)
        relaxed(found, inverse, b, x, factor, i, out, WIDTH * i)


@compiled()
def relax_rows(
    indptr: Any,
    indices: Any,
    data: Any,
    which: Any,
    inverse: Any,
    b: Any,
    x: Any,
    gain: float,
    out: Any,
    start: int,
    stop: int,
) -> None:
    """Out = x + gain D^-1 (b - A x) on the rows ``which``, packed; A has no others."""
    factor = splat(gain)
    for i in range(start, stop):
        found = _row(indptr, indices, data, x, i)
        relaxed(found, inverse, b, x, factor, which[i], out, WIDTH * i)


@compiled()
def spread(which: Any, packed: Any, x: Any, start: int, stop: int) -> None:
    """Put packed rows in their places of x."""
    for i in range(start, stop):
        for m in range(0, WIDTH, LANES):
            store(x, WIDTH * which[i] + m, load(packed, WIDTH * i + m))


@compiled()
def scale_blocks(
    inverse: Any, size: int, r: Any, gain: float, out: Any, start: int, stop: int
) -> None:
    """Out = gain D^-1 r with square diagonal blocks of any size."""
    factor = splat(gain)
    for i in range(start, stop):
        o = i * size * LANES
        for a in range(size):
            q = (i * size + a) * size
            s = zeros_of(out, 4)
            for c in range(size):
                s = fma(splat(inverse[q + c]), load(r, o + c * LANES), s)
            store(out, o + a * LANES, factor * s)


@compiled()
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
        s = t = w = zeros_of(x, 4)
        for k in range(indptr[i], indptr[i + 1]):
            weight, o = splat(weights[k]), WIDTH * indices[k]
            s = fma(weight, load(x, o), s)
            t = fma(weight, load(x, o + LANES), t)
            w = fma(weight, load(x, o + 2 * LANES), w)
        s *= splat(mask[i, 0])
        t *= splat(mask[i, 1])
        w *= splat(mask[i, 2])
        o = WIDTH * i
        if add:
            s += load(out, o)
            t += load(out, o + LANES)
            w += load(out, o + 2 * LANES)
        put_three(out, o, s, t, w)
