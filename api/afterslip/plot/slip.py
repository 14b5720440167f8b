"""Slip on the fault, in map view."""

from __future__ import annotations

import matplotlib.patheffects as path_effects
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from afterslip.plot import maps
from afterslip.plot.style import (
    BLUE,
    FAINT,
    INK,
    SLIP,
    WIDTH,
    new_figure,
    nice_step,
    styled,
)
from afterslip.result import TYPE_NAMES, slip_magnitude

Float = NDArray[np.float64]

HALO = [path_effects.withStroke(linewidth=2.2, foreground="white")]


def horizontal_slip(result: xr.Dataset) -> Float:
    """(n_fault_node, 2) m, east and north of the hanging wall's motion."""
    slip = np.asarray(result["fault_slip"].values, dtype=np.float64)
    strike = np.asarray(result["fault_strike"].values, dtype=np.float64)
    updip = np.asarray(result["fault_updip"].values, dtype=np.float64)
    motion = slip[:, :1] * strike + slip[:, 1:] * updip
    return np.asarray(motion[:, :2])


def _arrow_nodes(
    frame: maps.MapFrame, size: Float, least: float, across: int = 15
) -> NDArray[np.int64]:
    """Pick nodes about evenly spaced on the paper where slip is worth an arrow."""
    used = np.unique(frame.triangles.triangles)
    x, y = frame.triangles.x[used] / frame.stretch, frame.triangles.y[used]
    cell = max(float(np.ptp(x)), float(np.ptp(y))) / across
    i = np.floor((x - x.min()) / cell).astype(int)
    j = np.floor((y - y.min()) / cell).astype(int)
    off = np.hypot((x - x.min()) / cell - i - 0.5, (y - y.min()) / cell - j - 0.5)
    best: dict[tuple[int, int], int] = {}
    for n in np.argsort(off).tolist():
        if size[used[n]] >= least:
            best.setdefault((int(i[n]), int(j[n])), n)
    return used[np.array(sorted(best.values()), dtype=np.int64)]


def _rake_arrows(
    ax: Axes, frame: maps.MapFrame, result: xr.Dataset, avoid: Float
) -> None:
    """Draw the motion of the upper side, but not over what stands at ``avoid``."""
    size = slip_magnitude(result)
    nodes = _arrow_nodes(frame, size, 0.17 * float(size.max()))
    reach = 0.03 * (frame.extent[3] - frame.extent[2])
    dx = (frame.triangles.x[nodes, None] - avoid[:, 0]) / frame.stretch
    dy = frame.triangles.y[nodes, None] - avoid[:, 1]
    nodes = nodes[(np.hypot(dx, dy) > reach).all(axis=1)]
    if nodes.size == 0:
        return
    way = horizontal_slip(result)[nodes]
    ax.quiver(
        frame.triangles.x[nodes],
        frame.triangles.y[nodes],
        way[:, 0],
        way[:, 1],
        angles="uv",
        scale_units="inches",
        scale=float(size.max()) / 0.42,
        width=0.0028,
        headwidth=4.2,
        headlength=4.8,
        headaxislength=4.4,
        color=INK,
        edgecolor="white",
        linewidth=0.4,
        zorder=6,
    )


def _stations(ax: Axes, frame: maps.MapFrame, result: xr.Dataset) -> list[Line2D]:
    kinds = maps.station_kinds(result)
    shown = frame.shown()
    handles = []
    for kind in dict.fromkeys(kinds[shown].tolist()):
        mine = shown & (kinds == kind)
        (handle,) = ax.plot(
            frame.station_x[mine],
            frame.station_y[mine],
            maps.MARKERS.get(kind, "^"),
            markersize=3.6 if mine.sum() < 150 else 1.8,
            markerfacecolor="white",
            markeredgecolor=BLUE,
            markeredgewidth=0.8,
            linestyle="none",
            label=TYPE_NAMES.get(kind, kind or "station"),
            zorder=5,
        )
        handles.append(handle)
    return handles


def _levels(peak: float) -> Float:
    step = nice_step(peak, 6)
    return np.asarray(np.arange(0.0, peak + step, step))


def _contours(ax: Axes, frame: maps.MapFrame, size: Float, levels: Float) -> Float:
    """Draw contour lines; return (n, 2) where their labels stand."""
    inner = levels[1:][levels[1:] < size.max()]
    if inner.size == 0:
        return np.empty((0, 2))
    lines = ax.tricontour(
        frame.triangles, size, levels=inner, colors=INK, linewidths=0.55, alpha=0.55
    )
    # a label on the smallest ring would cover the peak
    texts = ax.clabel(lines, inner[:-1:2], fmt=lambda v: f"{v:g}", fontsize=7.5)
    for text in texts:
        text.set(color=INK, alpha=1.0, path_effects=HALO, zorder=6)
    return np.array([t.get_position() for t in texts], dtype=np.float64).reshape(-1, 2)


@styled
def slip_map(result: xr.Dataset, title: str | None = None) -> Figure:
    """Slip in map view: colour and contours, direction, stations, peak.

    Parameters
    ----------
    result : data set laid out as ``docs/files.md`` says.
    title : instead of the inversion's name.

    Returns
    -------
    Figure, 7.2 inches wide.
    """
    frame = maps.map_frame(result)
    size = slip_magnitude(result)
    peak = float(size.max())
    map_width = WIDTH - 1.5
    figure = new_figure(min(9.2, frame.height(map_width) + 0.8))
    ax = figure.add_subplot()
    maps.prepare(ax, frame)
    levels = _levels(peak if peak > 0.0 else 1.0)
    colours = ax.tripcolor(
        frame.triangles, size, cmap=SLIP, vmin=0.0, vmax=levels[-1], shading="gouraud"
    )
    colours.set_zorder(2)
    written = _contours(ax, frame, size, levels)
    maps.graticule(ax)
    maps.draw_fault(ax, frame, result)
    handles = _stations(ax, frame, result)
    if peak > 0.0:
        _rake_arrows(ax, frame, result, written)
        handles.append(_mark_peak(ax, frame, size))
    bar = figure.colorbar(colours, ax=ax, ticks=levels, shrink=0.7, aspect=28, pad=0.02)
    bar.set_label("slip (m)")
    bar.outline.set_edgecolor(FAINT)
    _headline(ax, result, title, peak)
    _furniture(ax, frame, handles)
    return figure


def _mark_peak(ax: Axes, frame: maps.MapFrame, size: Float) -> Line2D:
    most = int(np.argmax(size))
    (handle,) = ax.plot(
        frame.triangles.x[most],
        frame.triangles.y[most],
        "*",
        markersize=11,
        markerfacecolor="#ffd33d",
        markeredgecolor=INK,
        markeredgewidth=0.7,
        linestyle="none",
        label="largest slip",
        zorder=7,
    )
    return handle


def _headline(ax: Axes, result: xr.Dataset, title: str | None, peak: float) -> None:
    attrs = result.attrs
    name = title or " · ".join(
        str(attrs[k]) for k in ("campaign_name", "inversion") if attrs.get(k)
    )
    depth = attrs.get("peak_slip_depth")
    where = f" at {float(depth) / 1e3:.0f} km depth" if depth is not None else ""
    ax.set_title(name or "Slip", pad=19)
    ax.text(
        0.0,
        1.012,
        f"$M_w$ {float(attrs['magnitude']):.2f}, largest slip "
        f"{peak:.3g} m{where}; arrows: motion of the upper side",
        transform=ax.transAxes,
        fontsize=8,
        va="bottom",
    )


def _furniture(ax: Axes, frame: maps.MapFrame, handles: list[Line2D]) -> None:
    """Put legend and scale bar where the fewest things are."""
    used = np.unique(frame.triangles.triangles)
    x = np.append(frame.triangles.x[used], np.repeat(frame.station_x, 20))
    y = np.append(frame.triangles.y[used], np.repeat(frame.station_y, 20))
    first, second = maps.free_corners(ax, x, y)[:2]
    hidden = int((~frame.shown()).sum())
    note = f"{hidden} stations lie outside" if hidden else ""
    ax.legend(handles=handles, loc=first, title=note, title_fontsize=7)  # type: ignore[call-overload]
    maps.scale_bar(ax, frame, second)
