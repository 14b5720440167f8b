"""``afterslip export``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from afterslip.cli import results
from afterslip.errors import one_problem

if TYPE_CHECKING:
    import xarray as xr

# these take options of their own; all others are in `afterslip.exports.FORMATS`
WITH_OPTIONS = ("altar", "beat", "fsp", "miniseed", "pyrocko", "surface")
ENDINGS = {"altar": "altar", "beat": "beat", "pyrocko": "pyrocko",
           "surface": "surface.vtu"}  # fmt: skip
NEED_GREENS = ("altar", "beat", "pyrocko", "surface")


def export(
    result: Annotated[
        Path,
        typer.Argument(
            help="result.nc, or the folder it is in; for miniseed the file of a "
            "forward run or a greens.zarr."
        ),
    ],
    format: Annotated[
        str,
        typer.Option(
            help="csi, csv, fsp, geojson, gmt, vtu: slip; surface: displacement of the "
            "ground, as VTU; altar: the linear problem, a folder for AlTar; "
            "beat: its Green's functions, a folder of libraries for BEAT; "
            "pyrocko: static Green's functions, a folder of stores; "
            "miniseed: series of waves, with StationXML."
        ),
    ],
    out: Annotated[
        Path | None, typer.Option(help="File or folder; slip.FORMAT beside the result.")
    ] = None,
    greens: Annotated[
        Path | None,
        typer.Option(
            help=f"greens.zarr of the campaign, for {', '.join(NEED_GREENS)}."
        ),
    ] = None,
    time: Annotated[
        list[str] | None,
        typer.Option(
            help="For surface (may be repeated) and pyrocko, such as '30 d'; or 0 d."
        ),
    ] = None,
    event: Annotated[str, typer.Option(help="Name of the earthquake, for fsp.")] = "",
    date: Annotated[str, typer.Option(help="mm/dd/yyyy, for fsp.")] = "",
    hypocentre: Annotated[
        str | None,
        typer.Option(metavar="LON,LAT,DEPTH_KM", help="For fsp."),
    ] = None,
    quantity: Annotated[
        str, typer.Option(help="velocity or displacement, for miniseed.")
    ] = "velocity",
    source: Annotated[
        int | None, typer.Option(help="Number of a unit source, for miniseed.")
    ] = None,
    begin: Annotated[
        str, typer.Option(help="Begin of slip, UTC, for miniseed.")
    ] = "1970-01-01T00:00:00",
    network: Annotated[str, typer.Option(help="Its code, for miniseed.")] = "XX",
) -> None:
    """Write an inversion's result, or series of waves, in the format of others."""
    from afterslip import exports

    known = sorted([*exports.FORMATS, *WITH_OPTIONS])
    if format == "miniseed":
        waves = _waves(result)
        folder = out or result.parent
        how = quantity, source, begin, network
        for file in exports.write_seismograms(waves, folder, *how):
            typer.echo(str(file))
        return
    if format not in known:
        hint = f"use one of {', '.join(known)}"
        raise one_problem("--format", format, "is no format of an export", hint)
    file = results.source(result)
    found = results.opened(file)
    path = out or file.parent / ENDINGS.get(format, f"slip.{format}")
    if format in NEED_GREENS and greens is None:
        raise one_problem("--greens", None, f"is needed for {format}")
    if format == "altar":
        exports.write_altar(found, greens or "", path)
    elif format == "beat":
        exports.write_beat(found, greens or "", path)
    elif format == "pyrocko":
        exports.write_pyrocko(found, greens or "", path, _only(time or ["0 d"]))
    elif format == "surface":
        exports.write_surface(found, greens or "", _seconds(time or ["0 d"]), path)
    elif format == "fsp":
        place = _hypocentre(hypocentre)
        exports.write_fsp(found, path, exports.Event(event, date, place))
    else:
        exports.FORMATS[format](found, path)
    typer.echo(str(path))


def _waves(path: Path) -> xr.Dataset:
    """Return the series of a forward run's file or of a campaign's store."""
    import xarray as xr

    from afterslip.archive import open_greens

    if path.is_dir():
        return open_greens(path)
    try:
        return xr.load_dataset(path, engine="h5netcdf")
    except (OSError, ValueError):
        text = "is no file of a forward run"
        hint = "give what afterslip forward wrote, or greens.zarr of a campaign"
        raise one_problem(str(path), None, text, hint) from None


def _only(times: list[str]) -> float:
    if len(times) > 1:
        text = ", ".join(times)
        raise one_problem("--time", text, "is more than one; pyrocko has one each")
    return _seconds(times)[0]


def _seconds(times: list[str]) -> list[float]:
    from afterslip.units import UnitError, parse_time

    try:
        return [parse_time(text) for text in times]
    except UnitError as error:
        raise one_problem("--time", None, error.message, error.hint) from None


def _hypocentre(text: str | None) -> tuple[float, float, float] | None:
    if text is None:
        return None
    try:
        lon, lat, depth = (float(part) for part in text.split(","))
    except ValueError:
        raise one_problem("--hypocentre", text, "must be LON,LAT,DEPTH_KM") from None
    if not (-360 <= lon <= 360 and -90 <= lat <= 90 and 0 <= depth <= 6371):
        raise one_problem("--hypocentre", text, "is no place in the Earth")
    return lon, lat, depth
