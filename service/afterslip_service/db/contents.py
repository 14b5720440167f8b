"""What a store should hold, as the database has it."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from afterslip_service.db.tables import attempts, campaigns, jobs
from afterslip_service.engine.states import AttemptState, JobKind, JobState

_WANTED = (AttemptState.QUEUED, AttemptState.RUNNING, AttemptState.STORED)


def accepted(connection: Connection) -> dict[tuple[str, int], dict[str, Any]]:
    """Return the manifests of accepted groups, by campaign and number."""
    query = (
        sa.select(jobs.c.campaign_id, jobs.c.ordinal, attempts.c.manifest)
        .join(attempts, attempts.c.token == jobs.c.token)
        .where(jobs.c.kind == JobKind.GREENS, jobs.c.state == JobState.ACCEPTED)
    )
    rows = connection.execute(query)
    return {(row[0], row[1]): row[2] for row in rows if row[2] is not None}


def wanted(connection: Connection) -> frozenset[str]:
    """Return the attempts whose folders are still needed."""
    query = sa.select(attempts.c.token).where(attempts.c.state.in_(_WANTED))
    return frozenset(connection.execute(query).scalars())


def settled(connection: Connection) -> frozenset[str]:
    """Return the attempts that ended, accepted or not: nobody needs their folders."""
    query = sa.select(attempts.c.token).where(attempts.c.state.not_in(_WANTED))
    return frozenset(connection.execute(query).scalars())


def exists(connection: Connection, campaign: str) -> bool:
    """Tell whether a campaign is known."""
    query = sa.select(sa.literal(1)).where(campaigns.c.id == campaign)
    return connection.execute(query).first() is not None
