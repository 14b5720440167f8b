"""Curved faults: points of a smooth interface, and outlines on it."""

from __future__ import annotations

import io
import json
import re
from typing import Any

import numpy as np

from afterslip.errors import one_problem
from afterslip.frame import Frame
from afterslip.readers.delimited import Float, read_table, text_lines
from afterslip.readers.netcdf import axis, is_netcdf, open_bytes, pick
from afterslip.readers.places import depths, header, positions
from afterslip.units import KM

FEWEST_POINTS = 4
MOST_CORNERS = 5000
DEEPEST_KM = 6371.0


def read_interface(content: bytes, frame: Frame, label: str = "interface") -> Float:
    """Read ``lon,lat,depth_km`` or ``x_km,y_km,depth_km``, or a grid of Slab2.

    Other columns are no matter. In a NetCDF grid, where NaN means that there is no
    interface, depths may be negative down as in Slab2.

    Returns
    -------
    (n, 3) float64, m, local x, y, z; z negative below the ground.

    Raises
    ------
    SpecError
        With the line of everything wrong, or fewer than four points.
    """
    if is_netcdf(content):
        points = _interface_grid(content, frame, label)
    else:
        table = read_table(content, label, f"{header(frame)},depth_km")
        table.require("depth_km")
        _, _, x, y = positions(table, frame)
        depth = depths(table)
        table.check()
        points = np.column_stack([x, y, -depth])
    if len(np.unique(points, axis=0)) < FEWEST_POINTS:
        raise one_problem(label, len(points), "has fewer than four different points")
    spread = np.linalg.svd(points[:, :2] - points[:, :2].mean(0), compute_uv=False)
    if spread[1] <= max(1.0, 1e-6 * spread[0]):
        raise one_problem(label, None, "has all its points on one line in the map")
    return points


def _interface_grid(content: bytes, frame: Frame, label: str) -> Float:
    grid = open_bytes(content, label)
    if not frame.geographic:
        raise one_problem(
            label, None, "is a grid in lon, lat, but the model's frame is local"
        )
    lon = axis(grid, label, (-180.0, 360.0), "lon", "longitude", "x")
    lat = axis(grid, label, (-90.0, 90.0), "lat", "latitude", "y")
    depth = pick(grid, label, "depth", "depth_km", "z")
    dims = (lat.dims[0], lon.dims[0])
    if len(depth.dims) != 2 or set(depth.dims) != set(dims):
        raise one_problem(label, str(depth.dims), "must be a grid on lon and lat")
    values = np.asarray(depth.transpose(*dims).values, np.float64)
    there = np.isfinite(values)
    if not there.any():
        raise one_problem(label, None, "has no depths")
    if np.nanmax(values) <= 0:
        values = -values
    if np.nanmin(values) < 0:
        raise one_problem(label, None, "has depths of both signs")
    unit = str(depth.attrs.get("units", "km")).lower()
    if unit in {"m", "meter", "meters", "metre", "metres"}:
        values = values / KM
    if np.nanmax(values) > DEEPEST_KM:
        deepest = f"{np.nanmax(values):g}"
        raise one_problem(
            label, deepest, "is below the centre of the Earth", "depths are in km"
        )
    lons, lats = np.meshgrid(lon.values, lat.values)
    x, y = frame.to_local(lons[there], lats[there])
    return np.column_stack([x, y, -values[there] * KM])


def read_outline(content: bytes, frame: Frame, label: str = "outline") -> Float:
    """Read a polygon: CSV, GMT (two columns, ``>`` between parts) or GeoJSON.

    Returns
    -------
    (n, 2) float64, m, local corners in order, the first not repeated.

    Raises
    ------
    SpecError
        Not one simple polygon.
    """
    if content.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
        corners = _geojson(content, frame, label)
    else:
        corners = _corners(content, frame, label)
    if len(corners) > 1 and np.allclose(corners[0], corners[-1], rtol=0, atol=1e-3):
        corners = corners[:-1]
    if len(corners) < 3:
        raise one_problem(label, len(corners), "has fewer than three corners")
    if len(corners) > MOST_CORNERS:
        raise one_problem(label, len(corners), f"has more than {MOST_CORNERS} corners")
    if _crosses_itself(corners):
        raise one_problem(
            label, None, "crosses itself", "order the corners around the polygon"
        )
    return corners


def _corners(content: bytes, frame: Frame, label: str) -> Float:
    lines = text_lines(content, label)
    parts = [i for i, (_, line) in enumerate(lines) if line.startswith(">")]
    # GMT may begin with an empty segment
    if any(i > 0 and not lines[i - 1][1].startswith(">") for i in parts):
        place = f"{label} line {lines[parts[-1]][0]}"
        raise one_problem(place, None, "begins one of several polygons", "keep one")
    # blank, not gone: messages tell the numbers of lines
    content = re.sub(rb"(?m)^[ \t]*>[^\r\n]*", b"", content)
    columns = header(frame).split(",")
    table = read_table(content, label, header(frame), bare=columns)
    _, _, x, y = positions(table, frame)
    table.check()
    return np.column_stack([x, y])


def _geojson(content: bytes, frame: Frame, label: str) -> Float:
    if not frame.geographic:
        raise one_problem(label, None, "is GeoJSON, but the model's frame is local")
    try:
        data: Any = json.loads(content)
        while data.get("type") in {"FeatureCollection", "Feature"}:
            features = data.get("features", [data.get("geometry")])
            if len(features) != 1:
                raise one_problem(label, len(features), "must hold one polygon")
            data = features[0]
        if data.get("type") not in {"Polygon", "LineString"}:
            raise one_problem(label, data.get("type"), "must be one Polygon")
        rings = data["coordinates"]
        ring = rings[0] if data["type"] == "Polygon" else rings
        degrees = np.array([[float(v) for v in corner[:2]] for corner in ring])
        if degrees.shape[1:] != (2,) or not np.isfinite(degrees).all():
            raise ValueError
    except json.JSONDecodeError as error:
        place = f"{label} line {error.lineno}"
        raise one_problem(
            place, None, f"is not a GeoJSON polygon: {error.msg}"
        ) from None
    except (LookupError, TypeError, AttributeError, ValueError, OverflowError):
        raise one_problem(label, None, "is not a GeoJSON polygon") from None
    except RecursionError:
        raise one_problem(label, None, "is nested too deeply") from None
    table = io.StringIO()
    np.savetxt(table, degrees, "%.12g", ",", header="lon,lat", comments="")
    return _corners(table.getvalue().encode(), frame, label)


def _crosses_itself(corners: Float) -> bool:
    """Say whether two edges of a polygon meet other than at a shared corner."""
    start, end = corners, np.roll(corners, -1, axis=0)
    n = len(corners)
    step = end - start
    if (np.hypot(*step.T) == 0).any():
        return True
    for i in range(n - 2):
        last = n - 1 if i == 0 else n
        other = slice(i + 2, last)
        a = _side(start[i], end[i], start[other]) * _side(start[i], end[i], end[other])
        b = _side(start[other], end[other], start[i]) * _side(
            start[other], end[other], end[i]
        )
        if ((a < 0) & (b < 0)).any():
            return True
    return False


def _side(a: Float, b: Float, p: Float) -> Float:
    cross = (b[..., 0] - a[..., 0]) * (p[..., 1] - a[..., 1]) - (
        b[..., 1] - a[..., 1]
    ) * (p[..., 0] - a[..., 0])
    return np.asarray(np.sign(cross))
