"""Assembly of 3 x 3 block CSR matrices; pattern and values."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from afterslip_solver.kernels.tets import MID


@njit(cache=True, nogil=True)
def _slot(indptr: Any, indices: Any, row: int, column: int) -> int:
    low, high = indptr[row], indptr[row + 1] - 1
    while low < high:
        middle = (low + high) // 2
        if indices[middle] < column:
            low = middle + 1
        else:
            high = middle
    return int(low)


@njit(cache=True, nogil=True, fastmath={"contract"})
def _add_blocks(
    h: Any,
    nodes: Any,
    n_local: int,
    volume: float,
    lam: float,
    mu: float,
    indptr: Any,
    indices: Any,
    data: Any,
) -> None:
    """Add one element whose shape functions have vertex gradients h (n, 4, 3)."""
    w = volume / 20.0
    c = np.empty((3, 3))
    summed = np.zeros(3)
    for n in range(n_local):
        for d in range(3):
            summed[d] = h[n, 0, d] + h[n, 1, d] + h[n, 2, d] + h[n, 3, d]
        for m in range(n_local):
            for d in range(3):
                for k in range(3):
                    t = 0.0
                    for a in range(4):
                        t += (h[n, a, d] + summed[d]) * h[m, a, k]
                    c[d, k] = w * t
            trace = mu * (c[0, 0] + c[1, 1] + c[2, 2])
            p = 9 * _slot(indptr, indices, nodes[n], nodes[m])
            for i in range(3):
                for j in range(3):
                    data[p + 3 * i + j] += lam * c[i, j] + mu * c[j, i]
                data[p + 4 * i] += trace


@njit(cache=True, nogil=True)
def add_second_order(
    elements: Any,
    g: Any,
    volume: Any,
    lam: Any,
    mu: Any,
    indptr: Any,
    indices: Any,
    data: Any,
) -> None:
    """Add P2 elements (n_elem, 10); data is flat, 9 per block."""
    h = np.empty((10, 4, 3))
    for e in range(elements.shape[0]):
        for a in range(4):
            for b in range(4):
                for d in range(3):
                    if a == b:
                        h[a, a, d] = 3.0 * g[e, a, d]
                    else:
                        h[b, a, d] = -g[e, b, d]
                        h[MID[a, b], a, d] = 4.0 * g[e, b, d]
        # an edge's shape function has no gradient at the two far vertices
        for a in range(4):
            for b in range(a):
                for v in range(4):
                    if v not in (a, b):
                        for d in range(3):
                            h[MID[a, b], v, d] = 0.0
        _add_blocks(h, elements[e], 10, volume[e], lam[e], mu[e], indptr, indices, data)


@njit(cache=True, nogil=True, fastmath={"contract"})
def add_diagonal(
    elements: Any, g: Any, volume: Any, lam: Any, mu: Any, out: Any
) -> None:
    """Add the diagonal blocks of P2 elements to out (n_node, 3, 3).

    A corner's shape function has the vertex gradients 3 G_a at itself, -G_a elsewhere;
    an edge's has 4 G_b at a and 4 G_a at b. The vertex rule gives the factors.
    """
    c = np.empty((3, 3))
    for e in range(elements.shape[0]):
        w = volume[e] / 20.0
        for a in range(4):
            for b in range(a + 1):
                for d in range(3):
                    for k in range(3):
                        aa = g[e, a, d] * g[e, a, k]
                        if a == b:
                            c[d, k] = 12.0 * w * aa
                        else:
                            bb = g[e, b, d] * g[e, b, k]
                            ab = g[e, a, d] * g[e, b, k] + g[e, b, d] * g[e, a, k]
                            c[d, k] = 16.0 * w * (2.0 * (aa + bb) + ab)
                node = elements[e, MID[a, b]]
                trace = mu[e] * (c[0, 0] + c[1, 1] + c[2, 2])
                for i in range(3):
                    for j in range(3):
                        out[node, i, j] += lam[e] * c[i, j] + mu[e] * c[j, i]
                    out[node, i, i] += trace


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def add_product(
    down: Any,
    up: Any,
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

    P has one weight for all components: ``up`` is (indptr, indices, weights) of it,
    ``down`` of its transpose. ``fixed`` (n, 3) are components of A that are left out.
    """
    down_starts, fine, parts = down
    up_starts, coarse, weights = up
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


@njit(cache=True, nogil=True)
def hold(indptr: Any, indices: Any, data: Any, fixed: Any, diagonal: Any) -> None:
    """Uncouple fixed components: zero rows and columns, keep a positive diagonal.

    Where the diagonal entry is itself zero (no stiffness) the mean is used.
    ``diagonal`` receives the inverse-ready (n, 3, 3) diagonal blocks.
    """
    n = indptr.shape[0] - 1
    mean = 0.0
    for i in range(n):
        for k in range(indptr[i], indptr[i + 1]):
            if indices[k] == i:
                mean += (data[9 * k] + data[9 * k + 4] + data[9 * k + 8]) / (3 * n)
    for i in range(n):
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


@njit(cache=True, nogil=True)
def find_diagonal(
    indptr: Any, indices: Any, data: Any, out: Any, first: int, last: int
) -> None:
    """Copy the diagonal blocks of rows first..last to out (n, 3, 3)."""
    for row in range(first, last):
        out[row] = data[_slot(indptr, indices, row, row)]


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
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
