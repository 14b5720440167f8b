"""``afterslip test-resolution``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from afterslip.cli.results import Result, opened, source
from afterslip.errors import one_problem


def restoration(
    result: Result,
    cells: Annotated[
        int, typer.Option(min=1, help="Sources along a square of the checkerboard.")
    ] = 2,
    spike: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ALONG,DOWN",
            help="Place of the grid, from 0, that alone slips; may be repeated.",
        ),
    ] = None,
    errors: Annotated[
        int | None,
        typer.Option(min=0, metavar="SEED", help="Add errors as those of the data."),
    ] = None,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Folder for restoration.nc and .png.")
    ] = Path("restoration"),
) -> None:
    """Invert slip that is known: checkerboard, spikes and the result's own slip."""
    # what is wrong with the file is said first, where figures cannot be drawn either
    found = opened(source(result))
    from afterslip import plot
    from afterslip import restoration as known

    grid, sign = known.grid_of(found), known.sign_of(found)
    tests = {f"checkerboard of {cells}": known.checkerboard(grid, sign, cells)}
    for text in spike or []:
        tests[f"spike at {text}"] = known.spike(grid, sign, *_place(text))
    tests["own model"] = found["slip"].values.astype("float64")
    made = known.resolution_tests(found, tests, errors)
    out.mkdir(parents=True, exist_ok=True)
    made.to_netcdf(out / "restoration.nc", engine="h5netcdf")
    plot.save(plot.restoration(found, made), out / "restoration.png")
    for name, share in zip(made["test"].values, made["test_recovered"], strict=True):
        typer.echo(f"{name}: {float(share):.0%} of the slip is found in its place")
    if "resolution_length" in found:
        length = found["resolution_length"].values[found["resolution"].values > 0.5]
        if len(length):
            typer.echo(f"where over half is resolved, slip is averaged over "
                       f"{float(length.mean()) / 1e3:.0f} km")  # fmt: skip
    typer.echo(f"wrote {out / 'restoration.nc'} and {out / 'restoration.png'}")


def _place(text: str) -> tuple[int, int]:
    try:
        along, down = (int(part) for part in text.split(","))
    except ValueError:
        hint = "write ALONG,DOWN, such as 3,1"
        raise one_problem("--spike", text, "must be two whole numbers", hint) from None
    return along, down
