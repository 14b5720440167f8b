"""``afterslip fsck``: a store against its manifests, and its repair."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from afterslip.units import several
from afterslip_service.db import store_inventory
from afterslip_service.db.session import Database, SQLAlchemyError, shown_url
from afterslip_service.reconcile import damage
from afterslip_service.settings import read_settings
from afterslip_service.umask import private_files
from afterslip_workers import entry
from afterslip_workers.messages import (
    GroupManifest,
    InversionManifest,
    Manifest,
    TaskError,
)

DAMAGED, CANNOT_LOOK = 1, 2
MOST_SHOWN = 50
LOST = frozenset({"damaged", "missing"})
AGAIN = "will be solved again"
COLOURS = {True: "red", False: "yellow"}


@private_files()
def fsck(
    store: Annotated[
        str | None, typer.Argument(help="Folder or s3://…; else AFTERSLIP_STORE.")
    ] = None,
    database: Annotated[
        str | None,
        typer.Option(help="Database of the store: URL or file. Needed to solve again."),
    ] = None,
    repair: Annotated[
        bool, typer.Option("--repair", help="Repair what can be repaired.")
    ] = False,
    seal: Annotated[
        bool,
        typer.Option("--seal", help="Add checksums to stores of release 0.1.0."),
    ] = False,
    report: Annotated[
        Path | None, typer.Option("--json", help="Write the report here as JSON.")
    ] = None,
) -> None:
    """Read every file of a store and compare it with what was promised.

    With --repair a damaged file comes back from another campaign that holds the same
    content; else coordinates are derived anew from the campaign's model and spec and,
    given --database, groups and inversions are computed again and lost manifests
    written anew. With --seal nothing but this is done: stores of release 0.1.0 get
    checksums once all their files match their manifests. Exit status: 0 if all is
    sound or was repaired, 1 if something is lost or cannot be verified, 2 if the store
    or the database cannot be read.
    """
    place = read_settings(**({} if store is None else {"store": store})).store
    known = None if database is None else Database(database)
    repaired: dict[str, str] = {}
    if seal and repair:
        raise typer.BadParameter(
            "comes after --repair, in a run of its own", param_hint="--seal"
        )
    try:
        expected = None if known is None else _expected(known)
        if seal:
            raise typer.Exit(_seal(place, expected, report))
        found = _look(place, expected)
        if repair:
            repaired = _repair(place, known, expected, found)
    except SQLAlchemyError as error:
        where = shown_url(database or "")
        reason = str(getattr(error, "orig", error)).strip().splitlines()[0]
        typer.echo(f"{where} cannot be read: {reason}", err=True)
        raise typer.Exit(CANNOT_LOOK) from None
    except TaskError as error:
        typer.echo(f"{shown_url(database or '')}: {error.message}", err=True)
        raise typer.Exit(CANNOT_LOOK) from None
    except (OSError, entry.StoreError) as error:
        typer.echo(f"{place} cannot be read: {error}", err=True)
        raise typer.Exit(CANNOT_LOOK) from None
    finally:
        if known is not None:
            known.close()
    _show(found, repaired)
    open_ones = [f for f in found.findings if f.harmful and f.key not in repaired]
    if report is not None:
        content = {
            **found.as_json(),
            "repaired": repaired,
            "mended": repaired,  # the old key; deprecated, goes in 0.3
            "lost": len(open_ones),
        }
        report.write_text(json.dumps(content, indent=1))
    raise typer.Exit(DAMAGED if open_ones else 0)


def _expected(database: Database) -> entry.Expected:
    with database.read() as connection:
        return entry.Expected(
            manifests=store_inventory.accepted(connection),
            uploads=store_inventory.uploads(connection),
            attempts=store_inventory.wanted(connection),
            settled=store_inventory.settled(connection),
            deleted=store_inventory.deleted(connection),
        )


def _look(store: Path | str, expected: entry.Expected | None) -> entry.Report:
    _must_exist(store)
    with Console(stderr=True).status("reading the store") as status:
        return entry.check_store(store, expected, status.update)


def _seal(
    store: Path | str, expected: entry.Expected | None, report: Path | None
) -> int:
    """Give old stores checksums; return the exit status."""
    _must_exist(store)
    with Console(stderr=True).status("reading the store") as status:
        done = entry.seal_store(store, expected, status.update)
    for campaign, reason in done.refused.items():
        typer.echo(f"campaign {campaign} was not sealed: {reason}")
    typer.echo(
        f"{len(done.sealed)} stores got checksums after {done.report.files} files were "
        f"compared, {len(done.before)} had them, {len(done.refused)} were refused"
    )
    if report is not None:
        content = {
            "sealed": done.sealed,
            "before": done.before,
            "refused": done.refused,
            "findings": [finding.as_json() for finding in done.report.findings],
        }
        report.write_text(json.dumps(content, indent=1))
    return DAMAGED if done.refused else 0


def _must_exist(store: Path | str) -> None:
    if isinstance(store, Path) and not store.is_dir():
        raise FileNotFoundError("there is no such folder")


def _repair(
    store: Path | str,
    database: Database | None,
    looked: entry.Expected | None,
    found: entry.Report,
) -> dict[str, str]:
    """Repair, and return by key what was done.

    Parameters
    ----------
    looked : what the files were compared with; it may have changed meanwhile.
    """
    now = None if database is None else _expected(database)
    done = entry.repair_store(store, found, now)
    if database is None or looked is None:
        return done
    lost: dict[str, dict[str, list[str]]] = {}
    for finding in found.findings:
        name = finding.accepted_as
        if finding.kind in LOST and finding.key not in done and name is not None:
            names = lost.setdefault(str(finding.campaign), {})
            names.setdefault(name, []).append(finding.key)
    with database.read() as connection:
        # also those that were deleted since the look
        deleted = store_inventory.deleted(connection)
    for campaign, names in lost.items():
        if campaign in deleted:
            continue
        manifests = looked.manifests.get(campaign, {})
        damaged = [(manifests[n], keys) for n, keys in names.items() if n in manifests]
        taken = damage.make_again(database.write, store, campaign, damaged)
        for manifest, keys in damaged:
            again = manifest.token in taken
            text = (
                AGAIN if again else "was accepted anew or deleted meanwhile: look again"
            )
            done |= dict.fromkeys(keys, _what(manifest) + text)
    return done


def _what(manifest: Manifest) -> str:
    if isinstance(manifest, GroupManifest):
        return f"group {manifest.group.index} "
    named = isinstance(manifest, InversionManifest) and manifest.inversion.id
    return f"inversion {named} " if named else "the model "


def _show(found: entry.Report, repaired: dict[str, str]) -> None:
    console = Console()
    table = Table("what", "where", "campaign", "group", "repair")
    for finding in found.findings[:MOST_SHOWN]:
        colour = COLOURS[finding.harmful]
        group = "" if finding.group is None else str(finding.group)
        cells: list[Any] = [finding.key, finding.campaign or "", group]
        hint = repaired.get(finding.key, _advice(finding))
        table.add_row(f"[{colour}]{finding.kind}[/]", *cells, hint)
    if found.findings:
        console.print(table)
    if len(found.findings) > MOST_SHOWN:
        kinds = Counter(finding.kind for finding in found.findings)
        listed = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
        console.print(f"in all: {listed}")
    typer.echo(_summary(found))


def _summary(found: entry.Report) -> str:
    read = (
        f"{several(found.files, 'file')}, {found.bytes / 1e6:.1f} MB, "
        f"{several(found.groups, 'group')} of {several(found.campaigns, 'campaign')} "
        f"and {several(found.models, 'model')} were compared: "
    )
    ends = ["something is lost"] if found.lost else []
    if found.unverified:
        ends.append(
            f"{found.unverified} groups and inversions have neither manifest nor "
            "checksums and cannot be verified (name the --database)"
        )
    return read + ("; ".join(ends) or "all is sound")


def _advice(finding: entry.Finding) -> str:
    if finding.kind in {"damaged", "missing"}:
        if finding.is_coordinate:
            return "--repair, as long as the campaign's model is stored"
        return "--repair --database …"
    return {
        "model": "--repair removes it: it is built anew",
        "upload": "upload the file again",
        "unreadable": "restore it from a backup, or submit the campaign again",
        "orphan": "--repair removes it",
        "checkpoint": "--repair removes it",
        "waiting": "stays: an older database may want it",
        "checksums": "--repair writes them from the manifest",
        "manifest": "--repair --database … writes it",
        "unproven": "cannot be verified: name the --database",
        "unaccepted": "being accepted now, or left over; replaced when accepted",
        "extra": "nobody needs it",
    }.get(finding.kind, "")
