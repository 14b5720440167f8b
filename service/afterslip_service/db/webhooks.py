"""Webhooks and their messages: queue and log in one table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from afterslip_service import clock
from afterslip_service.db.tables import campaigns, deliveries, webhooks
from afterslip_service.engine.webhooks import TEST, DeliveryState, Event, event_of
from afterslip_service.errors import MissingError

d = deliveries.c


@dataclass(frozen=True, slots=True)
class Webhook:
    """An address that is notified of what has ended.

    Attributes
    ----------
    owner : whose campaigns it reports; None where the service knew no users.
    campaign : the only one it reports; None: all of its owner.
    hash : of its secret, which is stored nowhere.
    """

    id: str
    url: str
    owner: str | None
    events: tuple[Event, ...]
    campaign: str | None
    hash: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Delivery:
    """A message, sent or to be sent.

    Attributes
    ----------
    event : of `Event`, or `TEST`.
    not_before : when it is sent, or sent again.
    status : HTTP status of the last answer; None where there was none.
    """

    id: str
    webhook: str
    event: str
    payload: dict[str, Any]
    state: DeliveryState
    attempts: int
    created_at: datetime
    not_before: datetime
    sent_at: datetime | None
    status: int | None
    error: str | None


def create(
    connection: Connection,
    *,
    identity: str,
    url: str,
    owner: str | None,
    events: Sequence[Event],
    campaign: str | None,
    hash: str,
) -> Webhook:
    """Write a webhook and return it."""
    connection.execute(
        webhooks.insert().values(
            id=identity,
            url=url,
            owner=owner,
            events=list(events),
            campaign=campaign,
            hash=hash,
            created_at=clock.now(),
        )
    )
    return get(connection, identity)


def get(connection: Connection, identity: str) -> Webhook:
    """Return a webhook.

    Raises
    ------
    MissingError
        If there is none of that id.
    """
    query = sa.select(webhooks).where(webhooks.c.id == identity)
    row = connection.execute(query).one_or_none()
    if row is None:
        raise MissingError("webhook", identity)
    return _webhook(row)


def page(
    connection: Connection, *, before: str | None, limit: int, owner: str | None
) -> list[Webhook]:
    """Return webhooks, newest first, all of them or those of an owner."""
    query = sa.select(webhooks).order_by(webhooks.c.id.desc()).limit(limit)
    if before is not None:
        query = query.where(webhooks.c.id < before)
    if owner is not None:
        query = query.where(webhooks.c.owner == owner)
    return [_webhook(row) for row in connection.execute(query)]


def count(connection: Connection, owner: str | None) -> int:
    """Return how many webhooks an owner has."""
    query = sa.select(sa.func.count()).where(
        webhooks.c.owner.is_not_distinct_from(owner)
    )
    return connection.execute(query).scalar_one()


def delete(connection: Connection, identity: str) -> None:
    """Remove a webhook with its messages, sent or not."""
    connection.execute(deliveries.delete().where(d.webhook_id == identity))
    connection.execute(webhooks.delete().where(webhooks.c.id == identity))


def enqueue(connection: Connection, rows: Sequence[dict[str, Any]]) -> None:
    """Queue messages of events in the transaction that makes them true.

    Parameters
    ----------
    rows : of the table of events, as `events.append` makes them.
    """
    for row in rows:
        event = event_of(row["kind"], str(row["data"].get("state")))
        if event is not None:
            _enqueue(connection, row, event)


def _enqueue(connection: Connection, row: dict[str, Any], event: Event) -> None:
    c = campaigns.c
    names = c.id, c.name, c.state, c.owner, c.error_class, c.error_message
    query = sa.select(*names).where(c.id == row["campaign"])
    found = connection.execute(query).one_or_none()
    if found is None:
        return
    hooks = connection.execute(
        sa.select(webhooks).where(
            webhooks.c.owner.is_not_distinct_from(found.owner),
            webhooks.c.campaign.is_(None) | (webhooks.c.campaign == found.id),
        )
    )
    about = {"id": found.id, "name": found.name, "state": found.state}
    data: dict[str, Any] = {"campaign": about}
    error = row["data"].get("error")
    if event in (Event.INVERSION_COMPLETE, Event.INVERSION_FAILED):
        data["inversion"] = {
            key: row["data"][key]
            for key in ("id", "name", "state")
            if key in row["data"]
        }
    elif event is Event.CAMPAIGN_FAILED and found.error_class is not None:
        error = {"class": found.error_class, "message": found.error_message}
    if error is not None:
        data["error"] = error
    for hook in hooks.all():
        if event in hook.events:
            queue(connection, hook.id, event, data, row["time"])


def queue(
    connection: Connection,
    webhook: str,
    event: str,
    data: dict[str, Any],
    time: datetime,
) -> str:
    """Queue a message and return its id."""
    identity = clock.new_id()
    payload = {"type": event, "timestamp": time.isoformat(), "data": data}
    connection.execute(
        deliveries.insert().values(
            id=identity,
            webhook_id=webhook,
            event=event,
            payload=payload,
            state=DeliveryState.WAITING,
            attempts=0,
            created_at=time,
            not_before=time,
        )
    )
    return identity


def queue_test(connection: Connection, webhook: str) -> Delivery:
    """Queue a test message."""
    identity = queue(connection, webhook, TEST, {}, clock.now())
    return delivery(connection, identity)


def due(connection: Connection, limit: int) -> list[tuple[Delivery, Webhook]]:
    """Return the oldest message that is due of each webhook."""
    waiting = d.state == DeliveryState.WAITING
    first = (
        sa.select(sa.func.min(d.id))
        .where(waiting, d.not_before <= clock.now())
        .group_by(d.webhook_id)
        .limit(limit)
    )
    query = sa.select(deliveries).where(waiting, d.id.in_(first)).order_by(d.id)
    found = [_delivery(row) for row in connection.execute(query)]
    return [(one, get(connection, one.webhook)) for one in found]


def settle(
    connection: Connection,
    sent: Delivery,
    state: DeliveryState,
    *,
    status: int | None,
    error: str | None,
    again: timedelta | None,
) -> None:
    """Write down how an attempt ended; nothing where the webhook was deleted.

    Parameters
    ----------
    again : after which it is sent again; None: never.
    """
    now = clock.now()
    connection.execute(
        deliveries.update()
        .where(d.id == sent.id)
        .values(
            state=state,
            attempts=sent.attempts + 1,
            sent_at=now,
            status=status,
            error=error,
            not_before=sent.not_before if again is None else now + again,
        )
    )


def delivery(connection: Connection, identity: str) -> Delivery:
    """Return a message.

    Raises
    ------
    MissingError
        If there is none of that id.
    """
    query = sa.select(deliveries).where(d.id == identity)
    row = connection.execute(query).one_or_none()
    if row is None:
        raise MissingError("delivery", identity)
    return _delivery(row)


def log_page(
    connection: Connection, webhook: str, *, before: str | None, limit: int
) -> list[Delivery]:
    """Return a webhook's messages, newest first."""
    query = sa.select(deliveries).where(d.webhook_id == webhook)
    if before is not None:
        query = query.where(d.id < before)
    rows = connection.execute(query.order_by(d.id.desc()).limit(limit))
    return [_delivery(row) for row in rows]


def prune(connection: Connection, before: datetime) -> int:
    """Drop what was settled before a moment."""
    old = deliveries.delete().where(
        d.state != DeliveryState.WAITING, d.sent_at < before
    )
    return connection.execute(old).rowcount


def _webhook(row: sa.Row[Any]) -> Webhook:
    return Webhook(
        id=row.id,
        url=row.url,
        owner=row.owner,
        events=tuple(Event(name) for name in row.events),
        campaign=row.campaign,
        hash=row.hash,
        created_at=row.created_at,
    )


def _delivery(row: sa.Row[Any]) -> Delivery:
    return Delivery(
        id=row.id,
        webhook=row.webhook_id,
        event=row.event,
        payload=row.payload,
        state=DeliveryState(row.state),
        attempts=row.attempts,
        created_at=row.created_at,
        not_before=row.not_before,
        sent_at=row.sent_at,
        status=row.status,
        error=row.error,
    )
