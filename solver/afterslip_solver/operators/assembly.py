"""Assembly of 3 x 3 block CSR matrices; pattern and values."""

from __future__ import annotations

from typing import Any

import numpy as np

from afterslip_solver.jit.compiling import compiled
from afterslip_solver.mesh.tables.midpoints import MID


@compiled()
def _slot(indptr: Any, indices: Any, row: int, column: int) -> int:
    low, high = indptr[row], indptr[row + 1] - 1
    while low < high:
        middle = (low + high) // 2
        if indices[middle] < column:
            low = middle + 1
        else:
            high = middle
    return int(low)


@compiled()
def _shapes(g: Any, h: Any) -> None:
    """Gradients h (10, 4, 3) of the P2 shape functions at the vertices."""
    h[4:] = 0.0
    for a in range(4):
        for b in range(4):
            for d in range(3):
                if a == b:
                    h[a, a, d] = 3.0 * g[a, d]
                else:
                    h[b, a, d] = -g[b, d]
                    # an edge's function has none at the two far vertices
                    h[MID[a, b], a, d] = 4.0 * g[b, d]


@compiled(fastmath={"contract"})
def add_second_order(
    starts: Any,
    places: Any,
    elements: Any,
    g: Any,
    volume: Any,
    lam: Any,
    mu: Any,
    indptr: Any,
    indices: Any,
    data: Any,
    first: int,
    last: int,
) -> None:
    """Add P2 elements (n_elem, 10) to the rows first..last; data is flat, 9 per block.

    ``starts`` and ``places`` are those of the flat ``elements`` from `by_number`.
    """
    h = np.empty((10, 4, 3))
    c, own = np.empty((3, 3)), np.empty((4, 3))
    for row in range(first, last):
        for k in range(starts[row], starts[row + 1]):
            e, n = places[k] // 10, places[k] % 10
            _shapes(g[e], h)
            w, p, q = volume[e] / 20.0, lam[e], mu[e]
            for d in range(3):
                summed = h[n, 0, d] + h[n, 1, d] + h[n, 2, d] + h[n, 3, d]
                for a in range(4):
                    own[a, d] = w * (h[n, a, d] + summed)
            for m in range(10):
                for d in range(3):
                    for j in range(3):
                        t = 0.0
                        for a in range(4):
                            t += own[a, d] * h[m, a, j]
                        c[d, j] = t
                trace = q * (c[0, 0] + c[1, 1] + c[2, 2])
                block = 9 * _slot(indptr, indices, row, elements[e, m])
                for i in range(3):
                    for j in range(3):
                        data[block + 3 * i + j] += p * c[i, j] + q * c[j, i]
                    data[block + 4 * i] += trace


@compiled(fastmath={"contract"})
def add_diagonal(
    elements: Any,
    g: Any,
    volume: Any,
    lam: Any,
    mu: Any,
    out: Any,
    first: int,
    last: int,
) -> None:
    """Add the diagonal blocks of P2 elements to rows first..last of out (n_node, 3, 3).

    A corner's shape function has the vertex gradients 3 G_a at itself, -G_a elsewhere;
    an edge's has 4 G_b at a and 4 G_a at b. The vertex rule gives the factors.
    """
    c = np.empty((3, 3))
    for e in range(elements.shape[0]):
        w = volume[e] / 20.0
        for a in range(4):
            for b in range(a + 1):
                node = elements[e, MID[a, b]]
                if node < first or node >= last:
                    continue
                for d in range(3):
                    for k in range(3):
                        aa = g[e, a, d] * g[e, a, k]
                        if a == b:
                            c[d, k] = 12.0 * w * aa
                        else:
                            bb = g[e, b, d] * g[e, b, k]
                            ab = g[e, a, d] * g[e, b, k] + g[e, b, d] * g[e, a, k]
                            c[d, k] = 16.0 * w * (2.0 * (aa + bb) + ab)
                trace = mu[e] * (c[0, 0] + c[1, 1] + c[2, 2])
                for i in range(3):
                    for j in range(3):
                        out[node, i, j] += lam[e] * c[i, j] + mu[e] * c[j, i]
                    out[node, i, i] += trace


@compiled()
def add_first_order(
    starts: Any,
    places: Any,
    cells: Any,
    g: Any,
    volume: Any,
    lam: Any,
    mu: Any,
    indptr: Any,
    indices: Any,
    data: Any,
    first: int,
    last: int,
) -> None:
    """Add P1 elements (n_elem, 4) to the rows first..last.

    ``starts`` and ``places`` are those of the flat ``cells`` from `by_number`.
    """
    for row in range(first, last):
        for k in range(starts[row], starts[row + 1]):
            e, n = places[k] // 4, places[k] % 4
            p, q = volume[e] * lam[e], volume[e] * mu[e]
            for m in range(4):
                block = 9 * _slot(indptr, indices, row, cells[e, m])
                trace = 0.0
                for i in range(3):
                    trace += g[e, n, i] * g[e, m, i]
                    for j in range(3):
                        data[block + 3 * i + j] += (
                            p * g[e, n, i] * g[e, m, j] + q * g[e, n, j] * g[e, m, i]
                        )
                for i in range(3):
                    data[block + 4 * i] += q * trace


@compiled()
def add_product(
    down_starts: Any,
    fine: Any,
    parts: Any,
    up_starts: Any,
    coarse: Any,
    weights: Any,
    indptr: Any,
    indices: Any,
    data: Any,
    fixed: Any,
    coarse_indptr: Any,
    coarse_indices: Any,
    out: Any,
    first: int,
    last: int,
) -> None:
    """Add rows first..last of P^T A P, all 3 x 3 blocks (n_block, 3, 3).

    P has one weight for all components: ``up_starts, coarse, weights`` are those of its
    rows, ``down_starts, fine, parts`` those of its transpose. ``fixed`` (n, 3) are
    components of A that are left out.
    """
    for row in range(first, last):
        for k in range(down_starts[row], down_starts[row + 1]):
            i = fine[k]
            for p in range(indptr[i], indptr[i + 1]):
                j = indices[p]
                for q in range(up_starts[j], up_starts[j + 1]):
                    s = _slot(coarse_indptr, coarse_indices, row, coarse[q])
                    w = parts[k] * weights[q]
                    for a in range(3):
                        for b in range(3):
                            if not (fixed[i, a] or fixed[j, b]):
                                out[s, a, b] += w * data[p, a, b]


@compiled()
def add_rows(
    number: Any,
    indptr: Any,
    indices: Any,
    data: Any,
    whole_indptr: Any,
    whole_indices: Any,
    out: Any,
    first: int,
    last: int,
) -> None:
    """Add rows first..last of a block matrix to those of a larger one.

    Parameters
    ----------
    number : (n,) rows and columns of the larger one that those of the matrix are.
    """
    for row in range(first, last):
        for k in range(indptr[row], indptr[row + 1]):
            column = number[indices[k]]
            s = _slot(whole_indptr, whole_indices, number[row], column)
            for a in range(3):
                for b in range(3):
                    out[s, a, b] += data[k, a, b]


@compiled()
def hold(
    indptr: Any,
    indices: Any,
    data: Any,
    fixed: Any,
    mean: float,
    diagonal: Any,
    first: int,
    last: int,
) -> None:
    """Uncouple fixed components in rows first..last, keep a positive diagonal.

    Where the diagonal entry is itself zero (no stiffness) it becomes ``mean``.
    ``diagonal`` receives the inverse-ready (n, 3, 3) diagonal blocks.
    """
    for i in range(first, last):
        for k in range(indptr[i], indptr[i + 1]):
            j = indices[k]
            for a in range(3):
                for b in range(3):
                    p = 9 * k + 3 * a + b
                    if (fixed[i, a] or fixed[j, b]) and (i != j or a != b):
                        data[p] = 0.0
                    if i == j:
                        if a == b and data[p] <= 0.0:
                            data[p] = mean
                        diagonal[i, a, b] = data[p]


@compiled()
def find_diagonal(
    indptr: Any, indices: Any, data: Any, out: Any, first: int, last: int
) -> None:
    """Copy the diagonal blocks of rows first..last to out (n, 3, 3)."""
    for row in range(first, last):
        slot = _slot(indptr, indices, row, row)
        # whole blocks at once take five times as long to compile
        for i in range(3):
            for j in range(3):
                out[row, i, j] = data[slot, i, j]


@compiled()
def balance(
    indptr: Any,
    indices: Any,
    data: Any,
    size: Any,
    unit: float,
    out: Any,
    first: int,
    last: int,
) -> None:
    """Out = blocks (n, 3, 3) over ``unit`` and the sizes of row and column."""
    for row in range(first, last):
        for k in range(indptr[row], indptr[row + 1]):
            factor = 1.0 / (unit * size[row] * size[indices[k]])
            for i in range(3):
                for j in range(3):
                    out[k, i, j] = factor * data[k, i, j]


@compiled()
def invert(blocks: Any, unit: float, out: Any, first: int, last: int) -> None:
    """Out = unit times the inverses of symmetric (n, 3, 3) blocks, by cofactors."""
    for n in range(first, last):
        a, b, c = blocks[n, 0, 0], blocks[n, 0, 1], blocks[n, 0, 2]
        d, e, f = blocks[n, 1, 1], blocks[n, 1, 2], blocks[n, 2, 2]
        x, y, z = d * f - e * e, c * e - b * f, b * e - c * d
        gain = unit / (a * x + b * y + c * z)
        out[n, 0, 0] = gain * x
        out[n, 0, 1] = out[n, 1, 0] = gain * y
        out[n, 0, 2] = out[n, 2, 0] = gain * z
        out[n, 1, 1] = gain * (a * f - c * c)
        out[n, 1, 2] = out[n, 2, 1] = gain * (b * c - a * e)
        out[n, 2, 2] = gain * (a * d - b * b)
