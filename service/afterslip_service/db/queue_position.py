"""What stands before a campaign in the queue."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy import Connection

from afterslip_service.db import awaited, queue, twins
from afterslip_service.db.jobs import LIVE
from afterslip_service.db.tables import campaigns, jobs
from afterslip_service.engine.states import JobKind, JobState

c = campaigns.c


@dataclass(frozen=True, slots=True)
class Place:
    """A campaign's place in the queue, see `engine.explain.Situation`."""

    wake_at: datetime | None
    busy: int
    above: int
    before: int
    awaits: tuple[str, ...]
    shares: bool


def of(connection: Connection, identity: str, now: datetime) -> Place:
    """Return where a campaign stands."""
    columns = (c.owner, c.priority, c.turn, c.wake_at)
    own = connection.execute(sa.select(*columns).where(c.id == identity)).one()
    same = c.owner.is_(None) if own.owner is None else c.owner == own.owner
    busy = (
        sa.select(sa.func.count())
        .select_from(jobs.join(campaigns, c.id == jobs.c.campaign_id))
        .where(jobs.c.state.in_(LIVE), same)
    )
    ready = sa.select(sa.func.count()).where(c.wake_at <= now, c.id != identity)
    before = ready.where(c.priority == own.priority, c.turn < own.turn)
    awaits, shares = _held(connection, identity, now)
    return Place(
        own.wake_at,
        connection.execute(busy).scalar_one(),
        connection.execute(ready.where(c.priority > own.priority)).scalar_one(),
        connection.execute(before).scalar_one(),
        awaits,
        shares,
    )


def _held(
    connection: Connection, identity: str, now: datetime
) -> tuple[tuple[str, ...], bool]:
    """Return which campaigns the next job awaits, and whether it is put off as a twin.

    A job is put off for either without a failure, see `awaited` and `twins`.
    """
    j = jobs.c
    columns = (j.kind, j.payload, j.not_before, j.error_class)
    query = (
        sa.select(*columns)
        .select_from(jobs.join(campaigns, c.id == j.campaign_id))
        .where(c.id == identity, j.kind == queue.kind(), j.state == JobState.WAITING)
        .order_by(j.not_before, j.ordinal)
        .limit(1)
    )
    row = connection.execute(query).first()
    if row is None:
        return (), False
    if row.kind == JobKind.INVERSION:
        return tuple(awaited.still_open(connection, row.payload)), False
    later = row.not_before > now and row.error_class is None
    again = row.payload.get(twins.AGAIN)
    return (), bool(later and row.kind == JobKind.GROUP and not again)
