"""``afterslip perturb``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from afterslip.cli.server import DEFAULT, Server, Token, connect
from afterslip.client.uploads import prepare
from afterslip.earths import named_list, perturbed
from afterslip.identity import digest
from afterslip.schemas.campaign import Campaign


def perturb(
    spec: Annotated[Path, typer.Argument(help="Campaign, YAML or JSON.")],
    change: Annotated[
        list[str],
        typer.Option(
            metavar="PATH=VALUE[,VALUE]",
            help="Such as layers.crust.rigidity=x1.2,x0.8; may be repeated.",
        ),
    ],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Name the campaigns; send nothing.")
    ] = False,
    server: Server = DEFAULT,
    token: Token = None,
) -> None:
    """Send a campaign in other earths, whose differences are its model error.

    Each change is a standard deviation of one thing; several values are alternatives.
    The last line is what an inversion of the campaign itself takes. The same command
    again, as after an interruption, sends nothing twice.
    """
    campaign = Campaign.from_yaml(spec)
    groups = [perturbed(campaign, item) for item in change]
    if dry_run:
        for one in (one for group in groups for one in group):
            typer.echo(one.name)
        return
    ids: list[list[str]] = []
    with connect(server, token) as client:
        for group in groups:
            ids.append([])
            for one in group:
                content = prepare(one, None, client.upload)
                sent = client.submit(content, key=f"perturb-{digest(content)}")
                ids[-1].append(sent.id)
                typer.echo(f"submitted {sent.name}: {sent.id}", err=True)
    typer.echo(named_list(ids))
