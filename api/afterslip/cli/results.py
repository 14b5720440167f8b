"""Results of inversions, as the command line names them: a file or its folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from afterslip.errors import ArchiveError, one_problem

if TYPE_CHECKING:
    import xarray as xr

Result = Annotated[
    Path, typer.Argument(help="result.nc of an inversion, or the folder it is in.")
]


def source(result: Path) -> Path:
    """Return the file of a result, or say where one is."""
    found = result / "result.nc" if result.is_dir() else result
    if found.is_file():
        return found
    inner = sorted(path.parent.name for path in result.glob("*/result.nc"))
    hint = f"there are {', '.join(inner)} in it: name one of them" if inner else ""
    raise one_problem(str(found), None, "there is no such file", hint)


def opened(file: Path) -> xr.Dataset:
    """Open the result of an inversion."""
    from afterslip.result import open_result

    try:
        return open_result(file)
    except ValueError as error:
        raise one_problem(str(file), None, str(error)) from None
    except ArchiveError:
        raise one_problem(
            str(file),
            None,
            "is no result of an inversion: it is not a NetCDF file",
            "give result.nc, or the folder that run, fetch or invert --out wrote",
        ) from None
