"""Map view: the frame that all maps share, the fault's outline, scale bars."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.lines import Line2D
from matplotlib.patches import Polygon
from matplotlib.path import Path
from matplotlib.ticker import FuncFormatter, MaxNLocator
from matplotlib.tri import Triangulation
from numpy.typing import NDArray

from afterslip.plot.outline import (
    PER_SIDE,
    border_on_map,
    edge_styles,
    fault_numbers,
    own_nodes,
)
from afterslip.plot.style import FAINT, INK, SOFT, nice_step
from afterslip.result import is_geographic, labels

Float = NDArray[np.float64]

KM_PER_DEGREE = 111.195
REACH = 0.6
"""Stations further from the fault than this share of its diagonal are left out."""

EDGES = {"-": "edge, slip zero", "--": "edge, slip free"}

MARKERS = {"gnss": "o", "gnssa": "s", "obp": "D", "insar": "."}


@dataclass(frozen=True, slots=True)
class MapFrame:
    """Coordinates to draw with: degrees where the frame is geographic, else km.

    Attributes
    ----------
    triangles : the fault in map view.
    borders : around each fault's slipping rectangle, the top edge first.
    station_x, station_y : (n_station,).
    extent : west, east, south, north.
    stretch : length of a unit of y over that of x on the paper.
    km : km per unit of y.
    """

    geographic: bool
    triangles: Triangulation
    borders: dict[int, Float]
    station_x: Float
    station_y: Float
    extent: tuple[float, float, float, float]
    stretch: float
    km: float

    def shown(self) -> NDArray[np.bool_]:
        """(n_station,) bool, the stations inside the map."""
        west, east, south, north = self.extent
        x, y = self.station_x, self.station_y
        return (x >= west) & (x <= east) & (y >= south) & (y <= north)

    def height(self, width: float) -> float:
        """Height of the map that has this width, in the same unit."""
        west, east, south, north = self.extent
        return width * (north - south) * self.stretch / (east - west)


def map_frame(result: xr.Dataset) -> MapFrame:
    """Choose the map's coordinates and its window around fault and stations."""
    geographic = is_geographic(result)
    if geographic:
        names, unit = ("lon", "lat"), 1.0
    else:
        names, unit = ("x", "y"), 1e-3
    fault = [np.asarray(result[f"fault_{n}"].values, float) * unit for n in names]
    station = [np.asarray(result[f"station_{n}"].values, float) * unit for n in names]
    corners = np.asarray(result["fault_triangles"].values, dtype=np.int64)
    borders = {
        number: border_on_map(result, number, fault[0], fault[1])
        for number in fault_numbers(result)
    }
    rim = np.concatenate(list(borders.values()))
    middle = float(np.mean(rim[:, 1]))
    stretch = 1.0 / np.cos(np.radians(middle)) if geographic else 1.0
    return MapFrame(
        geographic=geographic,
        triangles=Triangulation(fault[0], fault[1], corners),
        borders=borders,
        station_x=station[0],
        station_y=station[1],
        extent=_extent(rim[:, 0], rim[:, 1], station[0], station[1], float(stretch)),
        stretch=float(stretch),
        km=KM_PER_DEGREE if geographic else 1.0,
    )


def _extent(
    fx: Float, fy: Float, sx: Float, sy: Float, stretch: float
) -> tuple[float, float, float, float]:
    width, height = np.ptp(fx) / stretch, np.ptp(fy)
    reach = REACH * float(np.hypot(width, height))
    near = (
        (sx > fx.min() - reach * stretch)
        & (sx < fx.max() + reach * stretch)
        & (sy > fy.min() - reach)
        & (sy < fy.max() + reach)
    )
    x, y = np.append(fx, sx[near]), np.append(fy, sy[near])
    pad = 0.06 * max(float(np.ptp(x)) / stretch, float(np.ptp(y)))
    box = [
        x.min() - pad * stretch,
        x.max() + pad * stretch,
        y.min() - pad,
        y.max() + pad,
    ]
    # neither a strip nor a tower: both are hard to read on a page
    across, up = (box[1] - box[0]) / stretch, box[3] - box[2]
    grow_x = max(0.0, 0.62 * up - across) * stretch / 2.0
    grow_y = max(0.0, 0.62 * across - up) / 2.0
    return (
        float(box[0] - grow_x),
        float(box[1] + grow_x),
        float(box[2] - grow_y),
        float(box[3] + grow_y),
    )


def _degrees(kind: str) -> FuncFormatter:
    def text(value: float, _position: object = None) -> str:
        if kind == "lon":
            value = (value + 180.0) % 360.0 - 180.0
            side = "E" if value >= 0 else "W"
        else:
            side = "N" if value >= 0 else "S"
        return f"{abs(value):g}°{side}"

    return FuncFormatter(text)


def prepare(ax: Axes, frame: MapFrame) -> None:
    """Set window, aspect, graticule and tick labels."""
    west, east, south, north = frame.extent
    ax.set_xlim(west, east)
    ax.set_ylim(south, north)
    ax.set_aspect(frame.stretch)
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    graticule(ax)
    if frame.geographic:
        ax.xaxis.set_major_formatter(_degrees("lon"))
        ax.yaxis.set_major_formatter(_degrees("lat"))
    else:
        ax.set_xlabel("x east (km)")
        ax.set_ylabel("y north (km)")


def graticule(ax: Axes) -> None:
    """Draw the grid lines; to be called again after ``tripcolor``, which hides them."""
    ax.grid(visible=True, color=FAINT, linewidth=0.5)


def clip_to_faults(ax: Axes, artist: Artist, borders: Iterable[Float]) -> None:
    """Cut an artist off at the faults' slipping rectangles."""
    paths = [Path(line, closed=True) for line in borders]
    artist.set_clip_path(Path.make_compound_path(*paths), ax.transData)


def draw_fault(ax: Axes, frame: MapFrame, result: xr.Dataset) -> list[Line2D]:
    """Draw the outline, thin, and the top edge, thick and toothed if it dips gently.

    Returns
    -------
    The kinds of edges, for a legend, where the result says them.
    """
    sine = np.asarray(result["fault_updip"].values, dtype=np.float64)[:, 2]
    kinds: dict[str, Line2D] = {}
    for fault, line in frame.borders.items():
        for part, style in edge_styles(result, fault):
            x, y = line[part].T
            (edge,) = ax.plot(
                x, y, style, color=SOFT, linewidth=0.7, zorder=3, label=EDGES[style]
            )
            kinds.setdefault(style, edge)
        top = line[:PER_SIDE]
        ax.plot(top[:, 0], top[:, 1], color=INK, linewidth=1.6, zorder=4)
        own = own_nodes(result, fault)
        if np.median(sine[own]) < np.sin(np.radians(50.0)):
            _teeth(ax, frame, top, line.mean(axis=0))
    return list(kinds.values()) if "fault_edge" in result else []


def _teeth(ax: Axes, frame: MapFrame, line: Float, inward: Float) -> None:
    """Draw the usual sign of a thrust's upper edge, on the side of the upper plate."""
    flat = np.array([1.0 / frame.stretch, 1.0])
    path, target = line * flat, inward * flat
    length = np.append(0.0, np.cumsum(np.hypot(*np.diff(path, axis=0).T)))
    size = 0.011 * float(frame.extent[3] - frame.extent[2])
    count = max(2, int(length[-1] / (7.0 * size)))
    teeth = []
    for s in (np.arange(count) + 0.5) / count * length[-1]:
        ends = [
            np.array([np.interp(q, length, path[:, k]) for k in (0, 1)])
            for q in (s - size, s + size)
        ]
        way = ends[1] - ends[0]
        across = np.array([-way[1], way[0]]) / max(float(np.hypot(*way)), 1e-12)
        middle = (ends[0] + ends[1]) / 2.0
        if across @ (target - middle) < 0.0:
            across = -across
        teeth.append(np.array([*ends, middle + 1.7 * size * across]) / flat)
    ax.add_collection(PolyCollection(teeth, facecolor=INK, linewidth=0, zorder=4))


def station_kinds(result: xr.Dataset) -> NDArray[np.str_]:
    """(n_station,) data type of each station, the first that it has."""
    kinds = np.full(result["station"].size, "", dtype="U16")
    place = np.asarray(result["obs_station"].values).astype(np.int64)
    for row, kind in zip(
        place[::-1], labels(result, "obs_type")[::-1].tolist(), strict=True
    ):
        kinds[row] = kind
    return kinds


CORNERS = {
    "lower left": (0.0, 0.0),
    "lower right": (1.0, 0.0),
    "upper right": (1.0, 1.0),
    "upper left": (0.0, 1.0),
}


def free_corners(
    ax: Axes, x: Float, y: Float, size: tuple[float, float] = (0.34, 0.24)
) -> list[str]:
    """Corners of the axes, the emptiest first.

    Parameters
    ----------
    x, y : data coordinates of what must not be covered.
    size : share of the axes' width and height that a corner takes.
    """
    west, east = ax.get_xlim()
    south, north = ax.get_ylim()
    u, v = (x - west) / (east - west), (y - south) / (north - south)
    inside = (u >= 0) & (u <= 1) & (v >= 0) & (v <= 1)
    u, v = u[inside], v[inside]

    def load(name: str) -> int:
        right, upper = CORNERS[name]
        return int(
            np.sum((np.abs(u - right) <= size[0]) & (np.abs(v - upper) <= size[1]))
        )

    return sorted(CORNERS, key=load)


def scale_bar(ax: Axes, frame: MapFrame, corner: str) -> None:
    """Draw a bar of kilometres in a corner."""
    west, east, south, north = frame.extent
    span = (east - west) / frame.stretch * frame.km
    length = nice_step(span, 5)
    share = length / span
    right, upper = CORNERS[corner]
    start = 0.04 if right == 0.0 else 0.96 - share
    level = 0.045 if upper == 0.0 else 0.955
    box: dict[str, Any] = {"transform": ax.transAxes, "zorder": 8}
    thick = 0.008 * (east - west) / frame.stretch / (north - south)
    ax.add_patch(
        Polygon(
            [
                (start, level),
                (start + share, level),
                (start + share, level + thick),
                (start, level + thick),
            ],
            facecolor=INK,
            linewidth=0,
            **box,
        )
    )
    ax.text(
        start + share / 2,
        level + thick * 1.6 if upper == 0.0 else level - thick,
        f"{length:g} km",
        ha="center",
        va="bottom" if upper == 0.0 else "top",
        fontsize=7.5,
        **box,
    )
