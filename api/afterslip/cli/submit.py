"""``afterslip submit``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from afterslip.cli.server import DEFAULT, AsJson, Server, Token, connect


def submit(
    spec: Annotated[Path, typer.Argument(help="Campaign, YAML or JSON.")],
    watch: Annotated[
        bool, typer.Option("--watch", help="Follow it until it ends.")
    ] = False,
    priority: Annotated[
        int | None, typer.Option(help="Higher ones are served first; 0 if not given.")
    ] = None,
    server: Server = DEFAULT,
    token: Token = None,
    as_json: AsJson = False,
) -> None:
    """Send a campaign, with the files that it names, to a server."""
    with connect(server, token) as client:
        campaign = client.submit(spec, priority=priority)
        if as_json:
            typer.echo(json.dumps(campaign.data, indent=2))
        else:
            typer.echo(campaign.id)
            typer.echo(f"submitted {campaign.name}: {campaign.state}", err=True)
        if watch:
            from afterslip.cli.watch import follow

            follow(campaign)
