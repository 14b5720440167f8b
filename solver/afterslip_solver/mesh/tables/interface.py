"""Depth and dip of an interface below many points."""

from __future__ import annotations

from typing import Any

import numpy as np

from afterslip_solver.jit.compiling import compiled


@compiled()
def depth_from_table(
    lines: Any, depths: Any, table: Any, s: Any, d: Any, out: Any, start: int, stop: int
) -> None:
    """Depths (n,), m, at which the interface is at (s, d); 0 above the surface.

    Parameters
    ----------
    lines, depths : (n_line,), (n_depth,) m, even.
    table : (n_line, n_depth) m, distance across strike, not falling with depth.
    s, d : (n,) m, along and across strike.
    """
    last = len(lines) - 1.000001
    for i in range(start, stop):
        place = min(max((s[i] - lines[0]) / (lines[1] - lines[0]), 0.0), last)
        row = int(place)
        part = place - row
        low, high = 0, len(depths) - 1
        while high - low > 1:
            middle = (low + high) // 2
            if (1.0 - part) * table[row, middle] + part * table[row + 1, middle] <= d[
                i
            ]:
                low = middle
            else:
                high = middle
        begin = (1.0 - part) * table[row, low] + part * table[row + 1, low]
        end = (1.0 - part) * table[row, high] + part * table[row + 1, high]
        slope = max((end - begin) / (depths[high] - depths[low]), 1e-6)
        out[i] = max(depths[low] + (d[i] - begin) / slope, 0.0)


@compiled()
def _cubic(knots: Any, at: float, value: Any) -> int:
    """Values (4,) of the cubic B-splines that are not zero; returns the first one.

    de Boor (1978), A Practical Guide to Splines, chapter X.
    """
    low, high = 3, len(knots) - 4
    while high - low > 1:
        middle = (low + high) // 2
        if knots[middle] <= at:
            low = middle
        else:
            high = middle
    value[0] = 1.0
    for k in range(1, 4):
        saved = 0.0
        for j in range(k):
            right, left = knots[low + j + 1], knots[low + j + 1 - k]
            term = value[j] / (right - left)
            value[j] = saved + (right - at) * term
            saved = (at - left) * term
        value[k] = saved
    return low - 3


@compiled()
def _cubic_slope(knots: Any, at: float, value: Any) -> int:
    """Take the derivatives (4,) of those B-splines; see `_cubic`."""
    first: int = _cubic(knots, at, value)
    low = first + 3
    # of the quadratic ones, by which the derivative of a cubic one is given
    below = np.zeros(5)
    below[1] = 1.0
    for k in range(1, 3):
        saved = 0.0
        for j in range(k):
            right, left = knots[low + j + 1], knots[low + j + 1 - k]
            term = below[j + 1] / (right - left)
            below[j + 1] = saved + (right - at) * term
            saved = (at - left) * term
        below[k + 1] = saved
    for j in range(4):
        rise, fall = 0.0, 0.0
        if j > 0:
            rise = below[j] / (knots[first + j + 3] - knots[first + j])
        if j < 3:
            fall = below[j + 1] / (knots[first + j + 4] - knots[first + j + 1])
        value[j] = 3.0 * (rise - fall)
    return first


@compiled()
def slope_of_spline(
    knots: Any, deep: Any, coefficients: Any, s: Any, depth: Any, out: Any,
    start: int, stop: int,
) -> None:  # fmt: skip
    """Take the derivatives (n,) of a cubic tensor spline with depth.

    Beyond the ends of the knots they are those of the ends.

    Parameters
    ----------
    knots, deep : along strike and in depth, m. coefficients : (n_s, n_depth) m.
    s, depth : (n,) m.
    """
    along, down = np.empty(4), np.empty(4)
    for i in range(start, stop):
        a = _cubic(knots, min(max(s[i], knots[0]), knots[-1]), along)
        b = _cubic_slope(deep, min(max(depth[i], deep[0]), deep[-1]), down)
        total = 0.0
        for j in range(4):
            for k in range(4):
                total += along[j] * coefficients[a + j, b + k] * down[k]
        out[i] = total
