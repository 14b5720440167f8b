"""``afterslip webhook add``, ``list``, ``log``, ``test``, ``delete``."""

from __future__ import annotations

import os
import time
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer

from afterslip.cli.rows import print_rows
from afterslip.cli.server import DEFAULT, AsJson, AsTsv, Server, Token, connect

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Tell an address when campaigns and inversions have ended.",
)

Webhook = Annotated[str, typer.Argument(metavar="ID", help="As list tells it.")]
# s that a test is waited for
_PATIENCE, _LOOK = 30.0, 0.5


class Event(StrEnum):
    """What a webhook reports."""

    CAMPAIGN_COMPLETE = "campaign.complete"
    CAMPAIGN_FAILED = "campaign.failed"
    INVERSION_COMPLETE = "inversion.complete"
    INVERSION_FAILED = "inversion.failed"


@app.command()
def add(
    url: Annotated[str, typer.Argument(help="https://…, which gets POST requests.")],
    event: Annotated[
        list[Event] | None, typer.Option(help="Only these; may be repeated.")
    ] = None,
    campaign: Annotated[
        str | None, typer.Option(help="Only of this campaign: id, beginning or name.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Write the secret to a file that only you read.")
    ] = None,
    server: Server = DEFAULT,
    token: Token = None,
) -> None:
    """Add a webhook; its secret is printed this once and stored nowhere."""
    with connect(server, token) as client:
        which = None if campaign is None else client.campaign(campaign).id
        events = None if event is None else [item.value for item in event]
        made = client.add_webhook(url, events, which)
    typer.echo(f"{made['id']}: {', '.join(made['events'])}", err=True)
    if out is None:
        typer.echo(made["secret"])
        return
    descriptor = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as stream:
        stream.write(made["secret"] + "\n")


@app.command("list")
def list_webhooks(
    server: Server = DEFAULT,
    token: Token = None,
    as_json: AsJson = False,
    as_tsv: AsTsv = False,
) -> None:
    """List your webhooks, newest first."""
    with connect(server, token) as client:
        found = client.webhooks()
    rows = [
        [item["id"], item["url"], ", ".join(item["events"]), item["campaign"] or "all"]
        for item in found
    ]
    heads = ("id", "url", "events", "campaign")
    empty = "no webhooks"
    print_rows(heads, rows, found, as_json=as_json, as_tsv=as_tsv, empty=empty)


@app.command()
def log(
    identity: Webhook,
    last: Annotated[int, typer.Option(min=1, max=500, help="So many messages.")] = 20,
    server: Server = DEFAULT,
    token: Token = None,
    as_json: AsJson = False,
    as_tsv: AsTsv = False,
) -> None:
    """List the messages of a webhook, newest first, and how each went."""
    with connect(server, token) as client:
        found = list(islice(client.deliveries(identity), last))
    heads = ("id", "event", "state", "attempts", "created", "again", "outcome")
    rows = [
        [
            item["id"],
            item["event"],
            item["state"],
            str(item["attempts"]),
            item["created_at"][:19],
            (item["again_at"] or "–")[:19],
            _outcome(item),
        ]
        for item in found
    ]
    empty = "no messages"
    print_rows(heads, rows, found, as_json=as_json, as_tsv=as_tsv, empty=empty)


@app.command("test")
def try_out(identity: Webhook, server: Server = DEFAULT, token: Token = None) -> None:
    """Send a test message, and say how it went."""
    with connect(server, token) as client:
        sent = client.test_webhook(identity)
        until = time.monotonic() + _PATIENCE
        while not sent["attempts"] and time.monotonic() < until:
            time.sleep(_LOOK)
            ours = (d for d in client.deliveries(identity) if d["id"] == sent["id"])
            sent = next(ours, sent)
    typer.echo(f"{sent['id']}: {_outcome(sent)}")
    if sent["state"] != "delivered":
        raise typer.Exit(1)


@app.command()
def delete(identity: Webhook, server: Server = DEFAULT, token: Token = None) -> None:
    """Remove a webhook; messages that wait are not sent any more."""
    with connect(server, token) as client:
        client.delete_webhook(identity)
    typer.echo(f"{identity}: deleted")


def _outcome(item: dict[str, Any]) -> str:
    if item["error"]:
        return str(item["error"])
    return f"answered {item['status']}" if item["attempts"] else "not sent yet"
