"""Slip on the fault, in map view; steep faults in their own plane as well."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from afterslip.plot import maps, paint, section
from afterslip.plot.outline import border
from afterslip.plot.style import BLUE, FAINT, WIDTH, new_figure, styled
from afterslip.result import TYPE_NAMES, mesh_error, slip_magnitude
from afterslip.units import largest_slip, limits

Float = NDArray[np.float64]
# up-dip vectors of a fault without a hanging wall point up; cos 2 degrees
VERTICAL = 0.9994
# of paper beside the map, in inches: title, three lines below it, ticks
HEAD = 1.3


def horizontal_slip(result: xr.Dataset) -> Float:
    """(n_fault_node, 2) m, east and north of the hanging wall's motion."""
    slip = np.asarray(result["fault_slip"].values, dtype=np.float64)
    strike = np.asarray(result["fault_strike"].values, dtype=np.float64)
    updip = np.asarray(result["fault_updip"].values, dtype=np.float64)
    motion = slip[:, :1] * strike + slip[:, 1:] * updip
    return np.asarray(motion[:, :2])


@styled
def slip_map(result: xr.Dataset, title: str | None = None) -> Figure:
    """Slip in map view: colour and contours, direction, stations, peak.

    Faults that dip by more than 60 degrees are a line in a map: they are drawn
    below it once more, each in its own plane.

    Parameters
    ----------
    result : data set laid out as ``docs/files.md`` says.
    title : instead of the inversion's name.

    Returns
    -------
    Figure, 7.2 inches wide.
    """
    frame = maps.map_frame(result)
    steep = section.steep_faults(result)
    width = WIDTH - 1.5
    most = 8.4 if not steep else 3.8
    high = [min(most, frame.height(width)) + HEAD]
    high += [section.height(result, fault, width) for fault in steep]
    figure = new_figure(sum(high))
    axes = figure.subplots(len(high), 1, squeeze=False, height_ratios=high)[:, 0]
    size = slip_magnitude(result)
    peak = float(size.max())
    levels = paint.contour_levels(peak if peak > 0.0 else 1.0)
    canvas = paint.Canvas(
        frame.triangles,
        list(frame.borders.values()),
        frame.stretch,
        horizontal_slip(result),
        size,
        levels,
        peak,
    )
    image = _map(axes[0], frame, result, canvas, steep, high[0] - HEAD)
    slip = np.asarray(result["fault_slip"].values, dtype=np.float64)
    for ax, fault in zip(axes[1:], steep, strict=True):
        name = section.fault_names(result)[fault]
        own = section.prepare(ax, result, fault, f"In the plane of {name}")
        rim = [border(result, fault) / 1e3]
        _plane(ax, paint.Canvas(own, rim, 1.0, slip, size, levels, peak))
    # a narrow map above the plane of a fault begins where that does
    bar = figure.colorbar(
        image, ax=list(axes), ticks=levels, shrink=0.7, aspect=28, pad=0.02,
        panchor=(0.0, 1.0) if steep else (1.0, 0.5),
    )  # fmt: skip
    bar.set_label("slip (m)")
    bar.outline.set_edgecolor(FAINT)
    _headline(axes[0], result, title, peak)
    return figure


def _map(
    ax: Axes, frame: maps.MapFrame, result: xr.Dataset, canvas: paint.Canvas,
    steep: list[int], high: float,
) -> Any:  # fmt: skip
    maps.prepare(ax, frame)
    image = paint.colour(ax, canvas)
    stations = np.column_stack((frame.station_x, frame.station_y))
    flat = len(steep) < len(np.unique(result["fault_index"].values))
    written = paint.contours(ax, canvas, stations) if flat else np.empty((0, 2))
    maps.graticule(ax)
    edges = maps.draw_fault(ax, frame, result)
    handles = [*_stations(ax, frame, result), *edges]
    if canvas.peak > 0.0:
        if flat:
            paint.arrows(ax, canvas, written)
        handles.append(paint.mark_peak(ax, canvas))
    _furniture(ax, frame, handles, high)
    return image


def _plane(ax: Axes, canvas: paint.Canvas) -> None:
    paint.colour(ax, canvas)
    written = paint.contours(ax, canvas, np.empty((0, 2)))
    section.graticule(ax)
    if canvas.peak > 0.0:
        paint.arrows(ax, canvas, written)
        if canvas.size[canvas.nodes].max() == canvas.peak:
            paint.mark_peak(ax, canvas)


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


def _headline(ax: Axes, result: xr.Dataset, title: str | None, peak: float) -> None:
    attrs = result.attrs
    name = title or " · ".join(
        str(attrs[k]) for k in ("campaign_name", "inversion") if attrs.get(k)
    )
    depth = attrs.get("peak_slip_depth")
    where = (
        f" at {0.0 + round(float(depth) / 1e3):.0f} km depth"
        if depth is not None
        else ""
    )
    steep = float(np.abs(result["fault_updip"].values[:, 2]).min()) > VERTICAL
    side = "side right of strike" if steep else "hanging wall"
    mw = limits(attrs.get("magnitude_interval"), ".2f")
    most = largest_slip({**attrs, "peak_slip": peak}, ".3g", where)
    wrong = mesh_error(result)
    wrong = wrong and f"\nestimated mesh error of displacements: {wrong}"
    # the name may hold any sign, and a dollar would begin a formula
    ax.set_title(name.replace("$", r"\$") or "Slip", pad=41 if wrong else 30)
    line = ax.annotate(
        f"$M_w$ {float(attrs['magnitude']):.2f}{mw}; arrows: motion of the {side}\n"
        f"largest slip {most}{wrong}",
        (0.0, 1.0),
        (0, 5),
        xycoords="axes fraction",
        textcoords="offset points",
        fontsize=8,
        va="bottom",
    )
    # else the colour bar stands beside the end of this line, not beside the map
    line.set_in_layout(False)


def _furniture(
    ax: Axes, frame: maps.MapFrame, handles: list[Line2D], high: float
) -> None:
    """Put legend and scale bar where the fewest things are.

    ``high`` is the height of the map on paper, in inches.
    """
    size = (1.9 * frame.height(1.0) / high, 0.9 / high)
    used = np.unique(frame.triangles.triangles)
    x = np.append(frame.triangles.x[used], np.repeat(frame.station_x, 20))
    y = np.append(frame.triangles.y[used], np.repeat(frame.station_y, 20))
    first, second = maps.free_corners(ax, x, y, size)[:2]
    hidden = int((~frame.shown()).sum())
    note = f"{hidden} stations lie outside" if hidden else ""
    ax.legend(handles=handles, loc=first, title=note, title_fontsize=7)  # type: ignore[call-overload]
    maps.scale_bar(ax, frame, second)
