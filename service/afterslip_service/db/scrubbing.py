"""What a scrubber reads next, and how far it has come."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from afterslip_service.db.tables import attempts, campaigns, jobs, leases
from afterslip_service.engine.states import JobKind, JobState
from afterslip_workers.messages import Manifest, read_manifest

# a lease of its own: its facts are the record, which outlives every holder
LEASE = "scrubber"

Place = tuple[str, str, int]


@dataclass(frozen=True, slots=True)
class Result:
    """Something accepted, with what was promised of its files."""

    campaign: str
    kind: JobKind
    index: int
    token: str
    manifest: Manifest

    @property
    def place(self) -> Place:
        """Where it comes in the order of reading."""
        return self.campaign, self.kind.value, self.index


def following(connection: Connection, place: Place | None) -> Result | None:
    """Return the accepted result that comes after a place; None after the last.

    A campaign's groups come first, then its inversions, then its model, which stands
    for the files that were written with the campaign's store. Deleted campaigns are
    passed over: nothing of them is computed again.
    """
    query = (
        sa.select(
            jobs.c.campaign_id,
            jobs.c.kind,
            jobs.c.ordinal,
            attempts.c.token,
            attempts.c.manifest,
        )
        .join(attempts, attempts.c.token == jobs.c.token)
        .join(campaigns, campaigns.c.id == jobs.c.campaign_id)
        .where(
            jobs.c.state == JobState.ACCEPTED,
            attempts.c.manifest.is_not(None),
            campaigns.c.deleted_at.is_(None),
        )
        .order_by(jobs.c.campaign_id, jobs.c.kind, jobs.c.ordinal)
        .limit(1)
    )
    if place is not None:
        here = sa.tuple_(jobs.c.campaign_id, jobs.c.kind, jobs.c.ordinal)
        query = query.where(here > sa.tuple_(*map(sa.literal, place)))
    row = connection.execute(query).one_or_none()
    if row is None:
        return None
    return Result(row[0], JobKind(row[1]), row[2], row[3], read_manifest(row[4]))


def holds(connection: Connection, result: Result) -> bool:
    """Tell whether a result is still the accepted one, its campaign not deleted."""
    query = (
        sa.select(jobs.c.token)
        .join(campaigns, campaigns.c.id == jobs.c.campaign_id)
        .where(
            jobs.c.campaign_id == result.campaign,
            jobs.c.kind == result.kind,
            jobs.c.ordinal == result.index,
            jobs.c.state == JobState.ACCEPTED,
            campaigns.c.deleted_at.is_(None),
        )
    )
    return connection.execute(query).scalar_one_or_none() == result.token


def record(connection: Connection) -> dict[str, Any]:
    """Return what the last scrubber wrote down; nothing if there never was one."""
    query = sa.select(leases.c.facts).where(leases.c.name == LEASE)
    return connection.execute(query).scalar_one_or_none() or {}
