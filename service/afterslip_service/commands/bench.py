"""``afterslip bench``: measure, beside what the figure must be read against."""

from __future__ import annotations

import json
import tempfile
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from afterslip.cli.options import PAGE, Backend
from afterslip_common.record import Record, device_name, document


class Name(StrEnum):
    """What can be measured."""

    kernels = "kernels"
    solve = "solve"
    curve = "curve"
    paper = "paper"
    scaling = "scaling"
    campaign = "campaign"
    service = "service"
    waves = "waves"


def bench(
    name: Annotated[Name, typer.Argument(help="What to measure.")],
    spec: Annotated[
        Path, typer.Option(help="Campaign whose model is measured.")
    ] = Path("examples/tohoku2011/campaign.yaml"),
    refine: Annotated[
        int, typer.Option(min=0, help="Uniform refinements of its mesh; 3 is 64 M.")
    ] = 0,
    sources: Annotated[
        tuple[int, int],
        typer.Option(help="campaign: functions along strike and down dip."),
    ] = (6, 2),
    backend: Annotated[Backend, typer.Option(help="Where to compute.")] = Backend.auto,
    database: Annotated[
        str | None,
        typer.Option(
            help="service: PostgreSQL server on which a database is made and dropped; "
            "without it the one here, else a smaller SQLite file."
        ),
    ] = None,
    campaigns: Annotated[
        int | None, typer.Option(min=1, help="service: campaigns, of 20 groups each.")
    ] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write the records to a file too.")
    ] = None,
) -> None:
    """Measure this machine: kernels, solves, curves, waves, campaigns, the service.

    Ratios are of one run. kernels needs a GPU; service needs no solver, waves no spec.
    """
    console = Console(stderr=True)
    with console.status(f"measuring {name.value} …"):
        if name is Name.service:
            records = _load(database, campaigns)
        else:
            records = _measure(name, spec, refine, sources, backend.value)
    _show(name, records)
    if json_file is not None:
        content = document(records, device_name())
        json_file.write_text(json.dumps(content, indent=1) + "\n")


def _load(database: str | None, campaigns: int | None) -> list[Record]:
    import logging

    from afterslip_service import logs
    from afterslip_service.benchmarks import load

    logs.configure(level=logging.ERROR)
    return load.records(database, campaigns)


def _measure(
    name: Name, path: Path, refine: int, sources: tuple[int, int], backend: str
) -> list[Record]:
    from afterslip.schemas.campaign import Campaign
    from afterslip_service.benchmarks import campaign
    from afterslip_workers import entry

    if name is Name.waves:
        return entry.measure(name.value, {}, Path(), backend)
    if not path.is_file():
        raise typer.BadParameter(f"{path} is not there: name a campaign with --spec")
    asked = Campaign.from_yaml(path)
    content: dict[str, Any] = asked.to_dict()
    spec = campaign.campaign_spec(content, refine, *sources, backend)
    if name is Name.campaign:
        with tempfile.TemporaryDirectory(prefix="afterslip-bench-") as out:
            return campaign.records(spec, asked.base, Path(out))
    return entry.measure(name.value, spec, asked.base, backend)


def _show(name: Name, records: list[Record]) -> None:
    table = Table(title=f"{name.value}, {device_name()}")
    for heading in ("metric", "value", "unit", "baseline", "ratio", "note"):
        right = heading in ("value", "baseline", "ratio")
        table.add_column(heading, justify="right" if right else "left")
    for item in records:
        figures = (item["value"], item["baseline"], item["ratio"])
        value, baseline, ratio = (
            "–" if figure is None else f"{figure:.4g}" for figure in figures
        )
        row = (item["metric"], value, item["unit"], baseline, ratio, item["note"])
        table.add_row(*row)
    console = Console()
    if not console.is_terminal:
        console.width = PAGE
    console.print(table)
