"""Inversions in the database."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from afterslip_service import clock
from afterslip_service.db.tables import inversions, jobs
from afterslip_service.engine.states import JobState
from afterslip_service.errors import MissingError


@dataclass(frozen=True, slots=True)
class Inversion:
    """An inversion, with the state of its job."""

    id: str
    campaign_id: str
    job_id: str
    name: str
    owner: str | None
    state: JobState
    request: dict[str, Any]
    summary: dict[str, Any] | None
    created_at: datetime
    error_class: str | None
    error_message: str | None


def create(
    connection: Connection,
    *,
    identity: str,
    campaign: str,
    job: str,
    name: str,
    request: dict[str, Any],
    owner: str | None = None,
) -> None:
    """Write an inversion whose job is written already."""
    connection.execute(
        inversions.insert().values(
            id=identity,
            campaign_id=campaign,
            job_id=job,
            name=name,
            owner=owner,
            request=request,
            created_at=clock.now(),
        )
    )


def get(connection: Connection, identity: str) -> Inversion:
    """Return an inversion.

    Raises
    ------
    MissingError
        If there is none of that id.
    """
    found = _select(connection, inversions.c.id == identity)
    if not found:
        raise MissingError("inversion", identity)
    return found[0]


def of_job(connection: Connection, job: str) -> Inversion:
    """Return the inversion that a job computes."""
    return _select(connection, inversions.c.job_id == job)[0]


def page(
    connection: Connection, *, before: str | None, limit: int, campaign: str | None
) -> list[Inversion]:
    """Return inversions, newest first, from the one after ``before``."""
    condition: sa.ColumnElement[bool] = sa.true()
    if before is not None:
        condition = sa.and_(condition, inversions.c.id < before)
    if campaign is not None:
        condition = sa.and_(condition, inversions.c.campaign_id == campaign)
    return _select(connection, condition, limit)


def ids(connection: Connection, campaigns: Sequence[str]) -> dict[str, list[str]]:
    """Return the ids of inversions by campaign, oldest first."""
    out: dict[str, list[str]] = {campaign: [] for campaign in campaigns}
    query = (
        sa.select(inversions.c.campaign_id, inversions.c.id)
        .where(inversions.c.campaign_id.in_(campaigns))
        .order_by(inversions.c.id)
    )
    for campaign, identity in connection.execute(query):
        out[campaign].append(identity)
    return out


def count(connection: Connection, campaign: str) -> int:
    """Return the number of inversions of a campaign."""
    query = sa.select(sa.func.count()).where(inversions.c.campaign_id == campaign)
    return connection.execute(query).scalar_one()


def set_summary(connection: Connection, identity: str, summary: dict[str, Any]) -> None:
    """Keep the figures of a finished inversion."""
    connection.execute(
        inversions.update().where(inversions.c.id == identity).values(summary=summary)
    )


def _select(
    connection: Connection, condition: Any, limit: int | None = None
) -> list[Inversion]:
    query = (
        sa.select(inversions, jobs.c.state, jobs.c.error_class, jobs.c.error_message)
        .join(jobs, jobs.c.id == inversions.c.job_id)
        .where(condition)
        .order_by(inversions.c.id.desc())
        .limit(limit)
    )
    return [_inversion(row) for row in connection.execute(query)]


def _inversion(row: sa.Row[Any]) -> Inversion:
    return Inversion(
        id=row.id,
        campaign_id=row.campaign_id,
        job_id=row.job_id,
        name=row.name,
        owner=row.owner,
        state=JobState(row.state),
        request=row.request,
        summary=row.summary,
        created_at=row.created_at,
        error_class=row.error_class,
        error_message=row.error_message,
    )
