"""What stands before a campaign in the queue."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy import Connection

from afterslip_service.db.jobs import LIVE
from afterslip_service.db.tables import campaigns, jobs

c = campaigns.c


@dataclass(frozen=True, slots=True)
class Place:
    """A campaign's place in the queue, see `engine.explain.Situation`."""

    wake_at: datetime | None
    busy: int
    above: int
    before: int


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
    return Place(
        own.wake_at,
        connection.execute(busy).scalar_one(),
        connection.execute(ready.where(c.priority > own.priority)).scalar_one(),
        connection.execute(before).scalar_one(),
    )
