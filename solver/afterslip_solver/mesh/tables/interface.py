"""Depth and dip of an interface below many points."""

from __future__ import annotations

from typing import Any

import numpy as np

from afterslip_solver.jit.compiling import compiled


@compiled()
def _across(table: Any, row: int, part: float, column: int) -> Any:
    return (1.0 - part) * table[row, column] + part * table[row + 1, column]


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
            if _across(table, row, part, middle) <= d[i]:
                low = middle
            else:
                high = middle
        begin, end = _across(table, row, part, low), _across(table, row, part, high)
        slope = max((end - begin) / (depths[high] - depths[low]), 1e-6)
        out[i] = max(depths[low] + (d[i] - begin) / slope, 0.0)


@compiled()
def _interval(knots: Any, at: float) -> int:
    """Return the first knot of the interval that holds a position."""
    low, high = 3, len(knots) - 4
    while high - low > 1:
        middle = (low + high) // 2
        if knots[middle] <= at:
            low = middle
        else:
            high = middle
    return low


@compiled()
def _bsplines(knots: Any, low: int, at: float, value: Any) -> None:
    """Values (degree + 1,) of the B-splines that are not zero in an interval.

    de Boor (1978), A Practical Guide to Splines, chapter X.
    """
    value[0] = 1.0
    for k in range(1, len(value)):
        saved = 0.0
        for j in range(k):
            right, left = knots[low + j + 1], knots[low + j + 1 - k]
            term = value[j] / (right - left)
            value[j] = saved + (right - at) * term
            saved = (at - left) * term
        value[k] = saved


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
    along, below, down = np.empty(4), np.empty(3), np.empty(4)
    for i in range(start, stop):
        at = min(max(s[i], knots[0]), knots[-1])
        a = _interval(knots, at)
        _bsplines(knots, a, at, along)
        at = min(max(depth[i], deep[0]), deep[-1])
        b = _interval(deep, at)
        _bsplines(deep, b, at, below)
        # the derivative of a cubic one is a difference of two quadratic ones
        for k in range(4):
            rise = below[k - 1] / (deep[b + k] - deep[b + k - 3]) if k > 0 else 0.0
            fall = below[k] / (deep[b + k + 1] - deep[b + k - 2]) if k < 3 else 0.0
            down[k] = 3.0 * (rise - fall)
        total = 0.0
        for j in range(4):
            for k in range(4):
                total += along[j] * coefficients[a - 3 + j, b - 3 + k] * down[k]
        out[i] = total
