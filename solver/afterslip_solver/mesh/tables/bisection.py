"""Recursive bisection of a mesh into compact blocks of elements."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from afterslip_solver.jit.compiling import compiled
from afterslip_solver.jit.threads import over
from afterslip_solver.mesh.tables import tetrahedra
from afterslip_solver.model import Float, Int

# halvings after which the parts of a mesh are enough for all threads
_HALVED = 6


def centres(nodes: Float, cells: NDArray[np.integer]) -> Float:
    """(n_elem, 3) m, mean of the vertices of cells (n_elem, 4 or more)."""
    out = np.empty((len(cells), 3))
    over(len(cells), partial(tetrahedra.centres, nodes, cells, out))
    return out


def compact_order(points: Float, size: int) -> Int:
    """Order of points whose consecutive runs of ``size`` are compact.

    Parameters
    ----------
    points : (n, 3) float64.
    """
    order, points = np.arange(len(points)), points.copy()
    parts = [(0, len(points))]
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for _ in range(_HALVED):
            cuts = pool.map(lambda part: _halve(points, order, *part, size), parts)
            ends = list(zip(parts, cuts, strict=True))
            halves = [half for (a, c), b in ends for half in ((a, b), (b, c))]
            parts = [(a, b) for a, b in halves if a < b]
        list(pool.map(lambda part: _bisect(points, order, *part, size), parts))
    return order


@compiled()
def _select(p: Any, order: Any, start: int, stop: int, k: int, axis: int) -> None:
    """Put the k smallest along ``axis`` of start..stop in front (Hoare)."""
    low, high = start, stop - 1
    while low < high:
        pivot = p[(low + high) // 2, axis]
        i, j = low, high
        while i <= j:
            while p[i, axis] < pivot:
                i += 1
            while p[j, axis] > pivot:
                j -= 1
            if i <= j:
                for d in range(3):
                    p[i, d], p[j, d] = p[j, d], p[i, d]
                order[i], order[j] = order[j], order[i]
                i += 1
                j -= 1
        if start + k <= j:
            high = j
        elif start + k >= i:
            low = i
        else:
            return


@compiled()
def _halve(p: Any, order: Any, start: int, stop: int, size: int) -> int:
    """Put whole blocks of the nearer half in front; returns where they end."""
    n_block = -(-(stop - start) // size)
    if n_block < 2:
        return stop
    axis, widest = 0, -1.0
    for d in range(3):
        low = high = p[start, d]
        for i in range(start, stop):
            low = min(low, p[i, d])
            high = max(high, p[i, d])
        if high - low > widest:
            axis, widest = d, high - low
    left = size * (n_block // 2)
    _select(p, order, start, stop, left, axis)
    return start + left


@compiled()
def _bisect(p: Any, order: Any, start: int, stop: int, size: int) -> None:
    stack = [(start, stop)]
    while len(stack) > 0:
        first, last = stack.pop()
        middle = _halve(p, order, first, last, size)
        if middle < last:
            stack.append((middle, last))
            stack.append((first, middle))
