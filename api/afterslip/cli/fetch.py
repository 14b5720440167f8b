"""``afterslip fetch``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from afterslip.cli.server import DEFAULT, Server, Token, Which, connect


def fetch(
    which: Which,
    out: Annotated[
        Path | None, typer.Option(help="Folder; the campaign's name by default.")
    ] = None,
    greens: Annotated[
        bool, typer.Option(help="Also the Green's functions, the largest part.")
    ] = True,
    server: Server = DEFAULT,
    token: Token = None,
) -> None:
    """Copy a campaign's results to a folder; a second time only what is new."""
    from afterslip.client.download import safe_name

    with connect(server, token) as client:
        campaign = client.campaign(which)
        folder = out or Path(safe_name(campaign.name, "campaign"))
        campaign.fetch(folder, greens=greens)
    typer.echo(str(folder))
