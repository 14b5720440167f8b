"""Lists for people, for pipes and for other programs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import typer
from rich.console import Console, JustifyMethod
from rich.markup import escape
from rich.table import Table

from afterslip.errors import one_problem

Cells = Sequence[str]

COLOURS = {
    "complete": "green",
    "accepted": "green",
    "failed": "red",
    "cancelled": "dim",
    "paused": "yellow",
    "running": "cyan",
    "building": "cyan",
    # of doctor
    "ok": "green",
    "note": "yellow",
    "wrong": "red",
}


def print_rows(
    heads: Cells,
    rows: Sequence[Cells],
    found: Any,
    *,
    as_json: bool,
    as_tsv: bool,
    numbers: frozenset[str] = frozenset(),
    empty: str = "",
) -> None:
    """Print a list: a table on a terminal, one whole line a row anywhere else.

    Parameters
    ----------
    found : the same as the server has it, for JSON.
    numbers : heads of the columns that are aligned on the right.
    empty : what to say where there are no rows, on a terminal or in a pipe.

    Raises
    ------
    SpecError
        Two formats are asked for.
    """
    if as_json and as_tsv:
        raise one_problem("--tsv", None, "excludes --json", "ask for one of them")
    if as_json:
        typer.echo(json.dumps(found, indent=2))
    elif as_tsv:
        for cells in (heads, *rows):
            typer.echo("\t".join(" ".join(cell.split()) for cell in cells))
    elif not rows:
        typer.echo(empty)
    elif Console().is_terminal:
        _table(heads, rows, numbers)
    else:
        _lines(heads, rows, numbers)


def _table(heads: Cells, rows: Sequence[Cells], numbers: frozenset[str]) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for head in heads:
        justify: JustifyMethod = "right" if head in numbers else "left"
        table.add_column(head, justify=justify, no_wrap=head == "id")
    for cells in rows:
        table.add_row(*(_coloured_cell(cell) for cell in cells))
    Console().print(table)


def _coloured_cell(cell: str) -> str:
    return coloured(cell) if cell in COLOURS else escape(cell)


def _lines(heads: Cells, rows: Sequence[Cells], numbers: frozenset[str]) -> None:
    table = [list(heads), *([" ".join(c.split()) for c in cells] for cells in rows)]
    widths = [max(len(cells[i]) for cells in table) for i in range(len(heads))]
    for cells in table:
        parts = (
            cell.rjust(width) if head in numbers else cell.ljust(width)
            for head, cell, width in zip(heads, cells, widths, strict=True)
        )
        typer.echo("  ".join(parts).rstrip())


def coloured(state: str) -> str:
    """Return a state in its colour, as rich's markup."""
    colour = COLOURS.get(state)
    return f"[{colour}]{state}[/{colour}]" if colour else state


def when(text: str | None) -> str:
    """Return an ISO time to the minute, in UTC."""
    if not text:
        return ""
    moment = datetime.fromisoformat(text)
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
