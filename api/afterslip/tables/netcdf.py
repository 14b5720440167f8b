"""NetCDF from bytes, either of its two file formats."""

from __future__ import annotations

import io

import xarray as xr

from afterslip.errors import one_problem
from afterslip.tables.hdf import check_hdf

CLASSIC = b"CDF"
HDF = b"\x89HDF"


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
        check_hdf(content, label)
    engine = "scipy" if content.startswith(CLASSIC) else "h5netcdf"
    try:
        with xr.open_dataset(
            io.BytesIO(content), engine=engine, decode_times=False
        ) as found:
            return found.load()
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 whatever the libraries meet
        reason = type(error).__name__
        raise one_problem(label, None, f"cannot be read as NetCDF ({reason})") from None


def pick(grid: xr.Dataset, label: str, *names: str) -> xr.DataArray:
    """Return the variable that has one of the names.

    Raises
    ------
    SpecError
        None of them is there.
    """
    for name in names:
        if name in grid.variables:
            return grid[name]
    known = ", ".join(str(name) for name in grid.variables)
    message = f"has no variable {names[0]}"
    raise one_problem(label, None, message, f"variables are: {known}")
