"""``afterslip list`` and ``afterslip show``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from afterslip.cli.attempts import print_group
from afterslip.cli.explain import remaining
from afterslip.cli.rows import coloured, print_rows, when
from afterslip.cli.server import DEFAULT, AsJson, AsTsv, Server, Token, Which, connect
from afterslip.cli.usage import lasted
from afterslip.units import largest_slip, limits

if TYPE_CHECKING:
    from afterslip.client.campaign import CampaignHandle
    from afterslip.client.inversion import Inversion

MOST_FAILED = 12


def list_campaigns(
    state: Annotated[str | None, typer.Option(help="Only those in this state.")] = None,
    tag: Annotated[str | None, typer.Option(help="Only those with this tag.")] = None,
    server: Server = DEFAULT,
    token: Token = None,
    as_json: AsJson = False,
    as_tsv: AsTsv = False,
) -> None:
    """List the campaigns of a server, newest first."""
    with connect(server, token) as client:
        found = client.campaigns(state, tag=tag)
    rows = [
        (
            campaign.id,
            campaign.name,
            campaign.state,
            groups_done(campaign.data),
            inversions_done(campaign.data),
            when(campaign.data.get("created_at")),
        )
        for campaign in found
    ]
    heads = ("id", "name", "state", "groups", "inversions", "created")
    print_rows(
        heads,
        rows,
        [c.data for c in found],
        as_json=as_json,
        as_tsv=as_tsv,
        numbers=frozenset({"groups"}),
        empty="no campaigns",
    )


def show(
    which: Which,
    server: Server = DEFAULT,
    token: Token = None,
    as_json: AsJson = False,
    group: Annotated[
        int | None, typer.Option(min=0, help="Show every attempt at this group.")
    ] = None,
) -> None:
    """Show a campaign: its model, groups, failures and inversions."""
    with connect(server, token) as client:
        campaign = client.campaign(which)
        if group is not None:
            print_group(campaign.group(group), as_json=as_json)
            return
        groups = campaign.groups()
        inversions = campaign.inversions()
    if as_json:
        whole = campaign.data | {
            "groups": groups,
            "inversions": [i.data for i in inversions],
        }
        typer.echo(json.dumps(whole, indent=2))
        return
    console = Console(highlight=False)
    _print_campaign(console, campaign)
    _print_failures(console, groups)
    _print_inversions(console, inversions)


def _print_campaign(console: Console, campaign: CampaignHandle) -> None:
    data = campaign.data
    console.print(
        f"[bold]{escape(campaign.name)}[/bold]  {campaign.id}  "
        f"{coloured(campaign.state)}"
    )
    model = data.get("model") or {}
    rows = [
        ("created", when(data.get("created_at"))),
        ("groups", groups_done(data)),
        ("remaining", eta(data)),
        ("owner", data.get("owner")),
        ("priority", data.get("priority")),
        ("tags", ", ".join(data.get("tags", []))),
        ("worker time", _worker_time(data)),
        ("unit sources", data.get("n_sources")),
        ("unknowns", _thousands(model.get("n_unknowns"))),
        ("elements", _thousands(model.get("n_elements"))),
        ("digest", data.get("digest")),
        ("error", _reason(data.get("error"))),
    ]
    for name, value in rows:
        if value:
            console.print(f"  {name:<13}{escape(str(value))}", soft_wrap=True)


def _print_failures(console: Console, groups: list[dict[str, Any]]) -> None:
    failed = [g for g in groups if g.get("error")]
    for group in failed[:MOST_FAILED]:
        console.print(
            f"  [red]group {group['index']}[/red] {group['state']} after "
            f"{group.get('attempts')} attempts: {escape(_reason(group['error']))}",
            soft_wrap=True,
        )
    if len(failed) > MOST_FAILED:
        console.print(f"  and {len(failed) - MOST_FAILED} more")


def _print_inversions(console: Console, inversions: list[Inversion]) -> None:
    for inversion in inversions:
        summary = inversion.data.get("summary") or {}
        parts = [coloured(inversion.state)]
        for name, form in (
            ("magnitude", "Mw {:.2f}"),
            ("peak_slip", "largest slip "),
            ("variance_reduction", "variance reduction {:.1%}"),
            ("score", "score {:.3g}"),
        ):
            if not isinstance(summary.get(name), int | float):
                continue
            said = form.format(summary[name])
            if name == "magnitude":
                said += limits(summary.get("magnitude_interval"), ".2f")
            elif name == "peak_slip":
                said += largest_slip(summary, ".1f")
            parts.append(said)
        if inversion.data.get("error"):
            parts.append(escape(_reason(inversion.data["error"])))
        console.print(
            f"  inversion [bold]{escape(inversion.name)}[/bold] {inversion.id}: "
            + ", ".join(parts),
            soft_wrap=True,
        )


def groups_done(data: Mapping[str, Any]) -> str:
    """Return ``accepted/total`` and what has failed."""
    counts = data.get("progress") or {}
    if not counts.get("total"):
        return "–"
    text = f"{counts.get('accepted', 0)}/{counts['total']}"
    return text + (f", {counts['failed']} failed" if counts.get("failed") else "")


def inversions_done(data: Mapping[str, Any]) -> str:
    """Return how many inversions there are, and how many of them have failed."""
    failed = data.get("inversions_failed")
    count = str(len(data.get("inversions") or []))
    return f"{count}, {failed} failed" if failed else count


def eta(data: Mapping[str, Any]) -> str | None:
    """Return how long a campaign at work will take; None where it is not at work."""
    if data.get("state") not in {"running", "building", "waiting"}:
        return None
    return remaining(data.get("remaining_s"))


def _worker_time(data: Mapping[str, Any]) -> str | None:
    """Return the worker time of all attempts, h:mm:ss."""
    seconds = data.get("worker_seconds")
    return lasted(seconds) if seconds else None


def _thousands(value: Any) -> str | None:
    return f"{value:,}" if isinstance(value, int) else None


def _reason(error: Mapping[str, Any] | None) -> str:
    if not error:
        return ""
    return f"{error.get('message') or 'no message'} ({error.get('class')})"
