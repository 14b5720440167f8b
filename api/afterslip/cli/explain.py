"""``afterslip explain``."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from afterslip.cli.rows import when
from afterslip.cli.server import DEFAULT, AsJson, Server, Token, Which, connect

# nothing is left of it
ENDED = ("complete", "accepted", "failed", "cancelled")


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
    out = [f"[bold]{what}[/bold] is {found['state']}"]
    if found["state"] not in ENDED:
        out[0] += f"; {left(found)}"
    for reason in found["waiting"]:
        until = f" (until {when(reason['until'])})" if reason["until"] else ""
        out.append(f"  waits, {reason['code']}: {escape(reason['message'])}{until}")
    out += [
        f"  [red]failed[/red] {failure['count']} times, {failure['error_class']}: "
        f"{escape(failure['message'])}; {escape(failure['advice'])}"
        for failure in found["failures"]
    ]
    reuse = found["reuse"]
    if reuse["of"]:
        out.append(f"  {reuse['reused']} of {reuse['of']} sources were reused")
    reasons: dict[str, list[int]] = {}
    for source in reuse["sources"]:
        reasons.setdefault(_of_source(source), []).append(source["position"])
    for reason, positions in reasons.items():
        out.append(f"  {_named(positions)} {escape(reason)}")
    more = reuse["of"] - len(reuse["sources"])
    if more > 0 and found["group"] is None:
        out.append(f"  and {more} more sources; --group N tells of those of a group")
    return out


def _of_source(source: dict[str, Any]) -> str:
    verb = "reused" if source["reused"] else "not reused"
    where = f" (campaign {source['campaign']})" if source["campaign"] else ""
    more = f": {', '.join(source['differs'])}" if source["differs"] else ""
    # of each place its own number: what is said must not differ by it
    message = "taken from there" if source["reused"] else source["message"]
    return f"{verb}: {message}{where}{more}"


def _named(positions: list[int]) -> str:
    """Return ``source 3``, ``sources 0-11`` or ``sources 0, 2, 7``."""
    if len(positions) == 1:
        return f"source {positions[0]}"
    first, last = positions[0], positions[-1]
    if positions == list(range(first, last + 1)):
        return f"sources {first}-{last}"
    return f"sources {', '.join(map(str, positions))}"


def left(found: dict[str, Any]) -> str:
    """Say how much longer it will take."""
    text = remaining(found.get("remaining_s"))
    return f"{text} left" if text else "time to completion unknown"


def remaining(seconds: float | None) -> str | None:
    """Return a time in words; None where nobody knows it."""
    if seconds is None:
        return None
    if seconds < 90:
        return f"about {seconds:.0f} s" if seconds >= 10 else f"about {seconds:.2g} s"
    if seconds < 5400:
        return f"about {seconds / 60:.0f} min"
    return f"about {seconds / 3600:.1f} h"
