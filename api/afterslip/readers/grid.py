"""A grid of properties: speeds, density and viscosity on a box of points."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from afterslip.errors import Problem, SpecError, one_problem
from afterslip.frame import Frame
from afterslip.readers.delimited import Bool, Float
from afterslip.readers.netcdf import axis, open_bytes, pick
from afterslip.schemas.earth import LARGEST_VS
from afterslip.units import KM
from afterslip_common.properties import PropertyGrid

if TYPE_CHECKING:
    import xarray as xr

# points after the interpolation from degrees: 1 GB in four variables
MOST_POINTS = 2**25
# of an axis in km or m; more than the way around the Earth in either
FARTHEST = 5e7

_LENGTHS = {"km": KM, "kilometer": KM, "kilometers": KM, "m": 1.0, "meter": 1.0}
_UNITS = {
    "speed": {"km/s": KM, "km s-1": KM, "m/s": 1.0, "m s-1": 1.0},
    "density": {"kg/m3": 1.0, "kg m-3": 1.0, "g/cm3": 1000.0, "g cm-3": 1000.0},
    "viscosity": {"Pa s": 1.0, "Pa.s": 1.0},
}
# name, kind, unit where the file says none, lowest, highest (SI)
_VARIABLES = (
    ("vp", "speed", "km/s", 50.0, 20e3),
    ("vs", "speed", "km/s", 50.0, 20e3),
    ("rho", "density", "kg/m3", 500.0, 20e3),
    ("viscosity", "viscosity", "Pa s", 1e12, np.inf),
)


def read_grid(
    content: bytes,
    frame: Frame,
    x_range: tuple[float, float],
    y_range: tuple[float, float],
    label: str = "grid",
) -> PropertyGrid:
    """Read ``vp, vs, rho`` and maybe ``viscosity`` on x, y, depth or lon, lat, depth.

    Units come from the attribute ``units``; without it they are km, km/s, kg/m3 and
    Pa s. NaN means that the layers hold there. A grid on lon, lat is interpolated to
    local metres over the domain, about as fine as it was.

    Parameters
    ----------
    x_range, y_range : (low, high) of the domain, m.

    Raises
    ------
    SpecError
        With every variable that is missing, in unknown units or out of range.
    """
    data = open_bytes(content, label)
    geographic = frame.geographic and ("lon" in data or "longitude" in data)
    names = [("x", "x_km"), ("y", "y_km")]
    if geographic:
        names = [("lon", "longitude"), ("lat", "latitude")]
    limits = [(-FARTHEST, FARTHEST)] * 3
    if geographic:
        limits[:2] = (-180.0, 360.0), (-90.0, 90.0)
    names.append(("depth", "depth_km"))
    axes = [
        axis(data, label, limit, *choice)
        for limit, choice in zip(limits, names, strict=True)
    ]
    values = [
        _metres(found, label, 1.0 if geographic and i < 2 else None)
        for i, found in enumerate(axes)
    ]
    fields = _fields(data, label, tuple(str(found.dims[0]) for found in axes))
    grid = PropertyGrid(
        values[0],
        values[1],
        values[2],
        fields["vp"],
        fields["vs"],
        fields["rho"],
        fields.get("viscosity"),
    )
    if geographic:
        grid = _regrid(grid, frame, x_range, y_range, label)
    inside = (grid.x[0] < x_range[1]) & (grid.x[-1] > x_range[0])
    inside &= (grid.y[0] < y_range[1]) & (grid.y[-1] > y_range[0])
    if not inside or not np.isfinite(grid.vp).any():
        raise one_problem(label, None, "has no values inside the domain")
    return grid


def _fields(data: xr.Dataset, label: str, dims: tuple[str, ...]) -> dict[str, Float]:
    problems: list[Problem] = []
    fields: dict[str, Float] = {}
    for name, kind, unit, low, high in _VARIABLES:
        if name == "viscosity" and name not in data:
            continue
        try:
            fields[name] = _field(data, label, name, dims, _UNITS[kind], unit)
        except SpecError as error:
            problems += error.problems
            continue
        outside = (fields[name] < low) | (fields[name] > high)
        if outside.any():
            value = float(fields[name][outside][0])
            message = f"{name} must be between {low:g} and {high:g} in SI"
            problems.append(
                Problem(label, value, message, "say the unit in the attribute units")
            )
    if not problems:
        problems += _together(fields, label)
    if problems:
        raise SpecError(problems)
    return fields


def _regrid(
    grid: PropertyGrid,
    frame: Frame,
    x_range: tuple[float, float],
    y_range: tuple[float, float],
    label: str,
) -> PropertyGrid:
    """Interpolate a grid on lon, lat (in ``x``, ``y``) to local metres."""
    from scipy.interpolate import interpn

    degree = 111.2e3
    steps = (
        float(np.diff(grid.x).min()) * degree * float(np.cos(np.radians(frame.lat0))),
        float(np.diff(grid.y).min()) * degree,
    )
    x, y = (
        np.linspace(low, high, int(np.clip((high - low) / step, 2, 1000)) + 1)
        for (low, high), step in zip((x_range, y_range), steps, strict=True)
    )
    count = len(x) * len(y) * len(grid.depth)
    if count > MOST_POINTS:
        message = f"would be {count:,} points in local metres, and {MOST_POINTS:,} may"
        raise one_problem(
            label, None, message, "give it fewer depths, or x and y in km"
        )
    lon, lat = frame.to_geographic(*np.meshgrid(x, y, indexing="ij"))
    # the file may count longitudes from 0 to 360 or from -180 to 180
    lon = grid.x[0] + np.mod(lon - grid.x[0], 360.0)
    where = np.stack([lon, lat], axis=-1)

    def at(values: Float, method: str) -> Float:
        return np.asarray(
            interpn((grid.x, grid.y), values, where, method, bounds_error=False)
        )

    viscosity = grid.viscosity
    if viscosity is not None:
        # nearest: between elastic (inf) and viscous there is no mean
        viscosity = at(viscosity, "nearest")
    vp, vs, rho = (at(values, "linear") for values in (grid.vp, grid.vs, grid.rho))
    return PropertyGrid(x, y, grid.depth, vp, vs, rho, viscosity)


def _metres(found: xr.DataArray, label: str, factor: float | None) -> Float:
    values = found.values.astype(np.float64)
    if len(values) < 2:
        raise one_problem(label, None, f"{found.name} must be an axis of two or more")
    if not (np.diff(values) > 0).all():
        raise one_problem(label, None, f"{found.name} must increase")
    if factor is None:
        unit = str(found.attrs.get("units", "km"))
        factor = _LENGTHS.get(unit.lower())
        if factor is None:
            raise one_problem(label, unit, f"{found.name} must be in km or m")
    return values * factor


def _field(
    data: xr.Dataset,
    label: str,
    name: str,
    dims: tuple[str, ...],
    units: dict[str, float],
    default: str,
) -> Float:
    found = pick(data, label, name)
    if len(found.dims) != 3 or set(found.dims) != set(dims):
        raise one_problem(
            label, str(found.dims), f"{name} must be on {', '.join(dims)}"
        )
    unit = str(found.attrs.get("units", default)).replace("^", "")
    if unit not in units:
        raise one_problem(label, unit, f"{name} must be in {' or '.join(units)}")
    values = np.asarray(found.transpose(*dims).values, dtype=np.float64)
    # what overflows here is out of range below
    with np.errstate(over="ignore"):
        return values * units[unit]


def _together(fields: dict[str, Float], label: str) -> list[Problem]:
    there: list[Bool] = [np.isfinite(fields[name]) for name in ("vp", "vs", "rho")]
    if (there[0] != there[1]).any() or (there[0] != there[2]).any():
        return [Problem(label, None, "vp, vs and rho must be NaN at the same points")]
    if not there[0].any():
        return [Problem(label, None, "has no values")]
    if (fields["vs"] >= LARGEST_VS * fields["vp"]).any():
        return [Problem(label, None, "vs must be below vp/1.155 everywhere")]
    return []
