"""``afterslip motion``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def motion(
    files: Annotated[
        list[Path], typer.Argument(help="MiniSEED or SAC, corrected to m or m/s.")
    ],
    begin: Annotated[
        str, typer.Option(help="Begin of slip, UTC, such as 2011-03-11T05:46:24.")
    ],
    stations: Annotated[
        Path | None, typer.Option(help="CSV: station,lon,lat or station,x_km,y_km.")
    ] = None,
    end: Annotated[
        float | None, typer.Option(min=0, help="Last sample, s after the event.")
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="CSV to write.")] = Path(
        "motion.csv"
    ),
) -> None:
    """Make a table of ground motion, for a data set with series."""
    from afterslip.readers.seismograms import motion_table, places_of

    places = None
    if stations is not None:
        places = places_of(stations.read_text("utf-8-sig"), str(stations))
    text = motion_table([*files], begin, places, end)
    out.write_text(text, encoding="utf-8")
    typer.echo(f"wrote {out}, {text.count(chr(10)) - 1:,} samples")
