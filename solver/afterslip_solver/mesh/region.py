"""Which part of a curved interface may slip."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from afterslip_common.errors import MeshError
from afterslip_solver.mesh.geometry import CurvedFault
from afterslip_solver.mesh.interface import Interface
from afterslip_solver.model import Float

# an upper edge nearer to the surface than this many elements breaks it
_OPEN = 0.75
# lines across strike on which edges are tabulated
_LINES = 81
# the ends of an outline, pointed in general, are squared off over this share
_TIP = 0.08
# points this much deeper, or farther along strike, still help the fit
_BEYOND_DEPTH, _BEYOND_END = 1.25, 0.15
# share of the depths whose points must reach an end along strike
_COMMON = 0.85


@dataclass(frozen=True, slots=True)
class Region:
    """Slipping part of an interface.

    Attributes
    ----------
    lines : (n,) float64, m along strike, evenly spaced, from one end to the other.
    top, bottom : (n,) float64, m, depths of the upper and the lower edge.
    open_top : the upper edge is the trace on the free surface; ``top`` is 0.
    """

    lines: Float
    top: Float
    bottom: Float
    open_top: bool


def region_of(fault: CurvedFault, size: float) -> tuple[Interface, Region]:
    """Fit the interface and bound its slipping part.

    Without an outline it runs from the free surface to the maximum depth (or the
    deepest point), and as far along strike as the points do at most depths. An
    outline is read as an upper and a lower edge along strike, its pointed ends
    squared off.

    Parameters
    ----------
    size : m, size of elements on the fault.
    """
    points = np.asarray(fault.points, dtype=np.float64)
    if fault.max_depth is not None:
        points = points[-points[:, 2] <= _BEYOND_DEPTH * fault.max_depth]
    smooth = Interface.fit(points, fault.tolerance)
    if fault.outline is None:
        lines, top, bottom = _by_points(smooth, points, fault.max_depth)
    else:
        outline = _checked_outline(fault)
        smooth = _refit(smooth, points, outline)
        lines, top, bottom = _by_outline(smooth, outline)
        if fault.max_depth is not None:
            bottom = np.minimum(bottom, fault.max_depth)
    lean = 1.0 / np.hypot(1.0, smooth.slope(lines, top))
    open_top = bool(np.median(top / lean) < _OPEN * size)
    if open_top:
        top = np.zeros(_LINES)
    if np.any(bottom - top < 0.5 * size * lean):
        raise MeshError(
            f"fault {fault.name}: its slipping part is narrower than half an element "
            f"({size / 1e3:g} km on the fault) somewhere along strike; widen its "
            "outline, raise its maximum depth or reduce mesh.size.fault"
        )
    return smooth, Region(lines, top, bottom, open_top)


def _by_points(
    smooth: Interface, points: Float, max_depth: float | None
) -> tuple[Float, Float, Float]:
    s, _ = smooth.local(points[:, 0], points[:, 1])
    depth = -points[:, 2]
    deepest = float(depth.max())
    if max_depth is not None:
        deepest = min(deepest, max_depth)
    bins = np.digitize(depth, np.linspace(depth.min(), deepest, 9)[1:-1])
    groups = [s[bins == k] for k in np.unique(bins)]
    # nearly the common range: where a depth lacks data the shape is a guess
    low = float(np.quantile([group.min() for group in groups], _COMMON))
    high = float(np.quantile([group.max() for group in groups], 1.0 - _COMMON))
    if high - low < 0.3 * float(np.ptp(s)):
        low, high = float(s.min()), float(s.max())
    lines = np.linspace(low, high, _LINES)
    return lines, np.zeros(_LINES), np.full(_LINES, deepest)


def _checked_outline(fault: CurvedFault) -> Float:
    outline = np.asarray(fault.outline, dtype=np.float64)
    if outline.ndim != 2 or outline.shape[1] != 2 or len(outline) < 3:
        raise MeshError(
            f"fault {fault.name}: its outline needs at least three points of x, y"
        )
    if not np.isfinite(outline).all():
        raise MeshError(
            f"fault {fault.name}: its outline has values that are not finite"
        )
    return outline


def _refit(smooth: Interface, points: Float, outline: Float) -> Interface:
    """Fit again, to the points in and around the outline only."""
    s, d = smooth.local(points[:, 0], points[:, 1])
    edge_s, edge_d = smooth.local(outline[:, 0], outline[:, 1])
    gap = _BEYOND_END * np.ptp(edge_s)
    near = (s > edge_s.min() - gap) & (s < edge_s.max() + gap)
    near &= d < edge_d.max() + _BEYOND_END * np.ptp(edge_d)
    if near.sum() < 24 or near.all():
        return smooth
    return Interface.fit(points[near])


def _by_outline(smooth: Interface, outline: Float) -> tuple[Float, Float, Float]:
    s, d = smooth.local(outline[:, 0], outline[:, 1])
    low, high = float(s.min()), float(s.max())
    lines = np.linspace(low, high, _LINES)
    tip = _TIP * (high - low)
    # ends that point to a tip would make the band infinitely thin
    cut = np.clip(lines, low + tip, high - tip)[:, None]
    ends = np.roll(s, -1), np.roll(d, -1)
    upper, lower = band_edges(cut, (s, d), ends)
    return lines, smooth.depth_at(lines, upper), smooth.depth_at(lines, lower)


def band_edges(
    lines: Float, start: tuple[Float, Float], end: tuple[Float, Float]
) -> tuple[Float, Float]:
    """First and last crossing of lines s = const with a set of segments.

    Parameters
    ----------
    lines : (n, 1) float64, m.
    start, end : s and d, (n_segment,) each, m, of the segments' ends.

    Returns
    -------
    upper, lower : (n,) float64, m, smallest and largest d.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        part = (lines - start[0]) / (end[0] - start[0])
        crossing = start[1] + part * (end[1] - start[1])
    hit = (start[0] != end[0]) & (part >= 0.0) & (part <= 1.0)
    upper = np.where(hit, crossing, np.inf).min(axis=1)
    lower = np.where(hit, crossing, -np.inf).max(axis=1)
    return upper, lower
