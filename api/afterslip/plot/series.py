"""Displacement through time at chosen stations, part by part."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from numpy.typing import NDArray

from afterslip.plot.style import BLUE, FAINT, INK, SKY, SOFT, new_figure, styled
from afterslip.result import TYPE_NAMES, labels, vectors
from afterslip.units import COMPONENTS

Float = NDArray[np.float64]


def choose_stations(result: xr.Dataset, count: int = 5) -> list[str]:
    """Name the stations that move most, with one of each data type among them.

    They are spread out: a station near one already chosen gives way.
    """
    series = np.asarray(result["series"].values, dtype=np.float64)
    names = labels(result, "station")
    size = np.linalg.norm(series[0], axis=1) + np.linalg.norm(series[-1], axis=1)
    place = np.column_stack([result["station_x"].values, result["station_y"].values])
    apart = 0.12 * float(np.hypot(*np.ptp(place, axis=0)))
    kind_of = dict(
        zip(
            np.asarray(result["obs_station"].values).tolist(),
            labels(result, "obs_type").tolist(),
            strict=True,
        )
    )
    order = np.argsort(-size).tolist()
    kinds = dict.fromkeys(kind_of.get(i, "") for i in order)
    chosen = [next(i for i in order if kind_of.get(i, "") == k) for k in kinds]
    for spread in (apart, 0.0):
        for i in order:
            far = all(np.hypot(*(place[i] - place[j])) > spread for j in chosen)
            if len(chosen) < count and i not in chosen and far:
                chosen.append(i)
    chosen = sorted(chosen[:count], key=lambda i: -size[i])
    return [str(names[i]) for i in chosen]


@styled
def time_series(result: xr.Dataset, stations: Sequence[str] | None = None) -> Figure:
    """Predicted displacement through time, with the data at their epochs.

    One line of panels for each station, one panel for each component. The dashed
    line is the elastic (coseismic) part; the band from it to the curve is what
    viscoelastic flow adds. What was estimated beside slip is taken off the data.

    Parameters
    ----------
    result : data set laid out as ``docs/files.md`` says.
    stations : names; by default the ones that move most.

    Raises
    ------
    ValueError
        for a station that the result does not have.
    """
    names = labels(result, "station").tolist()
    wanted = list(stations) if stations is not None else choose_stations(result)
    unknown = [name for name in wanted if name not in names]
    if unknown:
        raise ValueError(f"no such station: {', '.join(unknown)}")
    if "predicted_beside" in result:
        # datum, rates and seasons are no motion of this slip
        bare = result["observed"] - result["predicted_beside"]
        result = result.assign(observed=bare)
    figure = new_figure(1.35 * len(wanted) + 0.75)
    grid = figure.subplots(len(wanted), 3, squeeze=False, sharex=True)
    data = vectors(result)
    time = np.asarray(result["time"].values, dtype=np.float64)
    for line, name in zip(grid, wanted, strict=True):
        row = names.index(name)
        curve = np.asarray(result["series"].values, dtype=np.float64)[:, row]
        mine = data[data.station == row]
        for c, ax in enumerate(line):
            _panel(ax, time, curve[:, c])
            _points(ax, time, mine.epoch, mine.observed[:, c], mine.sigma[:, c])
            _scale(ax)
        kind = TYPE_NAMES.get(str(mine.kind[0]), "") if mine.kind.size else ""
        line[0].set_title(f"{name}  {kind}".rstrip(), fontsize=8, color=BLUE)
        line[0].set_ylabel("m")
    for c, ax in enumerate(grid[0]):
        ax.annotate(
            COMPONENTS[c], (0.5, 1.0), (0, 17), xycoords="axes fraction",
            textcoords="offset points", ha="center", fontsize=9.5, fontweight="bold",
        )  # fmt: skip
    for ax in grid[-1]:
        ax.set_xlabel("years after the event")
    figure.align_ylabels(grid[:, 0])
    _legend(figure)
    return figure


def _panel(ax: Axes, time: Float, curve: Float) -> None:
    elastic = float(curve[0])
    ax.fill_between(time, elastic, curve, color=SKY, alpha=0.35, linewidth=0)
    ax.axhline(elastic, color=SOFT, linewidth=0.9, linestyle=(0, (4, 2)))
    ax.plot(time, curve, color=BLUE)
    ax.grid(visible=True, color=FAINT, linewidth=0.5)
    ax.ticklabel_format(axis="y", useOffset=False)
    ax.locator_params(axis="y", nbins=4)
    ax.set_xlim(-0.03 * time[-1], time[-1])


def _scale(ax: Axes) -> None:
    """Show curve and data; below a millimetre there is nothing but rounding."""
    ax.margins(y=0.18)
    low, high = ax.get_ylim()
    if high - low < 2e-3:
        middle = (low + high) / 2.0
        ax.set_ylim(middle - 1e-3, middle + 1e-3)


def _points(ax: Axes, time: Float, epoch: Float, observed: Float, sigma: Float) -> None:
    have = np.isfinite(observed) & (epoch <= time[-1])
    if have.any():
        ax.errorbar(
            epoch[have], observed[have], 1.96 * sigma[have], fmt="o", markersize=3,
            color=INK, elinewidth=0.9, capsize=1.8, zorder=5,
        )  # fmt: skip


def _legend(figure: Figure) -> None:
    figure.legend(
        handles=[
            Line2D([], [], color=INK, marker="o", markersize=3, linewidth=0.9,
                   label="observed, 95 %"),
            Line2D([], [], color=BLUE, label="predicted"),
            Line2D([], [], color=SOFT, linewidth=0.9, linestyle=(0, (4, 2)),
                   label="coseismic (elastic)"),
            Patch(facecolor=SKY, alpha=0.35, label="viscoelastic"),
        ],
        loc="outside upper center", ncols=4, frameon=False,
    )  # fmt: skip
