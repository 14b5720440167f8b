"""Shapes of slip along one direction of a fault."""

from __future__ import annotations

import numpy as np

from afterslip_common.geometry import FROM_EDGE, Ends, bspline_spacing
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
    position: Float, size: float, count: int, index: int, ends: Ends
) -> Float:
    """Cubic B-spline number ``index`` of ``count`` between the edges 0 and ``size``.

    The splines are those of de Boor (1978, A Practical Guide to Splines) on uniform
    knots. At a free end they are reflected evenly, the first being centred on the
    edge: slip may have any value there, its gradient across the edge is zero. At a
    zero end they are reflected oddly: slip is zero, its gradient is free. At a clamped
    end all supports end at the edge: slip and its gradient are zero. One function
    with two free ends is a constant.

    Parameters
    ----------
    position : (n,) float64, m; beyond a free end the reflection goes on.
    ends : conditions at 0 and at ``size``.
    """
    if count == 1 and ends == ("free", "free"):
        return np.ones(len(position))
    step = bspline_spacing(size, count, ends)
    centre = (index + FROM_EDGE[ends[0]]) * step
    value = cubic_bspline((position - centre) / step)
    if ends[0] == "zero":
        value = value - cubic_bspline((position + centre) / step)
    elif ends[0] == "free" and index > 0:
        value = value + cubic_bspline((position + centre) / step)
    if ends[1] == "zero":
        value = value - cubic_bspline((position - (2.0 * size - centre)) / step)
    elif ends[1] == "free" and index < count - 1:
        value = value + cubic_bspline((position - (2.0 * size - centre)) / step)
    if ends[0] == "zero":
        value = np.where(position > 0.0, value, 0.0)
    if ends[1] == "zero":
        value = np.where(position < size, value, 0.0)
    return value


def bspline_centre(size: float, count: int, index: int, ends: Ends) -> float:
    """Where ``bspline_profile`` peaks, m."""
    if count == 1 and ends == ("free", "free"):
        return 0.5 * size
    return (index + FROM_EDGE[ends[0]]) * bspline_spacing(size, count, ends)


def step_profile(
    position: Float,
    size: float,
    cell: tuple[float, float],
    ramp: float,
    open_ends: tuple[bool, bool],
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
    open_ends : whether the indicator goes on beyond 0, and beyond ``size``.
    """
    value = np.ones(len(position))
    borders = zip(cell, (1.0, -1.0), open_ends, strict=True)
    for border, sign, is_open in borders:
        outer = border <= 1e-9 * size or border >= (1.0 - 1e-9) * size
        beyond = sign * (position - border)
        if outer and is_open:
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
