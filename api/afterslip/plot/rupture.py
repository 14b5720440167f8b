"""A rupture through its seconds: moment rate, rupture times, ground motion."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from numpy.typing import NDArray

from afterslip.plot.style import (
    BLUE,
    FAINT,
    INK,
    SKY,
    SLIP,
    VERMILLION,
    new_figure,
    styled,
)
from afterslip.result import facts, labels, moving
from afterslip.units import COMPONENTS

Float = NDArray[np.float64]

# stations that are drawn of a data set
_MOST = 12
# of the distance of two traces, that the largest motion takes
_ROOM = 0.55
_OBSERVED: dict[str, Any] = {"color": INK, "linewidth": 1.1}
_PREDICTED: dict[str, Any] = {"color": VERMILLION, "linewidth": 0.9, "linestyle": "--"}
_UNITS = {"m s-1": "m/s"}


@styled
def moment_rate(result: xr.Dataset) -> Figure:
    """Moment rate with its band, and when the slip of sources begins, by distance.

    Parameters
    ----------
    result : data set laid out as ``docs/files.md`` says, of an inversion with
        ``windows``.
    """
    figure = new_figure(3.1)
    left, right = figure.subplots(1, 2)
    time = result["rate_time"].values
    if "moment_rate_interval" in result:
        low, high = np.maximum(result["moment_rate_interval"].values.T, 0.0)
        left.fill_between(
            time, low, high, color=SKY, alpha=0.35, linewidth=0, label="95 %"
        )
        left.legend(frameon=False)
    left.plot(time, result["moment_rate"].values, color=BLUE)
    left.set_xlabel("seconds after the event")
    left.set_ylabel("moment rate (N m/s)")
    left.set_ylim(bottom=0.0)
    left.grid(visible=True, color=FAINT, linewidth=0.5)
    _times(right, figure, result)
    return figure


def _times(ax: Any, figure: Figure, result: xr.Dataset) -> None:
    """Draw rupture times over the distance from the hypocentre."""
    windows = (facts(result, "request") or {}).get("windows") or {}
    speed = float(windows.get("rupture_speed") or np.nan)
    distance = speed * result["window_begin"].values[0]
    begun, rise = result["rupture_time"].values, result["rise_time"].values
    slip = np.abs(result["slip"].values)
    there = np.isfinite(begun) & np.isfinite(distance)
    ax.vlines(
        distance[there], begun[there], (begun + rise)[there], color=FAINT, linewidth=1.0
    )
    drawn = ax.scatter(
        distance[there], begun[there], c=slip[there], cmap=SLIP, s=22,
        edgecolors=INK, linewidths=0.4, zorder=3, vmin=0.0,
    )  # fmt: skip
    figure.colorbar(drawn, ax=ax, label="slip (m)")
    far = float(np.nanmax(distance, initial=0.0))
    ax.plot(
        [0.0, far], [0.0, far / speed], color=VERMILLION, linewidth=0.9,
        linestyle=(0, (4, 2)), label=f"front, {speed:g} km/s",
    )  # fmt: skip
    ax.legend(frameon=False, loc="upper left")
    ax.set_xlabel("km from the hypocentre")
    ax.set_ylabel("seconds after the event")
    ax.set_ylim(bottom=0.0)


@styled
def motion_fit(result: xr.Dataset) -> Figure:
    """Observed and predicted ground motion, a row a data set and a column a component.

    Parameters
    ----------
    result : with data of ground motion; `afterslip.result.moving` tells.
    """
    sets = labels(result, "obs_dataset")
    names = list(dict.fromkeys(sets[moving(result)].tolist()))
    counts = [_chosen(result, sets == name) for name in names]
    lines = sum(map(len, counts))
    figure = new_figure(0.9 * len(names) + 0.3 * lines)
    ratios = [len(chosen) + 1 for chosen in counts]
    panels = figure.subplots(
        len(names),
        3,
        squeeze=False,
        sharex="row",
        gridspec_kw={"height_ratios": ratios},
    )
    for row, (name, chosen) in zip(
        panels, zip(names, counts, strict=True), strict=True
    ):
        _draw_set(row, result, sets == name, chosen)
        row[0].set_title(f"{name}: {COMPONENTS[0]}")
        for ax, word in zip(row[1:], COMPONENTS[1:], strict=True):
            ax.set_title(word)
    for ax in panels[-1]:
        ax.set_xlabel("seconds after the event")
    return figure


def _chosen(result: xr.Dataset, mine: NDArray[np.bool_]) -> list[int]:
    """Return the stations of a data set with the largest motion."""
    station = result["obs_station"].values[mine]
    observed = np.abs(result["observed"].values[mine])
    names = np.unique(station)
    largest = np.array([observed[station == k].max() for k in names])
    return [int(k) for k in names[np.argsort(-largest)[:_MOST]]]


def _draw_set(
    row: Any, result: xr.Dataset, mine: NDArray[np.bool_], chosen: list[int]
) -> None:
    station, component = (
        result[f"obs_{key}"].values for key in ("station", "component")
    )
    time = result["obs_time"].values
    observed, predicted = result["observed"].values, result["predicted"].values
    unit = str(labels(result, "obs_unit")[np.flatnonzero(mine)[0]])
    stations, ticks = labels(result, "station"), []
    for number, place in enumerate(chosen):
        own = mine & (station == place)
        largest = max(float(np.abs(observed[own]).max()), 1e-12)
        ticks.append(f"{stations[place]}\n{largest:.2g} {_UNITS.get(unit, unit)}")
        for axis, ax in enumerate(row):
            which = np.flatnonzero(own & (component == axis))
            which = which[np.argsort(time[which])]
            ax.axhline(-number, color=FAINT, linewidth=0.5)
            for values, how in ((observed, _OBSERVED), (predicted, _PREDICTED)):
                ax.plot(time[which], -number + _ROOM * values[which] / largest, **how)
    for ax in row:
        ax.set_yticks([])
    row[0].set_yticks([-float(number) for number in range(len(chosen))], ticks)
