"""The queue: which campaigns have work that may start, and whose turn it is.

``campaigns.wake_at`` is derived from the jobs whenever they change, so that a look
for work touches only campaigns that have some, however many there are.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.dialects import postgresql, sqlite

from afterslip_service.db.tables import campaigns, jobs, shares
from afterslip_service.engine.states import CampaignState, JobKind, JobState

# share of campaigns that belong to no user
NOBODY = ""
SERVED = (CampaignState.WAITING, CampaignState.BUILDING, CampaignState.RUNNING)


def kind() -> sa.ColumnElement[Any]:
    """Return the expression for what a campaign does next.

    The model comes before the groups, and both before the inversions.
    """
    return sa.case(
        (campaigns.c.finished_at.is_not(None), JobKind.INVERSION.value),
        (campaigns.c.n_sources.is_(None), JobKind.MODEL.value),
        else_=JobKind.GROUP.value,
    )


def wake_at() -> sa.ColumnElement[Any]:
    """Return the expression that ``campaigns.wake_at`` should equal."""
    first = (
        sa.select(sa.func.min(jobs.c.not_before))
        .where(
            jobs.c.campaign_id == campaigns.c.id,
            jobs.c.kind == kind(),
            jobs.c.state == JobState.WAITING,
        )
        .correlate(campaigns)
        .scalar_subquery()
    )
    may = sa.and_(
        sa.not_(campaigns.c.paused),
        sa.not_(campaigns.c.cancelling),
        # IN would not do where many rows are updated, each with values of its own
        sa.or_(
            campaigns.c.finished_at.is_not(None),
            *(campaigns.c.state == state for state in SERVED),
        ),
    )
    return sa.case((may, first), else_=sa.null())


def requeue(connection: Connection, identities: Collection[str]) -> None:
    """Derive anew when the next job of some campaigns may start."""
    connection.execute(
        campaigns.update()
        .where(campaigns.c.id.in_(identities))
        .values(wake_at=wake_at())
    )


def repair(connection: Connection) -> int:
    """Put campaigns into the queue that wait without being in it; there are none.

    What is derived can be wrong only by a mistake of ours, which must not cost a
    campaign its life.
    """
    dialect = sqlite if connection.dialect.name == "sqlite" else postgresql
    name = sa.func.coalesce(campaigns.c.owner, NOBODY)
    # without a condition SQLite takes ON CONFLICT for a join's
    owners = sa.select(name, sa.literal(0)).distinct().where(sa.true())
    insert = dialect.insert(shares).from_select(["owner", "turn"], owners)
    connection.execute(insert.on_conflict_do_nothing())
    waiting = (
        sa.select(jobs.c.campaign_id)
        .where(jobs.c.state == JobState.WAITING)
        .distinct()
        .scalar_subquery()
    )
    done = connection.execute(
        campaigns.update()
        .where(
            campaigns.c.wake_at.is_(None),
            campaigns.c.id.in_(waiting),
            wake_at().is_not(None),
        )
        .values(wake_at=wake_at())
    )
    return done.rowcount


def last_turn(connection: Connection) -> int:
    """Return the number of the last claim."""
    return connection.execute(sa.select(sa.func.max(shares.c.turn))).scalar() or 0


def join(connection: Connection, owner: str | None) -> int:
    """Give a user a share; return the turn of a new campaign, behind all others."""
    turn = last_turn(connection)
    dialect = sqlite if connection.dialect.name == "sqlite" else postgresql
    connection.execute(
        dialect.insert(shares)
        .values(owner=owner or NOBODY, turn=turn)
        .on_conflict_do_nothing()
    )
    return turn
