"""``afterslip usage``."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from afterslip.cli.server import DEFAULT, AsJson, Server, Token, connect


class By(StrEnum):
    """What is summed up."""

    CAMPAIGN = "campaign"
    USER = "user"


def usage(
    by: Annotated[By, typer.Option(help="What to sum up.")] = By.CAMPAIGN,
    owner: Annotated[
        str | None, typer.Option(help="Only campaigns of this user.")
    ] = None,
    server: Server = DEFAULT,
    token: Token = None,
    as_json: AsJson = False,
) -> None:
    """Tell who has used how much: worker seconds, which are GPU-seconds on GPUs."""
    with connect(server, token) as client:
        found = client.usage(by.value, owner)
    if as_json:
        typer.echo(json.dumps(found, indent=2))
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(by.value)
    if by is By.CAMPAIGN:
        table.add_column("id", no_wrap=True)
    for head in ("worker time", "lost", "attempts", "solves", "iterations"):
        table.add_column(head, justify="right")
    for item in found:
        table.add_row(*_row(item, by))
    Console().print(table)


def _row(item: dict[str, Any], by: By) -> list[str]:
    name = [escape(item["name"] or "nobody")]
    if by is By.CAMPAIGN:
        name.append(item["who"])
    figures = (f"{item[key]:,}" for key in ("attempts", "solves", "iterations"))
    return [*name, lasted(item["worker_seconds"]), lasted(item["lost_seconds"]),
            *figures]  # fmt: skip


def lasted(seconds: float) -> str:
    """Return a time of workers as h:mm:ss."""
    whole = round(seconds)
    return f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}"
