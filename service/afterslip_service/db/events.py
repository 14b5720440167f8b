"""Events: what happened, in the order in which it became visible."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from afterslip_service import clock
from afterslip_service.db.tables import events

CAMPAIGN_STATE = "campaign.state"
MODEL_BUILT = "model.built"
GROUP_STATE = "group.state"
GROUP_PROGRESS = "group.progress"
INVERSION_STATE = "inversion.state"
STORE_DAMAGED = "store.damaged"

# on which processes wake each other
CHANNEL = "afterslip"

# execution option of a writing transaction: the events that it will tell
PENDING = "afterslip_events"

# identities are given before the commit, so that without this lock a reader
# could see number 8, ask for what comes after it and miss number 7 for ever
_ORDER_LOCK = 0x_AF7E_25_12


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened."""

    id: int
    time: datetime
    campaign: str | None
    kind: str
    data: dict[str, Any]


def append(
    connection: Connection, campaign: str | None, kind: str, data: dict[str, Any]
) -> None:
    """Tell of something in the transaction that makes it true.

    Events are written at the end of the transaction, all at once: the lock that
    keeps them in order is then locked for the time of a commit only, and a
    transaction that waits for a campaign never holds it.
    """
    row = {"time": clock.now(), "campaign": campaign, "kind": kind, "data": data}
    pending: list[dict[str, Any]] = connection.get_execution_options()[PENDING]
    pending.append(row)


def write(connection: Connection, rows: list[dict[str, Any]]) -> None:
    """Write the events of a transaction that is about to be committed."""
    if connection.dialect.name == "postgresql":
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_ORDER_LOCK)))
    connection.execute(events.insert(), rows)


def tell(connection: Connection, mark: str) -> None:
    """Wake other processes when this transaction is committed, see `notify`.

    Parameters
    ----------
    mark : of our own process, which need not be woken.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(sa.select(sa.func.pg_notify(CHANNEL, mark)))


def after(
    connection: Connection, last: int, campaign: str | None = None, limit: int = 500
) -> list[Event]:
    """Return the events after number ``last``, oldest first."""
    query = sa.select(events).where(events.c.id > last)
    if campaign is not None:
        query = query.where(events.c.campaign == campaign)
    rows = connection.execute(query.order_by(events.c.id).limit(limit))
    return [_event(row) for row in rows]


def newest(connection: Connection) -> int:
    """Return the number of the newest event, 0 if there is none."""
    return connection.execute(sa.select(sa.func.max(events.c.id))).scalar() or 0


def prune(connection: Connection, kinds: Sequence[str], before: datetime) -> int:
    """Drop the events of some kinds that are older than ``before``."""
    result = connection.execute(
        events.delete().where(events.c.kind.in_(kinds), events.c.time < before)
    )
    return result.rowcount


def _event(row: sa.Row[Any]) -> Event:
    return Event(row.id, row.time, row.campaign, row.kind, row.data)
