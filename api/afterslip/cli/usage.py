"""``afterslip usage``."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer

from afterslip.cli.rows import print_rows
from afterslip.cli.server import DEFAULT, AsJson, AsTsv, Server, Token, connect


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
    as_tsv: AsTsv = False,
) -> None:
    """Say who has used how much: worker seconds, which are GPU-seconds on GPUs."""
    with connect(server, token) as client:
        found = client.usage(by.value, owner)
    figures = ("worker time", "lost", "attempts", "solves", "iterations")
    print_rows(
        (by.value, *(["id"] if by is By.CAMPAIGN else []), *figures),
        [_row(item, by) for item in found],
        found,
        as_json=as_json,
        as_tsv=as_tsv,
        numbers=frozenset(figures),
        empty="nothing was used",
    )


def _row(item: dict[str, Any], by: By) -> list[str]:
    name = [item["name"] or "nobody"]
    if by is By.CAMPAIGN:
        name.append(item["who"])
    figures = (f"{item[key]:,}" for key in ("attempts", "solves", "iterations"))
    return [*name, lasted(item["worker_seconds"]), lasted(item["lost_seconds"]),
            *figures]  # fmt: skip


def lasted(seconds: float) -> str:
    """Return a time of workers as h:mm:ss."""
    whole = round(seconds)
    return f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}"
