"""Maps of observed and predicted displacements."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.collections import EllipseCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

from afterslip.plot import maps
from afterslip.plot.style import (
    BLUE,
    FAINT,
    INK,
    PURPLE,
    SOFT,
    VERMILLION,
    WIDTH,
    metres,
    new_figure,
    nice_step,
    styled,
)
from afterslip.result import (
    TYPE_NAMES,
    Vectors,
    vectors,
)

Float = NDArray[np.float64]

ELLIPSE_95 = 2.4477
"""Radius, in standard deviations, of the circle that holds 95 % in two dimensions."""
NORMAL_95 = 1.96
MOST_ARROWS = 110
ARROW = 0.3
"""Length on the paper, in inches, of the vector that the key shows."""


def _families(size: Float, kind: NDArray[np.str_]) -> list[NDArray[np.bool_]]:
    """Split vectors by kind where one scale cannot show them all.

    Sea-floor motions are often ten times those on land: then land and sea have
    scales of their own, and the key says so.
    """
    sea = np.isin(kind, ["gnssa", "obp"])
    parts = [part for part in (~sea, sea) if part.any()]
    if len(parts) < 2:
        return parts
    typical = [float(np.nanpercentile(size[part], 90)) for part in parts]
    if max(typical) < 3.0 * max(min(typical), 1e-9):
        return [np.ones(kind.size, dtype=bool)]
    return parts


def _unit(size: Float, sigma: Float) -> float:
    """Return the vector, in m, that the key shows for values of these sizes.

    Where errors exceed the values, their bars set the scale: else they would be
    all that is visible.
    """
    least = 3.0 * float(np.nanmedian(sigma))
    # the largest arrow must stay on the map
    wanted = max(float(np.nanpercentile(size, 97)), float(np.nanmax(size)) / 1.6, least)
    return nice_step(wanted, 2)


def _style(observed: bool) -> dict[str, Any]:
    """Arrow of an observation (dark, wide) or of a prediction (red, slim, above)."""
    if observed:
        return {"color": INK, "width": 0.0068, "zorder": 5}
    return {"color": VERMILLION, "width": 0.0036, "zorder": 6}


def _draw_vectors(
    ax: Axes, place: tuple[Float, Float], u: Float, v: Float, scale: float,
    *, observed: bool,
) -> None:  # fmt: skip
    few = max(0.45, min(1.0, 90.0 / max(1, u.size)))
    look = _style(observed)
    look["width"] *= few
    ax.quiver(
        *place, u, v, angles="uv", scale_units="inches", scale=scale,
        headwidth=3.6, headlength=4.2, headaxislength=3.8, minlength=0.3, **look,
    )  # fmt: skip


class _Panel:
    """One map with arrows: window, scales and key together."""

    def __init__(self, ax: Axes, frame: maps.MapFrame, result: xr.Dataset) -> None:
        self.ax, self.frame = ax, frame
        maps.prepare(ax, frame)
        maps.draw_fault(ax, frame, result)
        self.keys: list[tuple[str, float, float]] = []
        self.tips: list[Float] = []

    def place(self, data: Vectors) -> tuple[Float, Float]:
        frame = self.frame
        return frame.station_x[data.station], frame.station_y[data.station]

    def tip(
        self, place: tuple[Float, Float], u: Float, v: Float, scale: float
    ) -> tuple[Float, Float]:
        """Where an arrow ends, in data coordinates (needs the final layout)."""
        box = self.ax.get_window_extent()
        inches = box.width / self.ax.figure.dpi
        west, east = self.ax.get_xlim()
        per_inch = (east - west) / inches
        return (
            place[0] + u / scale * per_inch,
            place[1] + v / scale * per_inch / self.frame.stretch,
        )

    def dots(self, data: Vectors) -> None:
        """Mark where vectors start, in the marker of their kind."""
        x, y = self.place(data)
        for kind in dict.fromkeys(data.kind.tolist()):
            mine = data.kind == kind
            self.ax.plot(
                x[mine], y[mine], maps.MARKERS.get(kind, "^"), markersize=2.2,
                color=SOFT, linestyle="none", zorder=3,
            )  # fmt: skip

    def finish(self, title: str, *, upright: bool) -> None:
        """Write title and key; the key takes the emptiest corner."""
        self.ax.set_title(title)
        x = np.concatenate([self.frame.station_x, *(t[0] for t in self.tips)])
        y = np.concatenate([self.frame.station_y, *(t[1] for t in self.tips)])
        corner = maps.free_corners(self.ax, x, y, (0.46, 0.2))[0]
        _key(self.ax, self.keys, corner, upright=upright)


def _key(
    ax: Axes, keys: list[tuple[str, float, float]], corner: str, *, upright: bool
) -> None:
    """Scale arrows, one line for each family, in a box in a corner."""
    box = ax.get_window_extent()
    dpi = ax.figure.dpi
    wide, high = box.width / dpi, box.height / dpi
    longest = max(unit / scale for _, unit, scale in keys)
    line = max(0.19, longest + 0.05) if upright else 0.19
    head = 0.13 if upright else longest
    size = (head + 0.2 + 0.07 * max(len(t) for t, _, _ in keys), line * len(keys) + 0.1)
    right, upper = maps.CORNERS[corner]
    left = 0.06 if right == 0.0 else wide - size[0] - 0.06
    base = 0.06 if upper == 0.0 else high - size[1] - 0.06
    ax.add_patch(
        Rectangle(
            (left / wide, base / high), size[0] / wide, size[1] / high,
            transform=ax.transAxes, facecolor="white", alpha=0.92, edgecolor=FAINT,
            linewidth=0.8, zorder=7,
        )
    )  # fmt: skip
    for i, (text, unit, scale) in enumerate(keys):
        middle = base + size[1] - 0.05 - (i + 0.5) * line
        length = unit / scale
        way = (0.0, length) if upright else (length, 0.0)
        start = (
            left + 0.08 + (0.05 if upright else 0.0),
            middle - (length / 2 if upright else 0.0),
        )
        ax.quiver(
            start[0] / wide, start[1] / high, *way, transform=ax.transAxes,
            angles="uv", scale_units="inches", scale=1.0, color=INK, width=0.0068,
            headwidth=3.6, headlength=4.2, headaxislength=3.8, zorder=8,
        )  # fmt: skip
        ax.text(
            (left + head + 0.14) / wide, middle / high, text, fontsize=7.5,
            transform=ax.transAxes, va="center", zorder=8,
        )  # fmt: skip


def _parts(
    panel: _Panel, data: Vectors, columns: slice
) -> list[tuple[Vectors, float, str]]:
    """Families of vectors with their scale (m per inch); fills the panel's key."""
    size = np.linalg.norm(data.observed[:, columns], axis=1)
    families = _families(size, data.kind)
    parts = []
    for rows in families:
        mine = data[rows]
        unit = _unit(size[rows], data.sigma[rows, columns])
        scale = unit / ARROW
        names = dict.fromkeys(TYPE_NAMES.get(k, k) for k in mine.kind.tolist())
        short = "sea floor" if set(mine.kind) <= {"gnssa", "obp"} else ", ".join(names)
        text = metres(unit) + (f" ({short})" if len(families) > 1 else "")
        panel.keys.append((text, unit, scale))
        parts.append((mine, scale, text))
    return parts


def _fit_panel(panel: _Panel, data: Vectors, *, vertical: bool) -> None:
    columns = slice(2, 3) if vertical else slice(0, 2)
    for mine, scale, _ in _parts(panel, data, columns):
        place = panel.place(mine)
        panel.dots(mine)
        for observed, table in ((True, mine.observed), (False, mine.predicted)):
            u, v = _uv(table, vertical=vertical)
            start = _beside(panel, place, observed=observed) if vertical else place
            _draw_vectors(panel.ax, start, u, v, scale, observed=observed)
            tip = panel.tip(start, u, v, scale)
            panel.tips.append(np.array(tip))
            sigma, colour = mine.sigma, SOFT
            if not observed:
                sigma, colour = mine.model_sigma, VERMILLION
            _errors(panel.ax, tip, sigma, scale, colour, vertical=vertical)
    panel.finish("Vertical" if vertical else "Horizontal", upright=vertical)


def _uv(table: Float, *, vertical: bool) -> tuple[Float, Float]:
    if vertical:
        return np.zeros(len(table)), table[:, 2]
    return table[:, 0], table[:, 1]


def _beside(
    panel: _Panel, place: tuple[Float, Float], *, observed: bool
) -> tuple[Float, Float]:
    """Shift upright arrows apart a little: else one would hide the other."""
    west, east, _, _ = panel.frame.extent
    step = 0.006 * (east - west)
    return place[0] + (-step if observed else step), place[1]


def _errors(
    ax: Axes, tip: tuple[Float, Float], sigma: Float, scale: float, colour: str,
    *, vertical: bool,
) -> None:  # fmt: skip
    """95 % errors at the heads of arrows, in their scale: ellipses, or upright bars."""
    if not vertical:
        diameter = 144.0 * ELLIPSE_95 * sigma / scale
        ax.add_collection(
            EllipseCollection(
                diameter[:, 0], diameter[:, 1], np.zeros(len(sigma)),
                units="points", offsets=np.column_stack(tip),
                offset_transform=ax.transData, facecolor="none", edgecolor=colour,
                linewidth=0.7, zorder=4,
            )
        )  # fmt: skip
        return
    # a bar of fixed size on the paper: two arrows without heads
    half = NORMAL_95 * sigma[:, 2]
    for side in (-half, half):
        ax.quiver(
            *tip, np.zeros_like(side), side, angles="uv", scale_units="inches",
            scale=scale, headwidth=0, headlength=0, headaxislength=0, width=0.0025,
            minlength=0.0, color=colour, zorder=7,
        )  # fmt: skip


def _residual_panel(panel: _Panel, data: Vectors, *, vertical: bool) -> None:
    """Residuals, in a scale of their own; colour tells those beyond their errors."""
    columns = slice(2, 3) if vertical else slice(0, 2)
    residual = replace(data, observed=data.residual)
    limit = NORMAL_95 if vertical else ELLIPSE_95
    for mine, scale, _ in _parts(panel, residual, columns):
        place = panel.place(mine)
        panel.dots(mine)
        u, v = _uv(mine.observed, vertical=vertical)
        size = np.linalg.norm((mine.observed / mine.sigma)[:, columns], axis=1)
        few = max(0.45, min(1.0, 90.0 / max(1, u.size)))
        panel.ax.quiver(
            *place, u, v, angles="uv", scale_units="inches", scale=scale,
            color=np.where(size > limit, PURPLE, BLUE).tolist(), width=0.006 * few,
            headwidth=3.6, headlength=4.2, headaxislength=3.8, zorder=5,
        )  # fmt: skip
        panel.tips.append(np.array(panel.tip(place, u, v, scale)))
    side = "vertical" if vertical else "horizontal"
    panel.finish(f"Observed − predicted, {side}", upright=vertical)


@styled
def data_fit(result: xr.Dataset) -> Figure:
    """Draw maps of observed and predicted displacements, and of what is left.

    Left: observed (dark) and predicted (red) with 95 % errors, those of the data and
    those that the mesh makes. Right: observed minus predicted in scales of their own.
    Top: horizontal; bottom: vertical.
    Only the first epoch of each station is drawn.

    Parameters
    ----------
    result : data set laid out as ``docs/files.md`` says.
    """
    frame = maps.map_frame(result)
    data = _first_epoch(vectors(result))
    data = data[frame.shown()[data.station]]
    every = np.unique(data.station).size
    data = data[_thinned(frame, data)]
    drawn = np.unique(data.station).size
    flat = data[np.isfinite(data.observed[:, :2]).all(axis=1)]
    upright = data[np.isfinite(data.observed[:, 2])]
    rows = [
        (part, up) for part, up in ((flat, False), (upright, True)) if part.kind.size
    ]
    panel_width = WIDTH / 2.0 - 0.35
    high = min(5.0, frame.height(panel_width) + 0.3)
    figure = new_figure(high * max(1, len(rows)) + 0.35)
    grid = figure.subplots(
        max(1, len(rows)), 2, squeeze=False, sharex=True, sharey=True
    )
    panels = [[_Panel(ax, frame, result) for ax in line] for line in grid]
    note = f"{drawn} of {every} stations are drawn" if drawn < every else ""
    _legend(figure, note, mesh=bool(np.nanmax(data.model_sigma, initial=0.0) > 0.0))
    figure.canvas.draw()  # arrows need to know how large the axes will be
    for (part, up), line in zip(rows, panels, strict=False):
        _fit_panel(line[0], part, vertical=up)
        _residual_panel(line[1], part, vertical=up)
    for ax in figure.axes:
        ax.label_outer()
    return figure


def _first_epoch(data: Vectors) -> Vectors:
    known: set[tuple[int, str]] = set()
    keep = np.zeros(data.station.size, dtype=bool)
    for i in np.argsort(data.epoch, kind="stable").tolist():
        key = (int(data.station[i]), str(data.kind[i]))
        keep[i] = key not in known
        known.add(key)
    return data[keep]


def _thinned(frame: maps.MapFrame, data: Vectors) -> NDArray[np.bool_]:
    """Keep so many stations, evenly spread, that their arrows can be distinguished.

    The map is cut into cells, ever larger ones, until few enough are occupied;
    of each cell and kind the station with the largest motion is drawn.
    """
    west, east, south, north = frame.extent
    size = np.linalg.norm(np.nan_to_num(data.observed), axis=1)
    order = np.argsort(-size, kind="stable")
    across = 400
    while True:
        i = (frame.station_x[data.station] - west) / (east - west) * across
        j = (frame.station_y[data.station] - south) / (north - south) * across
        cells: dict[tuple[int, int, str], int] = {}
        for row in order.tolist():
            cells.setdefault((int(i[row]), int(j[row]), str(data.kind[row])), row)
        if len(cells) <= MOST_ARROWS or across <= 4:
            break
        across = int(across * 0.85)
    keep = np.zeros(size.size, dtype=bool)
    keep[list(cells.values())] = True
    return keep if size.size > MOST_ARROWS else np.ones(size.size, dtype=bool)


def _legend(figure: Figure, note: str, *, mesh: bool) -> None:
    ring: Any = {"marker": "o", "markerfacecolor": "none", "linestyle": "none"}
    handles = [
        Line2D([], [], color=INK, linewidth=2.4, label="observed"),
        Line2D([], [], color=SOFT, label="95 % error", markersize=6, **ring),
        Line2D([], [], color=VERMILLION, linewidth=1.4, label="predicted"),
    ]
    if mesh:
        handles.append(
            Line2D([], [], color=VERMILLION, label="95 % error of the mesh",
                   markersize=6, **ring)
        )  # fmt: skip
    handles += [
        Line2D([], [], color=BLUE, linewidth=2.0, label="residual within error"),
        Line2D([], [], color=PURPLE, linewidth=2.0, label="beyond"),
    ]
    figure.legend(
        handles=handles, loc="outside upper center", ncols=len(handles),
        frameon=False, handlelength=1.6, columnspacing=1.4, title=note or None,
        title_fontsize=7.5,
    )  # fmt: skip
