"""``afterslip explain``."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from afterslip.cli.server import DEFAULT, AsJson, Server, Token, Which, connect


def explain(
    which: Which,
    group: Annotated[
        int | None, typer.Option("--group", "-g", min=0, help="Only this group.")
    ] = None,
    server: Server = DEFAULT,
    token: Token = None,
    as_json: AsJson = False,
) -> None:
    """Say why a campaign waits, why it failed, and what it reused or not."""
    with connect(server, token) as client:
        found = client.campaign(which).explain(group)
    if as_json:
        typer.echo(json.dumps(found, indent=2))
        return
    console = Console(highlight=False)
    for line in lines(found):
        console.print(line, soft_wrap=True)


def lines(found: dict[str, Any]) -> list[str]:
    """Return what to print, as rich's markup."""
    what = "campaign" if found["group"] is None else f"group {found['group']}"
    out = [f"[bold]{what}[/bold] is {found['state']}; {left(found.get('remaining_s'))}"]
    for reason in found["waiting"]:
        until = f" (until {reason['until'][:19]})" if reason["until"] else ""
        out.append(f"  waits, {reason['code']}: {escape(reason['message'])}{until}")
    out += [
        f"  [red]failed[/red] {failure['count']} times, {failure['error_class']}: "
        f"{escape(failure['message'])}; {escape(failure['advice'])}"
        for failure in found["failures"]
    ]
    reuse = found["reuse"]
    if reuse["of"]:
        out.append(f"  {reuse['reused']} of {reuse['of']} sources were reused")
    for source in reuse["sources"]:
        verb = "reused" if source["reused"] else "not reused"
        where = f" (campaign {source['campaign']})" if source["campaign"] else ""
        more = f": {', '.join(source['differs'])}" if source["differs"] else ""
        message = escape(source["message"] + where + more)
        out.append(f"  source {source['position']} {verb}: {message}")
    return out


def left(seconds: float | None) -> str:
    """Return how long it will take, in words."""
    if seconds is None:
        return "time to completion unknown"
    if seconds < 90:
        return f"about {seconds:.0f} s left"
    if seconds < 5400:
        return f"about {seconds / 60:.0f} min left"
    return f"about {seconds / 3600:.1f} h left"
