"""Server-sent events that go on where they stopped when the line breaks."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx

from afterslip.client.errors import ApiError, NoServerError
from afterslip.client.transport import RETRIED, Transport

PATIENCE = 8
"""Failed connections in a row after which we give up: about a minute."""


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened.

    Attributes
    ----------
    id : rises by time; give the last one received to go on after it.
    kind : ``campaign.state``, ``model.built``, ``group.state``,
        ``group.progress``, ``inversion.state`` or ``store.damaged``.
    time : ISO 8601.
    campaign : id of the campaign.
    data : its content, by kind.
    """

    id: int
    kind: str
    time: str = ""
    campaign: str | None = None
    data: dict[str, Any] = field(default_factory=dict)


def parse(lines: Iterable[str]) -> Iterator[Event]:
    """Read events from the lines of a stream; comments are passed over.

    A number without data says where the stream stands: an event without a kind.
    """
    number, kind, data = "", "", list[str]()
    for line in lines:
        if not line:
            if number.isdigit():
                named = kind if data else ""
                yield _event(int(number), named, "\n".join(data) or "{}")
            number, kind, data = "", "", []
            continue
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "id":
            number = value
        elif name == "event":
            kind = value
        elif name == "data":
            data.append(value)


def _event(number: int, kind: str, text: str) -> Event:
    try:
        body = json.loads(text)
    except ValueError:
        body = {}
    if not isinstance(body, dict):
        body = {}
    return Event(
        id=number,
        kind=str(body.get("kind") or kind),
        time=str(body.get("time") or ""),
        campaign=body.get("campaign"),
        data=body.get("data") or {},
    )


def follow(
    transport: Transport,
    path: str,
    after: int | None = 0,
) -> Iterator[Event]:
    """Yield events without end, each once, whatever happens to the line.

    Parameters
    ----------
    after : number of the last event received; 0 for all that the server keeps, None
        for new ones only.

    Raises
    ------
    ApiError
        when the server refuses.
    NoServerError
        when it cannot be reached for about a minute.
    """
    failures = 0
    while True:
        headers = {"Accept": "text/event-stream"}
        if after is not None:
            headers["Last-Event-ID"] = str(after)
        try:
            with transport.stream(path, headers) as lines:
                for event in parse(lines):
                    failures = 0
                    if after is None or event.id > after:
                        after = event.id
                        if event.kind:
                            yield event
            failures += 1  # the server ended the stream: it may be going down
        except ApiError as error:
            if error.status not in RETRIED:
                raise
            failures += 1
        except httpx.TransportError:
            failures += 1
        if failures > PATIENCE:
            raise NoServerError(f"{transport.url} has been out of reach for a minute")
        transport.wire.sleep(min(0.25 * 2.0**failures, 10.0))
