"""``afterslip watch``: a live screen from the server's events."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import typer

from afterslip.cli.server import DEFAULT, AsJson, Server, Token, Which, connect
from afterslip.units import largest_slip, limits

if TYPE_CHECKING:
    from afterslip.client.campaign import CampaignHandle
    from afterslip.client.events import Event
    from afterslip.client.inversion import Inversion
    from afterslip.client.progress import Display

ASK_EVERY_S = 0.5
CANCELLED = 3
NOT_MET = 4
"""Counts are asked for at most so often, however many events come."""


def watch(
    which: Which,
    server: Server = DEFAULT,
    token: Token = None,
    as_json: AsJson = False,
) -> None:
    """Follow a campaign until it ends; Ctrl-C stops watching, not the campaign.

    With --json every event is a line of JSON. Exit code 0 if it is complete and its
    inversions are accepted, 1 if it or one of them has failed, 3 if it was cancelled,
    4 if all is done but the mesh misses mesh.accuracy.
    """
    with connect(server, token) as client:
        campaign = client.campaign(which)
        if as_json:
            for event in campaign.events():
                line = {"id": event.id, "kind": event.kind, "time": event.time}
                typer.echo(json.dumps(line | {"data": event.data}))
            _verdict(campaign, _ended_inversions(campaign))
        else:
            follow(campaign)


def follow(campaign: CampaignHandle) -> None:
    """Show bars until the campaign and its inversions have ended.

    Raises
    ------
    typer.Exit
        with 1 where it or one of its inversions failed, 3 where it was cancelled, 4
        where its mesh misses the accuracy that was asked for.
    """
    from afterslip.client.campaign import ENDED
    from afterslip.client.progress import Display

    try:
        with Display(whole_screen=True) as display:
            screen = _Screen(campaign, display)
            if campaign.state not in ENDED:
                for event in campaign.events(None):
                    screen.take(event)
            screen.ask(now=True)
            inversions = _ended_inversions(campaign, display)
    except KeyboardInterrupt:
        typer.echo(
            f"stopped watching; {campaign.name} goes on "
            f"(afterslip watch {campaign.id})", err=True,
        )  # fmt: skip
        raise typer.Exit(130) from None
    _verdict(campaign, inversions)


class _Screen:
    """What is known from events, asked for again where they do not say it all."""

    def __init__(self, campaign: CampaignHandle, display: Display) -> None:
        self.campaign, self.display = campaign, display
        self.running: dict[int, dict[str, Any]] = {}
        self.asked = 0.0
        for group in campaign.groups():
            if group.get("state") == "running":
                self.running[int(group["index"])] = group
        self.draw()

    def take(self, event: Event) -> None:
        """Take in an event."""
        data = event.data
        index = int(data.get("index") or 0)
        if event.kind == "group.state":
            if data.get("state") == "running":
                self.running.setdefault(index, {"index": index, "state": "running"})
            else:
                self.running.pop(index, None)
            if data.get("state") == "failed" and data.get("error"):
                reason = data["error"].get("message") or data["error"].get("class")
                self.display.say(f"group {index} failed: {reason}")
        elif event.kind == "group.progress" and data.get("job") != "model":
            group = self.running.setdefault(index, {"index": index, "state": "running"})
            group["progress"] = data
        self.ask(now=event.kind == "campaign.state")

    def ask(self, *, now: bool = False) -> None:
        """Refresh the counts, if it is time to."""
        if now or time.monotonic() - self.asked > ASK_EVERY_S:
            self.campaign.refresh()
            self.asked = time.monotonic()
        self.draw()

    def draw(self) -> None:
        """Draw."""
        groups = [self.running[i] for i in sorted(self.running)]
        self.display.update(self.campaign.data, groups)


def _ended_inversions(
    campaign: CampaignHandle, display: Display | None = None
) -> list[Inversion]:
    """Wait for a complete campaign's inversions, and show what they found."""
    from afterslip.client.errors import CampaignError

    campaign.refresh()
    if campaign.state != "complete":
        return []
    inversions = campaign.inversions()
    for inversion in inversions:
        try:
            inversion.wait()
        except CampaignError as error:
            text = str(error)
        else:
            text = f"inversion {inversion.name}: {found(inversion)}"
        if display is not None:
            display.say(text)
    return inversions


def found(inversion: Inversion) -> str:
    """Write what an inversion found, with its intervals of 95 %."""
    return (
        f"Mw {inversion.magnitude:.2f}{limits(inversion.magnitude_interval, '.2f')}, "
        f"largest slip {largest_slip(inversion.data['summary'], '.1f')}, variance "
        f"reduction {inversion.variance_reduction:.1%}"
    )


def _verdict(campaign: CampaignHandle, inversions: list[Inversion]) -> None:
    error = campaign.data.get("error") or {}
    reason = f": {error.get('message')}" if error.get("message") else ""
    failed = [item for item in inversions if item.state == "failed"]
    if failed:
        reason += f", but inversion {', '.join(item.name for item in failed)} failed"
    typer.echo(f"{campaign.name} {campaign.id}: {campaign.state}{reason}", err=True)
    if campaign.state == "cancelled":
        raise typer.Exit(CANCELLED)
    if campaign.state != "complete" or failed:
        raise typer.Exit(1)
    notes = (campaign.data.get("model") or {}).get("notes") or []
    missed = [note for note in notes if note.startswith("warning")]
    for note in missed:
        typer.echo(note, err=True)
    if missed:
        raise typer.Exit(NOT_MET)
