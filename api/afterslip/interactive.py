"""Figures that answer to the mouse, without a server: Plotly, of an HTML page."""

# ruff: noqa: E402 the check comes before what it guards

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from afterslip.extras import require

require("interactive figures", "interactive", "plotly")

import plotly.graph_objects as go

from afterslip.archive import GreensStore
from afterslip.result import labels, slip_magnitude, vectors
from afterslip.units import COMPONENTS, YEAR

__all__ = ["fit", "greens", "slip"]

Float = NDArray[np.float64]

# arrows are thinned to this many, so that a page of 50,000 nodes stays quick
_ARROWS = 400
# the longest arrow, of the width of what is drawn: many arrows, and few
_LONGEST, _LONGEST_OF_FEW = 0.08, 0.2
_BLUE, _VERMILLION, _INK = "#0072b2", "#d55e00", "#1f2328"


def greens(
    store: Any, source: int = 0, times: Sequence[float] | None = None
) -> go.Figure:
    """Draw the motion of the ground for 1 m of a unit source, with a slider of times.

    Parameters
    ----------
    store : ``greens.zarr``: a folder, an address, or what `open_greens` returns.
    source : number of the unit source.
    times : yr after the event; by default the campaign's output times.
    """
    reader = GreensStore(store)
    data = reader.dataset
    chosen = np.asarray(data["time"].values if times is None else times, dtype=float)
    field = reader.evaluate(chosen * YEAR, sources=np.array([source])).values[0]
    x, y = (np.asarray(data[f"node_{axis}"].values) / 1e3 for axis in "xy")
    top = float(np.abs(field[..., 2]).max()) or 1.0
    reach = _reach(x, y, field)
    place = np.asarray(data["source_position"].values[source]) / 1e3
    figure = go.Figure()
    for motion in field:
        figure.add_traces(_motion(x, y, motion, top, reach))
    each = len(figure.data) // len(field)
    shown = np.repeat(np.eye(len(field), dtype=bool), each, axis=1).tolist()
    for trace, visible in zip(figure.data, shown[0], strict=True):
        trace.visible = visible
    steps = [
        {"label": f"{time:g} yr", "method": "restyle", "args": [{"visible": visible}]}
        for time, visible in zip(chosen, shown, strict=True)
    ]
    figure.update_layout(
        title=f"Unit source {source} at {place[0]:.1f}, {place[1]:.1f} km, "
        f"{-place[2]:.1f} km deep: m per m of slip",
        sliders=[
            {"steps": steps, "currentvalue": {"prefix": "after "}, "pad": {"t": 40}}
        ],
        **_layout(),
    )
    figure.update_layout(showlegend=False)
    return figure


def slip(result: xr.Dataset) -> go.Figure:
    """Draw the slip on the faults in three dimensions, with the stations.

    Parameters
    ----------
    result : data set laid out as ``docs/files.md`` says.
    """
    size = slip_magnitude(result)
    x, y, z = (np.asarray(result[f"fault_{axis}"].values) / 1e3 for axis in "xyz")
    i, j, k = np.asarray(result["fault_triangles"].values, dtype=np.int64).T
    parts = np.asarray(result["fault_slip"].values)
    fault = go.Mesh3d(
        x=x, y=y, z=z, i=i, j=j, k=k, intensity=size, cmin=0.0,
        colorscale="magma", reversescale=True, colorbar={"title": "slip, m"},
        customdata=np.column_stack([size, parts]), name="slip",
        hovertemplate="slip %{customdata[0]:.3f} m<br>strike %{customdata[1]:.3f} m, "
        "dip %{customdata[2]:.3f} m<br>%{x:.1f}, %{y:.1f}, %{z:.1f} km<extra></extra>",
    )  # fmt: skip
    places = [np.asarray(result[f"station_{axis}"].values) / 1e3 for axis in "xy"]
    stations = go.Scatter3d(
        x=places[0], y=places[1], z=np.zeros(len(places[0])), mode="markers",
        marker={"size": 3, "color": _INK}, text=labels(result, "station"),
        hovertemplate="%{text}<extra></extra>", name="stations",
    )  # fmt: skip
    figure = go.Figure([fault, stations])
    axes = {f"{axis}axis": {"title": f"{axis}, km"} for axis in "xyz"}
    figure.update_layout(
        title=_title(result),
        template="simple_white",
        showlegend=False,
        scene={"aspectmode": "data", **axes},
    )
    return figure


def fit(result: xr.Dataset) -> go.Figure:
    """Draw observed and predicted displacement of each station on a map.

    Point at a station for its numbers. Where a station has several epochs, the first
    is drawn; data along a line of sight are left out.

    Parameters
    ----------
    result : data set laid out as ``docs/files.md`` says.

    Raises
    ------
    ValueError
        when no datum is of a station's east, north or up.
    """
    data = vectors(result)
    rows = np.unique(data.station, return_index=True)[1]
    if not rows.size:
        raise ValueError("the result has no data of stations")
    station = data.station[rows]
    observed, predicted, sigma = (
        values[rows] for values in (data.observed, data.predicted, data.sigma)
    )
    x, y = (
        np.asarray(result[f"station_{axis}"].values)[station] / 1e3 for axis in "xy"
    )
    hover = [
        f"<b>{name}</b><br>" + "<br>".join(lines)
        for name, lines in zip(
            labels(result, "station")[station],
            [_numbers(*row) for row in zip(observed, predicted, sigma, strict=True)],
            strict=True,
        )
    ]
    stations = go.Scattergl(
        x=x, y=y, mode="markers", marker={"size": 5, "color": _INK}, name="stations",
        text=hover, hovertemplate="%{text}<extra></extra>",
    )  # fmt: skip
    both = np.stack([observed, predicted])
    reach = _reach(x, y, both, _LONGEST_OF_FEW)
    figure = go.Figure(
        [
            stations,
            _arrows(x, y, observed, reach, _BLUE, "observed", 4.0),
            _arrows(x, y, predicted, reach, _VERMILLION, "predicted"),
        ]
    )
    longest = float(np.nanmax(np.hypot(both[..., 0], both[..., 1]), initial=0.0))
    title = f"{_title(result)}; longest arrow {longest:.3g} m"
    figure.update_layout(title=title, **_layout())
    return figure


def _numbers(observed: Float, predicted: Float, sigma: Float) -> list[str]:
    return [
        f"{name}: {o:.4f} ± {e:.4f}, predicted {p:.4f} m"
        for name, o, p, e in zip(COMPONENTS, observed, predicted, sigma, strict=True)
        if np.isfinite(o)
    ]


def _reach(x: Float, y: Float, motion: Float, share: float = _LONGEST) -> float:
    """Return km of the map for a displacement of 1 m."""
    longest = float(np.nanmax(np.hypot(motion[..., 0], motion[..., 1]), initial=0.0))
    width = max(float(np.ptp(x)), float(np.ptp(y)))
    return share * width / longest if longest else 0.0


def _motion(
    x: Float, y: Float, motion: Float, top: float, reach: float
) -> list[go.Scattergl]:
    hover = "<br>".join(
        f"{name} %{{customdata[{i}]:.4g}}" for i, name in enumerate(COMPONENTS)
    )
    ground = go.Scattergl(
        x=x, y=y, mode="markers", customdata=motion, name="up",
        marker={"size": 6, "color": motion[:, 2], "colorscale": "RdBu",
                "reversescale": True, "cmin": -top, "cmax": top,
                "colorbar": {"title": "up"}},
        hovertemplate=f"%{{x:.1f}}, %{{y:.1f}} km<br>{hover}<extra></extra>",
    )  # fmt: skip
    some = np.arange(0, len(x), max(1, len(x) // _ARROWS))
    return [ground, _arrows(x[some], y[some], motion[some], reach, _INK, "horizontal")]


def _arrows(
    x: Float,
    y: Float,
    motion: Float,
    reach: float,
    colour: str,
    name: str,
    width: float = 1.5,
) -> go.Scattergl:
    """Return lines from each place along its motion, with a mark at their ends."""
    ends = [x + reach * motion[:, 0], y + reach * motion[:, 1]]
    gap = np.full(len(x), np.nan)
    along = [
        np.column_stack([v, e, gap]).ravel() for v, e in zip((x, y), ends, strict=True)
    ]
    size = np.tile([0.0, 2.5 * width, 0.0], len(x))
    return go.Scattergl(
        x=along[0], y=along[1], mode="lines+markers", name=name, hoverinfo="skip",
        line={"color": colour, "width": width}, marker={"size": size, "color": colour},
    )  # fmt: skip


def _layout() -> dict[str, Any]:
    return {
        "template": "simple_white",
        "xaxis": {"title": "east, km"},
        "yaxis": {"title": "north, km", "scaleanchor": "x"},
        "legend": {"orientation": "h"},
    }


def _title(result: xr.Dataset) -> str:
    magnitude = result.attrs.get("magnitude")
    name = str(result.attrs.get("name") or "Slip")
    return name if magnitude is None else f"{name}, Mw {float(magnitude):.2f}"
