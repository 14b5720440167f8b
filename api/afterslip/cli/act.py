"""``afterslip cancel``, ``retry``, ``pause``, ``resume``."""

from __future__ import annotations

import typer

from afterslip.cli.server import DEFAULT, Server, Token, Which, connect


def _act(verb: str, which: str, server: str, token: str | None) -> None:
    with connect(server, token) as client:
        campaign = client.campaign(which)
        getattr(campaign, verb)()
        # running work is stopped in the background
        state = "cancelling" if campaign.data.get("cancelling") else campaign.state
        state = campaign.state if campaign.state == "cancelled" else state
        typer.echo(f"{campaign.name} {campaign.id}: {state}")


def cancel(which: Which, server: Server = DEFAULT, token: Token = None) -> None:
    """Cancel what waits and stop what runs; what is accepted stays."""
    _act("cancel", which, server, token)


def retry(which: Which, server: Server = DEFAULT, token: Token = None) -> None:
    """Put what has failed back in the queue."""
    _act("retry", which, server, token)


def pause(which: Which, server: Server = DEFAULT, token: Token = None) -> None:
    """Start no further work of a campaign; what runs goes on."""
    _act("pause", which, server, token)


def resume(which: Which, server: Server = DEFAULT, token: Token = None) -> None:
    """Go on after a pause."""
    _act("resume", which, server, token)
