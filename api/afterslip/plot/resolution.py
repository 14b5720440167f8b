"""What the data see on the fault: resolution, and the error of slip."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import Colormap
from matplotlib.figure import Figure
from matplotlib.tri import Triangulation
from numpy.typing import NDArray
from scipy.interpolate import RegularGridInterpolator

from afterslip.plot import maps, section
from afterslip.plot.outline import border, fault_numbers, rectangle
from afterslip.plot.style import (
    FAINT,
    SHARE,
    SLIP,
    WIDTH,
    new_figure,
    nice_step,
    styled,
)
from afterslip.units import SLIP_COMPONENTS

# what results of 0.1 hold, which do not say it
UNSAID = "data errors and smoothness as they were chosen; no signs"
Float = NDArray[np.float64]
Int = NDArray[np.int64]


def on_nodes(result: xr.Dataset, name: str, component: int) -> Float | None:
    """Spread a value of the unit sources over the fault.

    Bilinear between the centres of the cells of the fault's grid of sources,
    constant from the outermost centres to the edges.

    Parameters
    ----------
    result : the inversion's result.
    name : a variable over ``source``.
    component : 0 along strike, 1 along dip.

    Returns
    -------
    (n_fault_node,) float64, nan on faults without sources; None where there are no
    such sources at all.
    """
    kind = np.asarray(result["source_component"].values)
    if not (kind == component).any():
        return None
    flat = np.column_stack([result["fault_along"].values, result["fault_down"].values])
    values = np.asarray(result[name].values, dtype=np.float64)
    patch = np.asarray(result["source_patch"].values, dtype=np.int64)
    index = np.asarray(result["fault_index"].values)
    spread = np.full(len(flat), np.nan)
    for fault in fault_numbers(result):
        rows = (kind == component) & (result["source_fault"].values == fault)
        if rows.any():
            a0, a1, d0, d1 = rectangle(result, fault)
            place = (flat[index == fault] - [a0, d0]) / [a1 - a0, d1 - d0]
            spread[index == fault] = _bilinear(patch[rows], values[rows], place)
    return spread


def _bilinear(patch: Int, values: Float, place: Float) -> Float:
    """Interpolate on a grid of cells.

    Parameters
    ----------
    patch : (n, 2) which cell each value belongs to.
    place : (n_place, 2) from 0 to 1 over the grid.
    """
    shape = patch.max(axis=0) + 1
    table = np.full(shape, np.nan)
    table[patch[:, 0], patch[:, 1]] = values
    centre = [(np.arange(n) + 0.5) / n for n in shape]
    inner = np.clip(place, [c[0] for c in centre], [c[-1] for c in centre])
    # a single line of cells is constant across it
    thin = shape == 1
    table = np.repeat(np.repeat(table, 1 + thin[0], axis=0), 1 + thin[1], axis=1)
    axes = [
        np.append(c, c[-1] + 1.0) if t else c for c, t in zip(centre, thin, strict=True)
    ]
    return np.asarray(RegularGridInterpolator(axes, table)(inner))


@styled
def resolution(result: xr.Dataset) -> Figure:
    """Map the resolution's diagonal and, where known, the error of slip.

    Below a half (outside the white line) an estimate says more of the smoothing
    than of the Earth.

    Parameters
    ----------
    result : data set laid out as ``docs/files.md`` says.
    """
    names = ["resolution"] + (["slip_sigma"] if "slip_sigma" in result else [])
    spread = {(c, name): on_nodes(result, name, c) for c in range(2) for name in names}
    drawn = [c for c in range(2) if spread[c, "resolution"] is not None]
    lines = [(name, view) for name in names for view in views(result)]
    panel = min((WIDTH - 0.9) / max(1, len(drawn)) - 0.2, 3.0)
    high = [view.height(panel) for _, view in lines]
    figure = new_figure(sum(high) + 0.2, panel * len(drawn) + 1.3)
    grid = figure.subplots(len(lines), len(drawn), squeeze=False, height_ratios=high)
    for axes, (name, view) in zip(grid, lines, strict=True):
        values = [np.nan_to_num(np.asarray(spread[c, name])) for c in drawn]
        share = name == "resolution"
        top = 1.0 if share else round_up(values)
        for c, ax, value in zip(drawn, axes, values, strict=True):
            triangles = view.prepare(ax)
            image = colour(ax, triangles, value, SHARE if share else SLIP, top)
            maps.clip_to_faults(ax, image, view.borders())
            view.decorate(ax)
            if share:
                _half(ax, triangles, value)
            word = "Resolution" if share else "Standard deviation"
            ax.set_title(f"{word}, {SLIP_COMPONENTS[c]} component")
            if ax is not axes[0]:
                ax.set_ylabel("")
                ax.tick_params(labelleft=False)
        bar = figure.colorbar(image, ax=list(axes), shrink=0.75, aspect=24, pad=0.02)
        bar.outline.set_edgecolor(FAINT)
        bar.set_label("share that is recovered" if share else "m")
    if "slip_sigma" in result:
        holds = result["slip_sigma"].attrs.get("holds", UNSAID)
        figure.supxlabel(f"Standard deviation holds: {holds}", fontsize=7)
    return figure


class _MapView:
    """All faults in a map, with the stations."""

    def __init__(self, result: xr.Dataset) -> None:
        self.result = result
        self.frame = maps.map_frame(result)

    def height(self, width: float) -> float:
        return min(3.9, self.frame.height(width) + 0.45)

    def prepare(self, ax: Axes) -> Triangulation:
        maps.prepare(ax, self.frame)
        return self.frame.triangles

    def borders(self) -> list[Float]:
        return list(self.frame.borders.values())

    def decorate(self, ax: Axes) -> None:
        frame = self.frame
        maps.graticule(ax)
        maps.draw_fault(ax, frame, self.result)
        kinds = maps.station_kinds(self.result)
        shown = frame.shown()
        for kind in dict.fromkeys(kinds[shown].tolist()):
            mine = shown & (kinds == kind)
            ax.plot(
                frame.station_x[mine], frame.station_y[mine],
                maps.MARKERS.get(kind, "^"), markersize=2.6, markerfacecolor="white",
                markeredgecolor="black", markeredgewidth=0.5, linestyle="none",
                zorder=5,
            )  # fmt: skip


class _PlaneView:
    """One steep fault in its own plane."""

    def __init__(self, result: xr.Dataset, fault: int) -> None:
        self.result, self.fault = result, fault

    def height(self, width: float) -> float:
        return section.height(self.result, self.fault, width)

    def prepare(self, ax: Axes) -> Triangulation:
        return section.prepare(ax, self.result, self.fault, "")

    def borders(self) -> list[Float]:
        return [border(self.result, self.fault) / 1e3]

    def decorate(self, ax: Axes) -> None:
        section.graticule(ax)


def views(result: xr.Dataset) -> Sequence[_MapView | _PlaneView]:
    """Return how faults are drawn: steep ones in their planes, else all in a map."""
    steep = section.steep_faults(result)
    if len(steep) == len(np.unique(result["fault_index"].values)):
        return [_PlaneView(result, fault) for fault in steep]
    return [_MapView(result)]


def round_up(values: list[Float]) -> float:
    """Round the largest of all values up to a number for the end of a scale."""
    largest = max(float(v.max()) for v in values)
    step = nice_step(largest, 4)
    return float(np.ceil(largest / step - 1e-9) * step) or 1.0


def colour(
    ax: Axes, triangles: Triangulation, values: Float, cmap: Colormap, top: float
) -> Any:
    """Fill the triangles with the values at their corners, from 0 to ``top``."""
    return ax.tripcolor(
        triangles, values, cmap=cmap, vmin=0.0, vmax=top, shading="gouraud", zorder=2
    )


def _half(ax: Axes, triangles: Triangulation, values: Float) -> None:
    """Draw the border between what is resolved by more and by less than a half."""
    own = values[np.unique(triangles.triangles)]
    if own.min() < 0.5 < own.max():
        ax.tricontour(triangles, values, levels=[0.5], colors="white", linewidths=1.3)
