"""Series of waves at stations, ordered by their distance."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from afterslip.errors import ArchiveError
from afterslip.plot.style import BLUE, FAINT, INK, metres, new_figure, styled
from afterslip.units import COMPONENTS, KM

Float = NDArray[np.float64]

# inches from one label to the next
_LINE = 0.11


@styled
def record_section(
    greens: xr.Dataset, slip: ArrayLike, variable: str = "displacement"
) -> Figure:
    """Draw the series that slip makes, one panel a component, by distance.

    Parameters
    ----------
    greens : store of a campaign of waves that has stations.
    slip : (n_source,) m, of each unit source.
    variable : "displacement", m, or "seismogram", velocity in m/s.

    Raises
    ------
    ArchiveError
        The store has no such series.
    """
    if variable not in greens or greens[variable].dims[-1] != "sample":
        raise ArchiveError(f"the store has no series {variable!r} at stations")
    weights = np.asarray(slip, dtype=np.float64)
    moved = np.flatnonzero(weights)
    if not len(moved):
        raise ArchiveError("slip is zero everywhere: there is nothing to draw")
    series = np.tensordot(
        weights[moved], greens[variable].isel(source=moved).values, axes=1
    )
    distance = _distance(greens, weights)
    order = np.argsort(distance)
    times = greens["sample"].values
    # one trace reaches to its neighbours where it is largest
    room = np.ptp(distance) / max(len(order) - 1, 1) / KM
    largest = float(np.abs(series).max()) or 1.0
    figure = new_figure(1.5 + 0.34 * len(order))
    panels = figure.subplots(1, 3, sharex=True, sharey=True)
    for component, panel in enumerate(panels):
        for station in order:
            at = distance[station] / KM
            panel.axhline(at, color=FAINT, linewidth=0.5)
            trace = series[station, component] / largest * 1.5 * room
            panel.plot(times, at + trace, color=BLUE, linewidth=0.9)
        panel.set_title(COMPONENTS[component])
        panel.set_xlabel("time (s)")
    panels[0].set_ylabel("distance from the slip (km)")
    names = greens["station"].values
    places = distance[order] / KM
    low, high = panels[2].get_ylim()
    inches = panels[2].get_position().height * figure.get_figheight()
    heights = apart(places, (high - low) / inches * _LINE)
    for station, place, height in zip(order, places, heights, strict=True):
        panels[2].annotate(
            str(names[station]),
            (times[-1], place),
            xytext=(1.04, height),
            textcoords=panels[2].get_yaxis_transform(),
            arrowprops={"arrowstyle": "-", "color": FAINT, "linewidth": 0.5},
            fontsize=6.5,
            color=INK,
            va="center",
        )
    unit = "/s" if variable == "seismogram" else ""
    figure.suptitle(f"{variable}, at most {_size(largest)}{unit}", fontsize=9)
    return figure


def apart(places: Float, least: float) -> Float:
    """Move labels as little as they need, so that none is over another.

    Parameters
    ----------
    places : (n,) sorted. least : distance of neighbours at least.

    Returns
    -------
    (n,) in the same order.
    """
    # labels that touch are one block around the mean of where they want to be
    blocks: list[list[float]] = []
    for place in places:
        blocks.append([float(place)])
        while len(blocks) > 1 and _overlap(blocks[-2], blocks[-1], least):
            last = blocks.pop()
            blocks[-1] += last
    found = [
        np.mean(block) + least * (np.arange(len(block)) - 0.5 * (len(block) - 1))
        for block in blocks
    ]
    return np.concatenate(found)


def _overlap(first: list[float], second: list[float], least: float) -> bool:
    room = 0.5 * least * (len(first) + len(second))
    return bool(np.mean(second) - np.mean(first) < room)


def _size(value: float) -> str:
    return metres(float(f"{value:.2g}"))


def _distance(greens: xr.Dataset, slip: Float) -> Float:
    """(n_station,) m, horizontal, from the middle of the slip."""
    share = np.abs(slip) * greens["source_area"].values
    centre = np.average(greens["source_position"].values, axis=0, weights=share)
    x, y = greens["station_x"].values, greens["station_y"].values
    return np.asarray(np.hypot(x - centre[0], y - centre[1]))
