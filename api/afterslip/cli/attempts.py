"""``afterslip show --group``: what every attempt at a group did."""

from __future__ import annotations

import json
from typing import Any

import typer
from rich.console import Console

from afterslip.cli.rows import print_rows

HEADS = (
    "attempt",
    "state",
    "worker",
    "solves",
    "resumed from",
    "repeated",
    "s",
    "note",
)


def print_group(group: dict[str, Any], *, as_json: bool) -> None:
    """Print a group with its attempts, oldest first."""
    if as_json:
        typer.echo(json.dumps(group, indent=2))
        return
    console = Console(highlight=False)
    console.print(f"[bold]group {group['index']}[/bold]  {group['state']}")
    rows = []
    for attempt in group.get("attempts", []):
        stats = attempt.get("stats") or {}
        seconds = stats.get("seconds")
        cells = (
            attempt.get("number"),
            attempt.get("state"),
            attempt.get("worker"),
            stats.get("solves"),
            stats.get("resumed_from"),
            stats.get("solves_repeated"),
            None if seconds is None else f"{seconds:.1f}",
            _note(attempt, stats),
        )
        rows.append(["" if c is None else str(c) for c in cells])
    print_rows(HEADS, rows, None, as_json=False, as_tsv=False)


def _note(attempt: dict[str, Any], stats: dict[str, Any]) -> str:
    error = attempt.get("error") or {}
    parts = [*stats.get("notes", ())]
    if error:
        parts.append(f"{error.get('class')}: {error.get('message')}")
    if spooled := stats.get("spooled"):
        parts.append(f"waited on its worker's disk: {spooled.get('message')}")
    return "; ".join(str(part).splitlines()[0] for part in parts if part)
