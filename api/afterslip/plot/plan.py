"""A campaign before it is solved: map and section."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Polygon, Rectangle
from numpy.typing import NDArray

from afterslip.plot.style import new_figure, styled

Float = NDArray[np.float64]

# of the fault's size around it, in the map of the sources
MARGIN = 0.6
FEW = 30


@styled
def plan_map(geometry: Mapping[str, Any], title: str = "") -> Figure:
    """Draw where everything lies: the domain, the sources, and a section down dip.

    Parameters
    ----------
    geometry : of `afterslip.spec.geometry.geometry`, km.
    """
    fig = new_figure(4.6, 13.0)
    whole, near, section = fig.subplots(1, 3)
    _map(whole, geometry, "Domain")
    _map(near, geometry, "Sources and stations")
    _zoom(near, geometry)
    _section(section, geometry)
    if title:
        fig.suptitle(title)
    return fig


def _map(ax: Axes, geometry: Mapping[str, Any], title: str) -> None:
    domain = geometry["domain"]
    (x0, x1), (y0, y1) = domain["x"], domain["y"]
    ax.add_patch(Rectangle((x0, y0), x1 - x0, y1 - y0, fill=False, color="0.5"))
    for fault in geometry["faults"]:
        outline = np.array(fault["outline"]).reshape(-1, 3)
        if len(outline):
            ax.add_patch(
                Polygon(
                    outline[:, :2],
                    facecolor="tab:orange",
                    edgecolor="tab:red",
                    alpha=0.3,
                )
            )
            top = np.array(fault["top"]).reshape(-1, 3)
            ax.plot(top[:, 0], top[:, 1], color="tab:red", lw=2)
        sources = np.array(fault["sources"]).reshape(-1, 3)
        ax.plot(sources[:, 0], sources[:, 1], "+", color="tab:red", ms=5)
    stations = geometry["stations"]
    ax.plot(
        [s["x"] for s in stations],
        [s["y"] for s in stations],
        "^",
        ms=4,
        color="tab:blue",
    )
    margin = 0.03 * max(x1 - x0, y1 - y0)
    ax.set_xlim(x0 - margin, x1 + margin)
    ax.set_ylim(y0 - margin, y1 + margin)
    ax.set_aspect("equal")
    ax.set_title(title)
    ax.set_xlabel("east (km)")
    ax.set_ylabel("north (km)")


def _zoom(ax: Axes, geometry: Mapping[str, Any]) -> None:
    points = [p[:2] for fault in geometry["faults"] for p in fault["outline"]]
    if not points:
        return
    low, high = np.min(points, axis=0), np.max(points, axis=0)
    margin = MARGIN * float((high - low).max())
    ax.set_xlim(low[0] - margin, high[0] + margin)
    ax.set_ylim(low[1] - margin, high[1] + margin)
    inside = [
        s
        for s in geometry["stations"]
        if low[0] - margin < s["x"] < high[0] + margin
        and low[1] - margin < s["y"] < high[1] + margin
    ]
    for station in inside if len(inside) <= FEW else []:
        ax.annotate(
            station["name"],
            (station["x"], station["y"]),
            fontsize=7,
            xytext=(3, 3),
            textcoords="offset points",
            clip_on=True,
        )


def _section(ax: Axes, geometry: Mapping[str, Any]) -> None:
    """Draw what lies along the line through the fault, in the direction of its dip."""
    domain, line = geometry["domain"], geometry["section"]
    azimuth = np.radians(line["azimuth"])
    along = np.array([np.sin(azimuth), np.cos(azimuth)])
    origin = np.array([line["x"], line["y"]])
    reach = [np.array(f["outline"]).reshape(-1, 3) for f in geometry["faults"]]
    points = np.concatenate([*reach, np.zeros((0, 3))])
    size = float(np.ptp((points[:, :2] - origin) @ along)) if len(points) else 0.0
    deep = float(-points[:, 2].min()) if len(points) else 0.0
    half = max(1.2 * size, 1.2 * deep, 0.1 * domain["depth"])
    bottom = min(domain["depth"], max(2.0 * deep, 0.5 * half))
    _layers(ax, geometry, half, bottom)
    for body in geometry["bodies"]:
        surface = _on_line(np.array(body["top"]), origin, along, 0.1 * half)
        for drop, style in ((0.0, "-"), (body["thickness"], "--")):
            ax.plot(surface[:, 0], surface[:, 1] - drop, style, color="tab:green", lw=1)
    for fault in geometry["faults"]:
        own = np.array(fault["line"]).reshape(-1, 2)
        ax.plot(own[:, 0], own[:, 1], color="tab:red", lw=2)
        sources = np.array(fault["sources"]).reshape(-1, 3)
        ax.plot(
            (sources[:, :2] - origin) @ along, sources[:, 2], "+", color="tab:red", ms=5
        )
    ax.set_xlim(-half, half)
    ax.set_ylim(-bottom, 0.04 * bottom)
    ax.set_aspect("equal")
    ax.set_title(f"Section towards {line['azimuth']:.0f}°")
    ax.set_xlabel("along the section (km)")
    ax.set_ylabel("height (km)")


def _layers(ax: Axes, geometry: Mapping[str, Any], half: float, bottom: float) -> None:
    """Fill the section with the layers; half its width and its depth in km."""
    top = 0.0
    for layer in geometry["layers"]:
        if top >= bottom:
            break
        colour = "#f6e3d5" if layer["creeps"] else "#e6ebee"
        low = min(layer["bottom"], bottom)
        ax.add_patch(
            Rectangle(
                (-half, -low),
                2 * half,
                low - top,
                facecolor=colour,
                edgecolor="0.6",
                lw=0.6,
            )
        )
        kind = "viscoelastic" if layer["creeps"] else "elastic"
        ax.text(
            -0.97 * half,
            -0.5 * (low + top),
            f"{layer['name']} ({kind})",
            fontsize=7,
            va="center",
            color="0.3",
        )
        top = layer["bottom"]


def _on_line(points: Float, origin: Float, along: Float, width: float) -> Float:
    """(n, 2) km, position and height of a surface's points near a line, in order."""
    points = points.reshape(-1, 3)
    across = np.array([along[1], -along[0]])
    flat = points[:, :2] - origin
    near = np.abs(flat @ across) < width
    found = np.column_stack([(flat @ along)[near], points[near, 2]])
    return np.asarray(found[np.argsort(found[:, 0])])
