"""NetCDF from bytes, either of its two file formats."""

from __future__ import annotations

from typing import TYPE_CHECKING

from afterslip.errors import one_problem
from afterslip.readers.hdf_process import load, load_apart

if TYPE_CHECKING:
    import xarray as xr

CLASSIC = b"CDF"
HDF = b"\x89HDF"
MAX_DECLARED = 2**30


def is_netcdf(content: bytes) -> bool:
    """Say whether the bytes are a NetCDF file of either format."""
    return content.startswith((CLASSIC, HDF))


def open_bytes(content: bytes, label: str) -> xr.Dataset:
    """Return a NetCDF file's content, loaded.

    Raises
    ------
    SpecError
        Not a NetCDF file, or a damaged one.
    """
    if not is_netcdf(content):
        raise one_problem(label, None, "is not a NetCDF file")
    if content.startswith(HDF):
        return load_apart(content, label, MAX_DECLARED)
    return load(content, label, "scipy")


def pick(grid: xr.Dataset, label: str, *names: str) -> xr.DataArray:
    """Return the variable that has one of the names.

    Raises
    ------
    SpecError
        None of them is there, or it does not hold real numbers.
    """
    for name in names:
        if name in grid.variables:
            if grid[name].dtype.kind not in "iuf":
                kind = str(grid[name].dtype)
                raise one_problem(label, kind, f"{name} must hold real numbers")
            return grid[name]
    known = ", ".join(str(name) for name in grid.variables)
    message = f"has no variable {names[0]}"
    raise one_problem(label, None, message, f"variables are: {known}")


def axis(
    grid: xr.Dataset, label: str, limits: tuple[float, float], *names: str
) -> xr.DataArray:
    """Return the axis that has one of the names.

    Parameters
    ----------
    limits : lowest and highest value, in the unit of the file.

    Raises
    ------
    SpecError
        No such variable, not of one dimension, or a value out of the limits.
    """
    found = pick(grid, label, *names)
    if found.ndim != 1:
        raise one_problem(label, str(found.dims), f"{found.name} must be an axis")
    low, high = limits
    numbers = found.values.astype("f8")
    # not >=: NaN is out as well
    outside = ~((numbers >= low) & (numbers <= high))
    if outside.any():
        value = float(numbers[outside][0])
        message = f"{found.name} must be between {low:g} and {high:g}"
        raise one_problem(label, value, message)
    return found
