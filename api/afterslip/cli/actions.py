"""``afterslip cancel``, ``uncancel``, ``retry``, ``invalidate``, ``change``, ..."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from afterslip.cli.server import DEFAULT, Server, Token, Which, connect

Groups = Annotated[
    list[int] | None,
    typer.Option("--group", "-g", help="Only this group; may be repeated."),
]


def _act(verb: str, which: str, server: str, token: str | None) -> None:
    with connect(server, token) as client:
        campaign = client.campaign(which)
        getattr(campaign, verb)()
        # running work is stopped in the background
        state = "cancelling" if campaign.data.get("cancelling") else campaign.state
        state = campaign.state if campaign.state == "cancelled" else state
        typer.echo(f"{campaign.name} {campaign.id}: {state}")


def _act_on_groups(
    action: Literal["cancel", "uncancel", "retry", "invalidate"],
    which: str,
    groups: list[int] | None,
    server: str,
    token: str | None,
    error_class: str | None = None,
) -> None:
    with connect(server, token) as client:
        campaign = client.campaign(which)
        for index in groups or []:
            # an action passes over numbers that no group has
            campaign.group(index)
        done = campaign.act_on_groups(action, groups, error_class=error_class)
        typer.echo(
            f"{campaign.name} {campaign.id}: {action} changed {done['changed']} "
            f"groups, {campaign.state}"
        )


def cancel(
    which: Which,
    group: Groups = None,
    server: Server = DEFAULT,
    token: Token = None,
) -> None:
    """Cancel what waits and stop what runs; what is accepted stays.

    With --group only groups that wait or have failed.
    """
    if group:
        _act_on_groups("cancel", which, group, server, token)
    else:
        _act("cancel", which, server, token)


def uncancel(
    which: Which,
    group: Groups = None,
    server: Server = DEFAULT,
    token: Token = None,
) -> None:
    """Take up again what was cancelled."""
    if group:
        _act_on_groups("uncancel", which, group, server, token)
        return
    with connect(server, token) as client:
        campaign = client.campaign(which)
        done = campaign.uncancel()
        typer.echo(
            f"{campaign.name} {campaign.id}: {done['changed']} jobs taken up, "
            f"{campaign.state}"
        )


def retry(
    which: Which,
    group: Groups = None,
    error_class: Annotated[
        str | None, typer.Option("--class", help="Only what failed in this way.")
    ] = None,
    server: Server = DEFAULT,
    token: Token = None,
) -> None:
    """Put what has failed back in the queue."""
    if group or error_class:
        _act_on_groups("retry", which, group, server, token, error_class)
    else:
        _act("retry", which, server, token)


def invalidate(
    which: Which,
    group: Groups = None,
    server: Server = DEFAULT,
    token: Token = None,
) -> None:
    """Solve accepted groups again; their results stay until the new ones are in."""
    _act_on_groups("invalidate", which, group, server, token)


def delete(
    which: Which,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Without asking first.")
    ] = False,
    server: Server = DEFAULT,
    token: Token = None,
) -> None:
    """Cancel a campaign and remove it from the lists.

    The files of its Green's functions stay in the store, where other campaigns may
    have reused them; nothing brings the campaign back.
    """
    with connect(server, token) as client:
        campaign = client.campaign(which)
        if not yes:
            what = f"delete {campaign.name} {campaign.id}, which is {campaign.state}?"
            typer.confirm(what, abort=True, err=True)
        campaign.delete()
        typer.echo(f"{campaign.name} {campaign.id}: deleted")


def pause(which: Which, server: Server = DEFAULT, token: Token = None) -> None:
    """Start no further work of a campaign; what runs goes on."""
    _act("pause", which, server, token)


def resume(which: Which, server: Server = DEFAULT, token: Token = None) -> None:
    """Go on after a pause."""
    _act("resume", which, server, token)


def change(
    which: Which,
    name: Annotated[str | None, typer.Option(help="Its new name.")] = None,
    priority: Annotated[
        int | None,
        typer.Option(min=-1000, max=1000, help="Higher ones are served first."),
    ] = None,
    tags: Annotated[
        str | None,
        typer.Option(help="All its tags, with commas between; an empty word: none."),
    ] = None,
    server: Server = DEFAULT,
    token: Token = None,
) -> None:
    """Change a campaign's name, priority or tags, also while it is at work.

    If somebody else changes it at the same moment, nothing happens: try again.
    """
    if name is None and priority is None and tags is None:
        raise typer.BadParameter("say what to change: --name, --priority, --tags")
    several = None if tags is None else tags.replace(",", " ").split()
    with connect(server, token) as client:
        campaign = client.campaign(which).change(
            name=name, priority=priority, tags=several
        )
        data = campaign.data
        typer.echo(
            f"{campaign.name} {campaign.id}: priority {data.get('priority', 0)}, "
            f"{campaign.state}" + "".join(f", {tag}" for tag in data.get("tags", []))
        )
