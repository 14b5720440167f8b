"""Shapes of slip along one direction of a fault."""

from __future__ import annotations

import numpy as np

from afterslip_solver.model import Float


def cubic_bspline(t: Float) -> Float:
    """Uniform cubic B-spline of peak 1: 1 at 0, 1/4 at ±1, 0 from ±2 on."""
    value = np.zeros(np.shape(t))
    # most of a fault lies outside of most functions
    inside = np.abs(t) < 2.0
    a = np.abs(t[inside])
    near = 1.0 - 1.5 * a**2 + 0.75 * a**3
    far = 0.25 * (2.0 - a) ** 3
    value[inside] = np.where(a < 1.0, near, far)
    return value


def bspline_profile(
    position: Float, size: float, count: int, index: int, open_start: bool
) -> Float:
    """Cubic B-spline number ``index`` of ``count`` between the edges 0 and ``size``.

    Both edges closed: n functions on n + 3 intervals, each support within the edges,
    so that slip and its gradient vanish there. Open start (a trace on the free
    surface): knots are spaced by size / (n + 1), functions are centred at 0, h, 2h
    ... and reflected evenly about 0, so that slip reaches the surface with no
    gradient across it.

    Parameters
    ----------
    position : (n,) float64, m.
    """
    if open_start:
        step = size / (count + 1)
        centre = index * step
        value = cubic_bspline((position - centre) / step)
        if index > 0:
            value = value + cubic_bspline((position + centre) / step)
        return np.where(position >= -1e-9 * size, value, 0.0)
    step = size / (count + 3)
    return cubic_bspline((position - (index + 2) * step) / step)


def bspline_centre(size: float, count: int, index: int, open_start: bool) -> float:
    """Where ``bspline_profile`` peaks, m."""
    if open_start:
        return index * size / (count + 1)
    return (index + 2) * size / (count + 3)


def step_profile(
    position: Float,
    size: float,
    cell: tuple[float, float],
    ramp: float,
    open_start: bool,
    sharp_ends: bool,
) -> Float:
    """Evaluate the indicator of a cell between the edges 0 and ``size``.

    Inner borders are crossed by a linear ramp, so that neighbours sum to one.
    Buried outer edges have the value 1/2: with second-order elements the integral
    is then that of the cell, for mesh lines along the edge (``sharp_ends``, step
    there) as for a ramp across it.

    Parameters
    ----------
    position : (n,) float64, m.
    cell : start and end, m.
    ramp : m, full width of ramps.
    """
    value = np.ones(len(position))
    for border, sign in ((cell[0], 1.0), (cell[1], -1.0)):
        outer = border <= 1e-9 * size or border >= (1.0 - 1e-9) * size
        beyond = sign * (position - border)
        if outer and sign > 0.0 and open_start:
            continue
        if outer and sharp_ends:
            on_edge = np.abs(beyond) < 1e-6 * size
            value *= np.where(on_edge, 0.5, np.where(beyond > 0.0, 1.0, 0.0))
        else:
            value *= np.clip(0.5 + beyond / ramp, 0.0, 1.0)
    return value


def taper_profile(
    position: Float, size: float, share: float, open_start: bool
) -> Float:
    """One inside, falling by a half cosine to zero at the buried edges.

    Parameters
    ----------
    share : of the size, over which slip falls at each buried edge.
    """
    gap = size - position if open_start else np.minimum(position, size - position)
    part = np.clip(gap / (share * size), 0.0, 1.0)
    return np.asarray(0.5 * (1.0 - np.cos(np.pi * part)))
