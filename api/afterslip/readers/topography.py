"""The height of the ground: tables and grids."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from afterslip.errors import Problem, SpecError, one_problem
from afterslip.frame import Frame
from afterslip.readers.delimited import read_table
from afterslip.readers.netcdf import axis, is_netcdf, open_bytes, pick
from afterslip.readers.places import header, positions
from afterslip.units import KM
from afterslip_common.geometry import Box

if TYPE_CHECKING:
    from scipy.interpolate import LinearNDInterpolator, RegularGridInterpolator

Float = NDArray[np.float64]

# m; the highest mountain and the deepest trench are 9 and 11 km
MOST = 12e3
# a triangulation of more takes minutes
MOST_POINTS = 300_000
# of the ground between neighbouring elements; steeper ones turn them inside out
STEEPEST = 0.5
# places at which a side of the domain, and its ground, are looked at
ALONG_SIDE = 401
_UNITS = {"m": 1.0, "meter": 1.0, "meters": 1.0, "metre": 1.0, "metres": 1.0}
_UNITS |= {"km": KM, "kilometer": KM, "kilometers": KM}


@dataclass(frozen=True, slots=True)
class Topography:
    """Height of the ground, linear between the points of a file.

    Attributes
    ----------
    frame, box : of the model.
    """

    frame: Frame
    box: Box
    _table: LinearNDInterpolator | None = None
    _grid: RegularGridInterpolator | None = None

    def at(self, x: Float, y: Float) -> Float:
        """Return heights in m, negative below the sea; NaN where the file has none.

        Parameters
        ----------
        x, y : m, of the same shape; places outside the domain have the height of the
            nearest one inside.
        """
        x, y = np.clip(x, *self.box.x), np.clip(y, *self.box.y)
        if self._table is not None:
            return np.asarray(self._table(x, y))
        assert self._grid is not None  # noqa: S101 - one of both
        lon, lat = self.frame.to_geographic(x, y)
        west = self._grid.grid[1][0]
        east = west + np.mod(lon - west + 1e-9, 360.0) - 1e-9
        return np.asarray(self._grid(np.stack([lat, east], axis=-1)))

    def in_box(self, points: Float) -> Float:
        """Return points below the sea's level where they are in the box that is meshed.

        The ground is the top of the box, and its bottom stays where it is.

        Parameters
        ----------
        points : (n, 3) float64, m, x, y, z, where z counts from the level of the sea.
        """
        height = self.at(points[:, 0], points[:, 1])
        z = self.box.unstretched(points[:, 2], height)
        return np.column_stack([points[:, :2], z])

    def depth_in_box(self, x: Float, y: Float, depth: Float) -> Float:
        """Return depths below the ground, m, as depths in the box that is meshed."""
        return np.asarray(depth / (1.0 + self.at(x, y) / self.box.depth))


def read_topography(
    content: bytes, frame: Frame, box: Box, size: float | None, label: str
) -> Topography:
    """Read ``lon,lat,height_km`` (or ``height_m``; ``x_km,y_km``), or a NetCDF grid.

    Parameters
    ----------
    box : the domain, all of which must be covered.
    size : m, of elements on the faults, the smallest ones; None: not known.

    Raises
    ------
    SpecError
        With the line of everything wrong; or places of the domain without a height;
        or a ground that is too steep for the elements, or too high for the domain.
    """
    if is_netcdf(content):
        found = _grid(content, frame, box, label)
    else:
        found = _table(content, frame, box, label)
    _check(found, size, label)
    return found


def _table(content: bytes, frame: Frame, box: Box, label: str) -> Topography:
    from scipy.interpolate import LinearNDInterpolator
    from scipy.spatial import QhullError

    table = read_table(content, label, f"{header(frame)},height_km")
    column, factor = ("height_m", 1.0) if table.has("height_m") else ("height_km", KM)
    table.require(column)
    _, _, x, y = positions(table, frame)
    height = table.numbers(column, needed=True) * factor
    table.refuse(
        np.abs(height) > MOST,
        column,
        "is higher than any mountain or deeper than any trench",
        f"{column} is in {'km' if factor == KM else 'm'}, negative below the sea",
    )
    table.check()
    if len(x) > MOST_POINTS:
        hint = "write a NetCDF grid of lon, lat and height"
        message = f"has more than {MOST_POINTS:,} points"
        raise one_problem(label, len(x), message, hint)
    try:
        made = LinearNDInterpolator(np.column_stack([x, y]) / KM, height, rescale=True)
    except (QhullError, ValueError):
        text = "must have three points or more that are not on one line in the map"
        raise one_problem(label, len(x), text) from None
    return Topography(frame, box, _table=_Kilometres(made))


@dataclass(frozen=True, slots=True)
class _Kilometres:
    """Asked in m, where the triangulation is in km."""

    made: LinearNDInterpolator

    def __call__(self, x: Float, y: Float) -> Float:
        # what rounding puts outside the hull is at its edge
        shape = np.shape(x)
        x, y = (np.ravel(np.asarray(v)) / KM for v in (x, y))
        found = np.asarray(self.made(x, y))
        for nudge in (1.0 - 1e-9, 1.0 + 1e-9):
            lost = np.isnan(found)
            if lost.any():
                found[lost] = self.made(x[lost] * nudge, y[lost] * nudge)
        return found.reshape(shape)


def _grid(content: bytes, frame: Frame, box: Box, label: str) -> Topography:
    from scipy.interpolate import RegularGridInterpolator

    data = open_bytes(content, label)
    if not frame.geographic:
        message = "is a grid in lon, lat, but the model's frame is local"
        raise one_problem(label, None, message, "write a table of x_km,y_km,height_km")
    lon = axis(data, label, (-180.0, 360.0), "lon", "longitude", "x")
    lat = axis(data, label, (-90.0, 90.0), "lat", "latitude", "y")
    height = pick(data, label, "height", "elevation", "z", "topography", "Band1")
    dims = (lat.dims[0], lon.dims[0])
    if len(height.dims) != 2 or set(height.dims) != set(dims):
        raise one_problem(label, str(height.dims), "must be a grid on lon and lat")
    unit = str(height.attrs.get("units", "")).lower()
    if unit not in _UNITS:
        message = f"{height.name} must have the attribute units: m or km"
        raise one_problem(label, unit or None, message)
    values = np.asarray(height.transpose(*dims).values, np.float64) * _UNITS[unit]
    axes = [np.asarray(a.values, np.float64) for a in (lat, lon)]
    for number, name in enumerate(("lat", "lon")):
        if len(axes[number]) > 1 and axes[number][0] > axes[number][-1]:
            axes[number] = axes[number][::-1]
            values = np.flip(values, number)
        if len(axes[number]) < 2 or not (np.diff(axes[number]) > 0.0).all():
            raise one_problem(label, None, f"{name} must increase or decrease")
    if np.nanmax(np.abs(values), initial=0.0) > MOST:
        worst = float(np.nanmax(np.abs(values)))
        message = f"{height.name} is higher than any mountain on the Earth, in m"
        raise one_problem(label, f"{worst:g}", message, "check its units")
    made = RegularGridInterpolator(
        (axes[0], axes[1]), values, bounds_error=False, fill_value=np.nan
    )
    return Topography(frame, box, _grid=made)


def _check(found: Topography, size: float | None, label: str) -> None:
    """Refuse what does not cover the domain, or spoils elements."""
    box = found.box
    spans = [(high - low) for low, high in (box.x, box.y)]
    counts = [
        ALONG_SIDE if size is None else int(np.clip(s / size + 2, 11, ALONG_SIDE))
        for s in spans
    ]
    x, y = (
        np.linspace(*side, n) for side, n in zip((box.x, box.y), counts, strict=True)
    )
    height = found.at(*np.meshgrid(x, y, indexing="ij"))
    missing = np.argwhere(~np.isfinite(height))
    if len(missing):
        i, j = missing[0]
        lon, lat = found.frame.to_geographic(x[i], y[j])
        at = f", lon {lon:.3f}, lat {lat:.3f}" if found.frame.geographic else ""
        message = f"has no height at x {x[i] / KM:.1f} km, y {y[j] / KM:.1f} km{at}"
        hint = "it must cover the whole domain without gaps"
        raise one_problem(label, None, message, hint)
    problems = []
    steps = [span / (n - 1) for span, n in zip(spans, counts, strict=True)]
    for number, step in enumerate(steps):
        slope = np.abs(np.diff(height, axis=number)) / step
        worst = np.unravel_index(int(slope.argmax()), slope.shape)
        if slope[worst] > STEEPEST:
            message = (
                f"rises by {slope[worst] * step / KM:.2f} km over {step / KM:.3g} km "
                f"at x {x[worst[0]] / KM:.1f} km, y {y[worst[1]] / KM:.1f} km"
            )
            hint = f"smooth it until slopes are below {STEEPEST:g} at that length"
            problems.append(Problem(label, None, message, hint))
    highest = float(np.abs(height).max())
    if highest > 0.25 * box.depth:
        message = f"reaches {highest / KM:.2f} km, more than a quarter of the domain's "
        message += f"depth of {box.depth / KM:g} km"
        problems.append(Problem(label, None, message, "make model.domain.depth larger"))
    if problems:
        raise SpecError(problems)
