"""Line-of-sight data: observed, predicted, and what is left."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib import colormaps
from matplotlib.figure import Figure
from numpy.typing import NDArray

from afterslip.plot import maps
from afterslip.plot.style import FAINT, WIDTH, new_figure, nice_step, styled
from afterslip.result import labels

Float = NDArray[np.float64]

SIGNED = colormaps["PuOr_r"]
MOST = 3
"""Scenes drawn; a scene is the line-of-sight part of a data set."""


def has_scenes(result: xr.Dataset) -> bool:
    """Tell whether there are line-of-sight data to draw."""
    return bool((np.asarray(result["obs_component"].values) == 3).any())


@styled
def scene_fit(result: xr.Dataset) -> Figure:
    """Line-of-sight displacement: observed, predicted, observed - predicted.

    One line of maps for each data set, the largest ones if there are many. The
    first two share a scale, the third has its own.

    Parameters
    ----------
    result : data set laid out as ``docs/files.md`` says.

    Raises
    ------
    ValueError
        where there are no such data.
    """
    if not has_scenes(result):
        raise ValueError("there are no line-of-sight data")
    along = np.asarray(result["obs_component"].values) == 3
    names = labels(result, "obs_dataset")
    every, count = np.unique(names[along], return_counts=True)
    chosen = every[np.argsort(-count)][:MOST].tolist()
    frame = maps.map_frame(result)
    panel = (WIDTH - 1.9) / 3.0
    high = min(4.0, frame.height(panel) + 0.5)
    figure = new_figure(high * len(chosen) + 0.2)
    grid = figure.subplots(len(chosen), 3, squeeze=False, sharex=True, sharey=True)
    for line, name in zip(grid, chosen, strict=True):
        rows = along & (names == name)
        observed = np.asarray(result["observed"].values, dtype=np.float64)[rows]
        predicted = np.asarray(result["predicted"].values, dtype=np.float64)[rows]
        place = np.asarray(result["obs_station"].values)[rows].astype(np.int64)
        x, y = frame.station_x[place], frame.station_y[place]
        both = _reach(np.append(observed, predicted))
        left = _reach(observed - predicted)
        for ax, title, values, reach in (
            (line[0], f"{name}: observed", observed, both),
            (line[1], "Predicted", predicted, both),
            (line[2], "Observed − predicted", observed - predicted, left),
        ):
            maps.prepare(ax, frame)
            # three maps in a row leave room for few degrees
            ax.locator_params(nbins=3)
            maps.draw_fault(ax, frame, result)
            image = ax.scatter(
                x, y, c=values, s=_dot(x.size), cmap=SIGNED, vmin=-reach, vmax=reach,
                linewidths=0, zorder=2, rasterized=True,
            )  # fmt: skip
            ax.set_title(title.replace("$", r"\$"), fontsize=8.5)
            ax.label_outer()
            if ax is not line[0]:
                last = ax is line[2]
                bar = figure.colorbar(
                    image, ax=line[2] if last else line[:2].tolist(),
                    orientation="horizontal", shrink=0.8 if last else 0.5, aspect=24,
                )  # fmt: skip
                bar.outline.set_edgecolor(FAINT)
                bar.set_label("towards the satellite (m)" if not last else "m")
    return figure


def _reach(values: Float) -> float:
    """Return a round value that all but the wildest are within."""
    largest = float(np.percentile(np.abs(values), 99)) or 1.0
    step = nice_step(largest, 4)
    return float(np.ceil(largest / step - 1e-9) * step)


def _dot(count: int) -> float:
    """Return the area of a dot, in points², that suits so many of them."""
    return float(np.clip(6000.0 / max(1, count), 0.6, 14.0))
