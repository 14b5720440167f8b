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
    load,
    splat,
    store,
    zeros_of,
)
from afterslip_solver.backend.cpu.pairs import add_forces
from afterslip_solver.jit.compiling import compiled

# what is made of K u
PRODUCT, RESIDUAL, RELAXED = 0, 1, 2
# pairs of elements for whose displacements memory is asked before their turn
_AHEAD = 2


@compiled()
def _add_pairs(
    nodes: Any, places: Any, numbers: Any, first: int, last: int, u: Any, sums: Any
) -> None:
    """Add the forces of pairs first..last of elements."""
    for pair in range(first, last):
        ahead = min(pair + _AHEAD, last - 1)
        add_forces(nodes, places, numbers, pair, ahead, u, sums)


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
