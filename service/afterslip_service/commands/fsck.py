"""``afterslip fsck``: a store against its manifests, and its repair."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from afterslip_service.db import bulk, campaigns, contents
from afterslip_service.db.session import Database, SQLAlchemyError, shown_url
from afterslip_service.settings import Settings
from afterslip_workers import entry

DAMAGED, CANNOT_LOOK = 1, 2
MOST_SHOWN = 50
COLOURS = {True: "red", False: "yellow"}


def fsck(
    store: Annotated[
        str | None, typer.Argument(help="Folder or s3://…; else AFTERSLIP_STORE.")
    ] = None,
    database: Annotated[
        str | None,
        typer.Option(help="Database of the store: URL or file. Needed to solve again."),
    ] = None,
    repair: Annotated[
        bool, typer.Option("--repair", help="Mend what can be mended.")
    ] = False,
    report: Annotated[
        Path | None, typer.Option("--json", help="Write the report here as JSON.")
    ] = None,
) -> None:
    """Read every file of a store and compare it with what was promised.

    With --repair a damaged file comes back from another campaign that holds the same
    content; else coordinates are derived anew from the campaign's model and spec and,
    given --database, groups are solved again. Exit status: 0 if all
    is sound or was mended, 1 if something is lost, 2 if the store or the database
    cannot be read.
    """
    place = Settings().store if store is None else Settings(store=store).store
    known = None if database is None else Database(database)
    try:
        found = _look(place, known)
    except SQLAlchemyError as error:
        where = shown_url(database or "")
        reason = str(getattr(error, "orig", error)).strip().splitlines()[0]
        typer.echo(f"{where} cannot be read: {reason}", err=True)
        raise typer.Exit(CANNOT_LOOK) from None
    except OSError as error:
        typer.echo(f"{place} cannot be read: {error}", err=True)
        raise typer.Exit(CANNOT_LOOK) from None
    mended: dict[str, str] = {}
    if repair:
        mended = _repair(place, known, found)
    _show(found, mended)
    open_ones = [f for f in found.findings if f.harmful and f.key not in mended]
    if report is not None:
        content = {**found.as_json(), "mended": mended, "lost": len(open_ones)}
        report.write_text(json.dumps(content, indent=1))
    if known is not None:
        known.close()
    raise typer.Exit(DAMAGED if open_ones else 0)


def _look(store: Path | str, database: Database | None) -> entry.Report:
    if isinstance(store, Path) and not store.is_dir():
        raise FileNotFoundError("there is no such folder")
    expected = None
    if database is not None:
        with database.read() as connection:
            expected = entry.Expected(
                manifests=contents.accepted(connection),
                attempts=contents.wanted(connection),
                settled=contents.settled(connection),
            )
    with Console(stderr=True).status("reading the store") as status:
        return entry.check_store(store, expected, status.update)


def _repair(
    store: Path | str, database: Database | None, found: entry.Report
) -> dict[str, str]:
    """Mend, and return by key what was done."""
    done = entry.mend_store(store, found)
    if database is None:
        return done
    groups: dict[str, set[int]] = {}
    for finding in found.findings:
        lost = finding.kind in {"damaged", "missing"} and finding.key not in done
        if lost and finding.campaign is not None and finding.group is not None:
            groups.setdefault(finding.campaign, set()).add(finding.group)
    for campaign, numbers in groups.items():
        with database.write() as connection:
            there = contents.exists(connection, campaign)
            count = bulk.invalidate(connection, campaign, numbers) if there else 0
            if count:
                campaigns.refresh(connection, campaign)
        for finding in found.findings:
            same = finding.campaign == campaign and finding.group in numbers
            if same and count and finding.key not in done:
                done[finding.key] = f"group {finding.group} will be solved again"
    return done


def _show(found: entry.Report, mended: dict[str, str]) -> None:
    console = Console()
    table = Table("what", "where", "campaign", "group", "mend")
    for finding in found.findings[:MOST_SHOWN]:
        colour = COLOURS[finding.harmful]
        group = "" if finding.group is None else str(finding.group)
        cells: list[Any] = [finding.key, finding.campaign or "", group]
        mend = mended.get(finding.key, _advice(finding))
        table.add_row(f"[{colour}]{finding.kind}[/]", *cells, mend)
    if found.findings:
        console.print(table)
    if len(found.findings) > MOST_SHOWN:
        kinds = Counter(finding.kind for finding in found.findings)
        listed = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
        console.print(f"in all: {listed}")
    console.print(
        f"{found.files} files, {found.bytes / 1e6:.1f} MB, {found.groups} groups of "
        f"{found.campaigns} campaigns and {found.models} models were read: "
        + ("all is sound" if found.sound else "something is lost")
    )


def _advice(finding: entry.Finding) -> str:
    if finding.kind in {"damaged", "missing"}:
        if finding.group is not None:
            return "--repair --database …"
        if finding.is_coordinate:
            return "--repair, as long as the campaign's model is stored"
        return "ask for the inversion again"
    return {
        "model": "--repair removes it: it is built anew",
        "upload": "upload the file again",
        "unreadable": "restore it from a backup, or submit the campaign again",
        "orphan": "--repair removes it",
        "checkpoint": "--repair removes it",
        "waiting": "kept: an older database may want it",
        "unproven": "accepted before manifests were kept; see --database",
        "extra": "nobody needs it",
    }.get(finding.kind, "")
