"""What the data see on the fault: resolution, and the error of slip."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import Colormap
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.interpolate import LinearNDInterpolator
from scipy.spatial import cKDTree

from afterslip.plot import maps
from afterslip.plot.style import (
    FAINT,
    SHARE,
    SLIP,
    WIDTH,
    new_figure,
    nice_step,
    styled,
)
from afterslip.result import SLIP_COMPONENTS

Float = NDArray[np.float64]


def on_nodes(result: xr.Dataset, name: str, component: int) -> Float | None:
    """Spread a value of the unit sources over the fault.

    Linear in (along, down) between the sources, the nearest one's value outside
    of them and where a fault has too few for that.

    Parameters
    ----------
    result : the inversion's result.
    name : a variable over ``source``.
    component : 0 along strike, 1 along dip.

    Returns
    -------
    (n_fault_node,) float64, or None where there are no such sources.
    """
    kind = np.asarray(result["source_component"].values)
    if not (kind == component).any():
        return None
    nodes = np.column_stack([result[f"fault_{c}"].values for c in "xyz"])
    flat = np.column_stack([result["fault_along"].values, result["fault_down"].values])
    place = np.asarray(result["source_position"].values, dtype=np.float64)
    values = np.asarray(result[name].values, dtype=np.float64)
    spread = np.full(len(nodes), np.nan)
    for fault in np.unique(result["fault_index"].values):
        mine = np.flatnonzero(result["fault_index"].values == fault)
        rows = (kind == component) & (result["source_fault"].values == fault)
        if rows.any():
            _, near = cKDTree(nodes[mine]).query(place[rows])
            spread[mine] = _between(flat[mine][near], values[rows], flat[mine])
    return spread


def _between(known: Float, values: Float, wanted: Float) -> Float:
    _, nearest = cKDTree(known).query(wanted)
    outside = np.asarray(values[nearest], dtype=np.float64)
    spans = np.unique(known[:, 0]).size > 1 and np.unique(known[:, 1]).size > 1
    if len(values) < 4 or not spans:
        return outside
    inside = LinearNDInterpolator(known, values, rescale=True)(wanted)
    return np.where(np.isnan(inside), outside, inside)


@styled
def resolution(result: xr.Dataset) -> Figure:
    """Map the resolution's diagonal and, where known, the error of slip.

    Below a half (outside the white line) an estimate says more of the smoothing
    than of the Earth.

    Parameters
    ----------
    result : data set laid out as ``docs/files.md`` says.
    """
    frame = maps.map_frame(result)
    names = ["resolution"] + (["slip_sigma"] if "slip_sigma" in result else [])
    spread = {(c, name): on_nodes(result, name, c) for c in range(2) for name in names}
    drawn = [c for c in range(2) if spread[c, "resolution"] is not None]
    panel = min((WIDTH - 0.9) / max(1, len(drawn)) - 0.2, 3.0)
    high = min(3.9, frame.height(panel) + 0.45)
    figure = new_figure(high * len(names) + 0.2)
    grid = figure.subplots(
        len(names), len(drawn), squeeze=False, sharex=True, sharey=True
    )
    for line, name in zip(grid, names, strict=True):
        values = [np.nan_to_num(np.asarray(spread[c, name])) for c in drawn]
        share = name == "resolution"
        top = 1.0 if share else _round_up(values)
        for c, ax, value in zip(drawn, line, values, strict=True):
            image = _panel(ax, frame, result, value, SHARE if share else SLIP, top)
            if share:
                _half(ax, frame, value)
            word = "Resolution" if share else "Standard deviation"
            ax.set_title(f"{word}, {SLIP_COMPONENTS[c]} component")
        bar = figure.colorbar(image, ax=list(line), shrink=0.75, aspect=24, pad=0.02)
        bar.outline.set_edgecolor(FAINT)
        bar.set_label("share of the slip that is seen" if share else "m")
    for ax in figure.axes[: len(names) * len(drawn)]:
        ax.label_outer()
    return figure


def _round_up(values: list[Float]) -> float:
    largest = max(float(v.max()) for v in values)
    step = nice_step(largest, 4)
    return float(np.ceil(largest / step - 1e-9) * step) or 1.0


def _panel(
    ax: Axes, frame: maps.MapFrame, result: xr.Dataset, values: Float,
    cmap: Colormap, top: float,
) -> Any:  # fmt: skip
    maps.prepare(ax, frame)
    image = ax.tripcolor(
        frame.triangles, values, cmap=cmap, vmin=0.0, vmax=top,
        shading="gouraud", zorder=2,
    )  # fmt: skip
    maps.graticule(ax)
    maps.draw_fault(ax, frame, result)
    kinds = maps.station_kinds(result)
    shown = frame.shown()
    for kind in dict.fromkeys(kinds[shown].tolist()):
        mine = shown & (kinds == kind)
        ax.plot(
            frame.station_x[mine], frame.station_y[mine], maps.MARKERS.get(kind, "^"),
            markersize=2.6, markerfacecolor="white", markeredgecolor="black",
            markeredgewidth=0.5, linestyle="none", zorder=5,
        )  # fmt: skip
    return image


def _half(ax: Axes, frame: maps.MapFrame, values: Float) -> None:
    """Draw the border between what is seen by more and by less than a half."""
    if values.min() < 0.5 < values.max():
        ax.tricontour(
            frame.triangles, values, levels=[0.5], colors="white", linewidths=1.3
        )
