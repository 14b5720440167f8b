"""K u of second-order tetrahedra, two elements at once, in either precision.

The method is that of `tets`, with fewer operations: displacements are taken relative to
the element's first vertex, so that gradients of three barycentric coordinates suffice,
and the moduli hold V/20. Elements come in chunks. Each adds to a small array of its own
and writes the rows of nodes that no other chunk has, so that threads may share the
chunks and sums do not depend on the number of threads. Rows of other nodes are added up
last.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from afterslip_solver.backend.base import LANES
from afterslip_solver.backend.cpu.blocks import (
    WIDTH,
    put_three,
    relaxed,
    subtracted,
    three,
)
from afterslip_solver.backend.cpu.lanes import (
    fma,
    load,
    prefetch,
    splat,
    store,
    zeros_of,
)
from afterslip_solver.backend.cpu.pairs import (
    TWO,
    add_scattered,
    all_of,
    both,
    each,
    gathered,
)
from afterslip_solver.jit.compiling import compiled

# what is made of K u
PRODUCT, RESIDUAL, RELAXED = 0, 1, 2
# numbers of an element: three gradients and two moduli
NUMBERS = 11
NODES = 10
# entries of two elements: one component, a vertex' gradient, its stress
_ONE = TWO * LANES
_VERTEX = 9 * _ONE
_STRESS = 6 * _ONE
# where the components of a row of stress lie
_ROWS = np.array([[0, 3, 5], [3, 1, 4], [5, 4, 2]]) * _ONE
# pairs of elements for whose displacements memory is asked before their turn
_AHEAD = 2


@compiled(inline="always")
def _gradient(numbers: Any, at: int) -> Any:
    return each(numbers, at), each(numbers, at + TWO), each(numbers, at + 2 * TWO)


@compiled(inline="always")
def _less(u: Any, nodes: Any, at: int, further: int, first: Any) -> Any:
    return gathered(u, nodes, NODES, at, further) - first


@compiled(inline="always")
def _derivatives(u: Any, nodes: Any, at: int, o: int) -> Any:
    """Differentiate one component along three coordinates, at the four vertices.

    Nodes 4 to 9 lie on the edges 01, 12, 02, 03, 13 and 23.
    """
    three, four = all_of(u, 3), all_of(u, 4)
    first = gathered(u, nodes, NODES, at, o)
    u1, u2 = _less(u, nodes, at + 1, o, first), _less(u, nodes, at + 2, o, first)
    u3, u4 = _less(u, nodes, at + 3, o, first), _less(u, nodes, at + 4, o, first)
    u5, u6 = _less(u, nodes, at + 5, o, first), _less(u, nodes, at + 6, o, first)
    u7, u8 = _less(u, nodes, at + 7, o, first), _less(u, nodes, at + 8, o, first)
    u9 = _less(u, nodes, at + 9, o, first)
    return (
        (four * u4 - u1, four * u6 - u2, four * u7 - u3),
        (three * u1 - four * u4, four * (u5 - u4) - u2, four * (u8 - u4) - u3),
        (four * (u5 - u6) - u1, three * u2 - four * u6, four * (u9 - u6) - u3),
        (four * (u8 - u7) - u1, four * (u9 - u7) - u2, three * u3 - four * u7),
    )


@compiled(inline="always")
def _put_along(d: Any, g: Any, h: Any, k: Any, out: Any, at: int) -> None:
    """Write the gradient of a component with such derivatives."""
    for_x = fma(d[2], k[0], fma(d[1], h[0], d[0] * g[0]))
    for_y = fma(d[2], k[1], fma(d[1], h[1], d[0] * g[1]))
    for_z = fma(d[2], k[2], fma(d[1], h[2], d[0] * g[2]))
    store(out, at, for_x)
    store(out, at + _ONE, for_y)
    store(out, at + 2 * _ONE, for_z)


@compiled(inline="always")
def _put_six(s: Any, o: int, six: Any) -> None:
    store(s, o, six[0])
    store(s, o + _ONE, six[1])
    store(s, o + 2 * _ONE, six[2])
    store(s, o + 3 * _ONE, six[3])
    store(s, o + 4 * _ONE, six[4])
    store(s, o + 5 * _ONE, six[5])


@compiled(inline="always")
def _stress(s: Any, o: int, lam: Any, mu: Any) -> Any:
    """Put the stress of a gradient (3, 3, 8) in its place, xx, yy, zz, xy, yz, xz."""
    a, b, c = both(s, o), both(s, o + 4 * _ONE), both(s, o + 8 * _ONE)
    xy = mu * (both(s, o + _ONE) + both(s, o + 3 * _ONE))
    xz = mu * (both(s, o + 2 * _ONE) + both(s, o + 6 * _ONE))
    yz = mu * (both(s, o + 5 * _ONE) + both(s, o + 7 * _ONE))
    p, twice = lam * (a + b + c), mu + mu
    xx, yy, zz = fma(twice, a, p), fma(twice, b, p), fma(twice, c, p)
    six = xx, yy, zz, xy, yz, xz
    _put_six(s, o, six)
    return six


@compiled(inline="always")
def _plus(a: Any, b: Any) -> Any:
    return a[0] + b[0], a[1] + b[1], a[2] + b[2], a[3] + b[3], a[4] + b[4], a[5] + b[5]


@compiled(inline="always")
def _along(s: Any, o: int, rows: Any, total: Any, g: Any, h: Any, k: Any) -> Any:
    """One row of a vertex' stress, and of the sum, along three gradients."""
    x = both(s, o + rows[0]) + total[0]
    y = both(s, o + rows[1]) + total[1]
    z = both(s, o + rows[2]) + total[2]
    return (
        fma(z, g[2], fma(y, g[1], x * g[0])),
        fma(z, h[2], fma(y, h[1], x * h[0])),
        fma(z, k[2], fma(y, k[1], x * k[0])),
    )


@compiled(inline="always")
def _add_forces(
    s: Any,
    rows: Any,
    g: Any,
    h: Any,
    k: Any,
    nodes: Any,
    at: int,
    out: Any,
    further: int,
) -> None:
    """Add one component of the forces of the ten nodes."""
    o = 4 * _VERTEX
    total = both(s, o + rows[0]), both(s, o + rows[1]), both(s, o + rows[2])
    three, four = all_of(s, 3), all_of(s, 4)
    t01, t02, t03 = _along(s, 0, rows, total, g, h, k)
    t11, t12, t13 = _along(s, _VERTEX, rows, total, g, h, k)
    t21, t22, t23 = _along(s, 2 * _VERTEX, rows, total, g, h, k)
    t31, t32, t33 = _along(s, 3 * _VERTEX, rows, total, g, h, k)
    f1 = three * t11 - (t01 + t21 + t31)
    f2 = three * t22 - (t02 + t12 + t32)
    f3 = three * t33 - (t03 + t13 + t23)
    f4 = four * (t01 - (t11 + t12 + t13))
    f5, f8, f9 = four * (t12 + t21), four * (t13 + t31), four * (t23 + t32)
    f6 = four * (t02 - (t21 + t22 + t23))
    f7 = four * (t03 - (t31 + t32 + t33))
    # of a motion of the whole element there are no forces
    f0 = all_of(s, 0) - ((f1 + f2 + f3) + (f4 + f5 + f6) + (f7 + f8 + f9))
    add_scattered(out, nodes, NODES, at, further, f0)
    add_scattered(out, nodes, NODES, at + 1, further, f1)
    add_scattered(out, nodes, NODES, at + 2, further, f2)
    add_scattered(out, nodes, NODES, at + 3, further, f3)
    add_scattered(out, nodes, NODES, at + 4, further, f4)
    add_scattered(out, nodes, NODES, at + 5, further, f5)
    add_scattered(out, nodes, NODES, at + 6, further, f6)
    add_scattered(out, nodes, NODES, at + 7, further, f7)
    add_scattered(out, nodes, NODES, at + 8, further, f8)
    add_scattered(out, nodes, NODES, at + 9, further, f9)


@compiled()
def _add_pairs(
    nodes: Any, places: Any, numbers: Any, first: int, last: int, u: Any, sums: Any
) -> None:
    """Add the forces of pairs first..last of elements."""
    s = np.empty(4 * _VERTEX + _STRESS, u.dtype)
    for pair in range(first, last):
        ahead = TWO * NODES * min(pair + _AHEAD, last - 1)
        for n in range(ahead, ahead + TWO * NODES):
            prefetch(u, nodes[n], 2 * LANES * u.itemsize)
        at, o = TWO * NODES * pair, TWO * NUMBERS * pair
        g, h = _gradient(numbers, o), _gradient(numbers, o + 3 * TWO)
        k = _gradient(numbers, o + 6 * TWO)
        lam, mu = each(numbers, o + 9 * TWO), each(numbers, o + 10 * TWO)
        for c in range(3):
            d = _derivatives(u, nodes, at, c * LANES)
            own = 3 * c * _ONE
            _put_along(d[0], g, h, k, s, own)
            _put_along(d[1], g, h, k, s, own + _VERTEX)
            _put_along(d[2], g, h, k, s, own + 2 * _VERTEX)
            _put_along(d[3], g, h, k, s, own + 3 * _VERTEX)
        total = _stress(s, 0, lam, mu)
        for a in range(1, 4):
            total = _plus(total, _stress(s, a * _VERTEX, lam, mu))
        _put_six(s, 4 * _VERTEX, total)
        for c in range(3):
            rows = _ROWS[c, 0], _ROWS[c, 1], _ROWS[c, 2]
            _add_forces(s, rows, g, h, k, places, at, sums, c * LANES)


@compiled()
def _finish(
    kind: int,
    which: Any,
    sums: Any,
    inverse: Any,
    b: Any,
    u: Any,
    gain: Any,
    out: Any,
    first: int,
    last: int,
) -> None:
    """Write rows ``which[first:last]`` of what ``kind`` says; ``sums`` are K u there.

    A branch within the loops would count references to the arrays.
    """
    factor = splat(gain)
    if kind == RELAXED:
        for n in range(first, last):
            found, i = three(sums, WIDTH * (n - first)), which[n]
            relaxed(found, inverse, b, u, factor, i, out, WIDTH * i)
    elif kind == RESIDUAL:
        for n in range(first, last):
            subtracted(three(sums, WIDTH * (n - first)), b, which[n], out)
    else:
        for n in range(first, last):
            x, y, z = three(sums, WIDTH * (n - first))
            put_three(out, WIDTH * which[n], x, y, z)


@compiled()
def apply(
    nodes: Any,
    places: Any,
    numbers: Any,
    pairs: int,
    rows: Any,
    inner: Any,
    owners: Any,
    kind: int,
    inverse: Any,
    b: Any,
    u: Any,
    gain: Any,
    out: Any,
    shared: Any,
    sums: Any,
    first: int,
    last: int,
) -> None:
    """Chunks first..last of K u, b - K u or u + gain D^-1 (b - K u).

    Parameters
    ----------
    nodes : (n_elem * 10,) int32, where a node's displacements begin in u.
    places : the same of its row in the chunk.
    numbers : (n_pair, 11, 2), gradients 1 to 3, lam V/20 and mu V/20 of two elements.
    pairs : in a chunk. rows : (n_chunk + 1,) where its rows begin in ``owners``.
    inner : (n_chunk,) rows of nodes that no other chunk has; they come first.
    owners : (n_row,) nodes.
    kind : `PRODUCT`, `RESIDUAL` or `RELAXED`; what it does not need is not read.
    shared : (n_shared, 3, lane), gets the other rows, chunk by chunk.
    sums : (n, 3, lane), overwritten; n rows are the most that a chunk has.
    """
    zero = zeros_of(u, 4)
    slot = 3 * (rows[first] - inner[:first].sum())
    for chunk in range(first, last):
        begin, count = rows[chunk], rows[chunk + 1] - rows[chunk]
        for k in range(0, WIDTH * count, LANES):
            store(sums, k, zero)
        stop = min(pairs * (chunk + 1), numbers.shape[0])
        _add_pairs(nodes, places, numbers, pairs * chunk, stop, u, sums)
        end = begin + inner[chunk]
        _finish(kind, owners, sums, inverse, b, u, gain, out, begin, end)
        for k in range(WIDTH * inner[chunk], WIDTH * count, LANES):
            store(shared, LANES * slot, load(sums, k))
            slot += 1


@compiled()
def apply_shared(
    which: Any,
    starts: Any,
    slots: Any,
    kind: int,
    inverse: Any,
    b: Any,
    u: Any,
    gain: Any,
    out: Any,
    shared: Any,
    first: int,
    last: int,
) -> None:
    """Nodes ``which`` of several chunks or none, each with slots in ``shared``."""
    sums = np.empty(WIDTH * (last - first), u.dtype)
    for n in range(first, last):
        x = y = z = zeros_of(u, 4)
        for k in range(starts[n], starts[n + 1]):
            found = three(shared, WIDTH * slots[k])
            x += found[0]
            y += found[1]
            z += found[2]
        put_three(sums, WIDTH * (n - first), x, y, z)
    _finish(kind, which, sums, inverse, b, u, gain, out, first, last)


@compiled()
def hold(fixed: Any, out: Any) -> None:
    """Put zero where a component is held, ``fixed`` (n,) its number."""
    zero = zeros_of(out, 4)
    for k in range(fixed.shape[0]):
        store(out, LANES * fixed[k], zero)
