"""Jobs: claims, receipts and the moves between states.

Every transaction that changes jobs locks its campaign first, so that the API and
the dispatcher never wait for each other crosswise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from afterslip_service import clock
from afterslip_service.db import events
from afterslip_service.db.tables import attempts, campaigns, inversions, jobs
from afterslip_service.engine.states import (
    AttemptState,
    CampaignState,
    JobKind,
    JobState,
    sources_of,
)

Row = sa.Row[Any]


@dataclass(frozen=True, slots=True)
class Job:
    """One piece of work: the model, a group of four lanes, or an inversion."""

    id: str
    campaign_id: str
    kind: JobKind
    index: int
    state: JobState
    payload: dict[str, Any]
    attempts: int
    token: str | None
    failures: dict[str, int]
    created_at: datetime
    updated_at: datetime
    error_class: str | None
    error_message: str | None


@dataclass(frozen=True, slots=True)
class Claim:
    """A job that was claimed, with the token of its new attempt."""

    job: Job
    token: str
    number: int
    canonical: dict[str, Any]


@dataclass(frozen=True, slots=True)
class NewJob:
    """A job to be written."""

    kind: JobKind
    index: int
    payload: dict[str, Any] = field(default_factory=dict)


def create(connection: Connection, campaign: str, new: Sequence[NewJob]) -> list[str]:
    """Write jobs in state ``waiting`` and return their ids.

    A job that is there already (same campaign, kind and index) is left alone.
    """
    now = clock.now()
    query = sa.select(jobs.c.kind, jobs.c.ordinal, jobs.c.id).where(
        jobs.c.campaign_id == campaign
    )
    known = {(row.kind, row.ordinal): row.id for row in connection.execute(query)}
    rows = [
        {
            "id": known.get((job.kind, job.index)) or clock.new_id(),
            "campaign_id": campaign,
            "kind": job.kind,
            "ordinal": job.index,
            "state": JobState.WAITING,
            "payload": job.payload,
            "attempts": 0,
            "failures": {},
            "not_before": now,
            "created_at": now,
            "updated_at": now,
        }
        for job in new
    ]
    fresh = [row for row in rows if (row["kind"], row["ordinal"]) not in known]
    if fresh:
        connection.execute(jobs.insert(), fresh)
    return [str(row["id"]) for row in rows]


def claim(connection: Connection, dispatcher: str) -> Claim | None:
    """Take the next job that may run, and open an attempt for it.

    The campaign that was served longest ago comes first. Groups exist only once
    the model is accepted; inversions wait until the Green's functions are closed.
    """
    campaign = _next_campaign(connection)
    if campaign is None:
        return None
    query = (
        sa.select(jobs)
        .where(jobs.c.campaign_id == campaign.id, _may_start())
        .order_by(jobs.c.ordinal)
        .limit(1)
        .with_for_update(skip_locked=True)
    )
    if campaign.finished_at is None:
        query = query.where(jobs.c.kind != JobKind.INVERSION)
    row = connection.execute(query).one_or_none()
    if row is None:
        return None
    job, token, now = _job(row), clock.new_id(), clock.now()
    number = job.attempts + 1
    connection.execute(
        campaigns.update().where(campaigns.c.id == campaign.id).values(served_at=now)
    )
    connection.execute(
        attempts.insert().values(
            token=token,
            job_id=job.id,
            number=number,
            state=AttemptState.QUEUED,
            dispatcher=dispatcher,
            queued_at=now,
            seen_at=now,
        )
    )
    move(
        connection,
        job,
        JobState.QUEUED,
        token=token,
        attempts=number,
        error_class=None,
        error_message=None,
    )
    return Claim(job, token, number, campaign.canonical)


def _may_start() -> sa.ColumnElement[bool]:
    return sa.and_(jobs.c.state == JobState.WAITING, jobs.c.not_before <= clock.now())


def _next_campaign(connection: Connection) -> Any:
    """Lock the campaign that is to be served next."""
    building = campaigns.c.state.in_(
        [CampaignState.WAITING, CampaignState.BUILDING, CampaignState.RUNNING]
    )
    waits = (jobs.c.campaign_id == campaigns.c.id) & _may_start()
    inverts = jobs.c.kind == JobKind.INVERSION
    query = (
        sa.select(campaigns.c.id, campaigns.c.canonical, campaigns.c.finished_at)
        .where(
            sa.not_(campaigns.c.paused),
            sa.not_(campaigns.c.cancelling),
            sa.or_(
                sa.and_(building, sa.exists().where(waits, sa.not_(inverts))),
                sa.and_(
                    campaigns.c.finished_at.is_not(None),
                    sa.exists().where(waits, inverts),
                ),
            ),
        )
        .order_by(campaigns.c.served_at)
        .limit(1)
        .with_for_update(skip_locked=True)
    )
    return connection.execute(query).one_or_none()


def move(
    connection: Connection,
    job: Job,
    target: JobState,
    *,
    holder: str | None = None,
    **values: Any,
) -> bool:
    """Move a job by compare-and-set; False if it is not where it was thought to be.

    Parameters
    ----------
    holder : token of the attempt in whose name the move is made; the move is
        refused if another attempt holds the job by now.
    values : further columns to set.
    """
    query = jobs.update().where(
        jobs.c.id == job.id, jobs.c.state.in_(sources_of(target))
    )
    if holder is not None:
        query = query.where(jobs.c.token == holder)
    now = clock.now()
    done = connection.execute(query.values(state=target, updated_at=now, **values))
    if done.rowcount != 1:
        return False
    kind, data = _told(connection, job, target, values)
    if kind is not None:
        events.append(connection, job.campaign_id, kind, data)
    return True


def _told(
    connection: Connection, job: Job, target: JobState, values: dict[str, Any]
) -> tuple[str | None, dict[str, Any]]:
    """Return the event that tells about a move; the model's is ``model.built``."""
    data: dict[str, Any] = {"state": target, "index": job.index}
    if values.get("error_class"):
        data["error"] = {
            "class": values["error_class"],
            "message": values["error_message"],
        }
    if job.kind is JobKind.MODEL:
        return None, data
    if job.kind is JobKind.GREENS:
        return events.GROUP_STATE, data
    query = sa.select(inversions.c.id, inversions.c.name).where(
        inversions.c.job_id == job.id
    )
    row = connection.execute(query).one_or_none()
    if row is not None:
        data |= {"id": row.id, "name": row.name}
    return events.INVERSION_STATE, data


def by_token(connection: Connection, token: str) -> Job | None:
    """Return the job that an attempt belongs to."""
    query = sa.select(jobs).join(attempts, attempts.c.job_id == jobs.c.id)
    row = connection.execute(query.where(attempts.c.token == token)).one_or_none()
    return None if row is None else _job(row)


def get(connection: Connection, identity: str) -> Job:
    """Return a job by its id."""
    return _job(connection.execute(sa.select(jobs).where(jobs.c.id == identity)).one())


def of_campaign(
    connection: Connection,
    campaign: str,
    kind: JobKind,
    *,
    after: int = -1,
    limit: int | None = None,
    states: frozenset[JobState] | None = None,
) -> list[Job]:
    """Return the jobs of a kind, by index, from the one after ``after``."""
    query = sa.select(jobs).where(
        jobs.c.campaign_id == campaign, jobs.c.kind == kind, jobs.c.ordinal > after
    )
    if states is not None:
        query = query.where(jobs.c.state.in_(states))
    rows = connection.execute(query.order_by(jobs.c.ordinal).limit(limit))
    return [_job(row) for row in rows]


def stored(connection: Connection) -> list[Job]:
    """Return the jobs whose result is to be accepted.

    Where the store was full while a result was moved, it waits until somebody has
    freed space and resumed the campaign.
    """
    query = (
        sa.select(jobs)
        .join(campaigns, campaigns.c.id == jobs.c.campaign_id)
        .where(
            jobs.c.state == JobState.STORED,
            sa.or_(
                sa.not_(campaigns.c.paused),
                campaigns.c.error_class.is_distinct_from("store_full"),
            ),
        )
        .order_by(jobs.c.id)
    )
    return [_job(row) for row in connection.execute(query)]


def cancel_waiting(connection: Connection, campaign: str) -> int:
    """Cancel the campaign's jobs that nobody works on."""
    count = 0
    idle = frozenset({JobState.WAITING, JobState.FAILED})
    for kind in JobKind:
        for job in of_campaign(connection, campaign, kind, states=idle):
            count += move(connection, job, JobState.CANCELLED)
    return count


def reset_failed(connection: Connection, campaign: str) -> int:
    """Put the campaign's failed jobs back in the queue, their count at zero."""
    count = 0
    failed = frozenset({JobState.FAILED})
    for kind in JobKind:
        for job in of_campaign(connection, campaign, kind, states=failed):
            count += move(
                connection,
                job,
                JobState.WAITING,
                failures={},
                not_before=clock.now(),
                token=None,
                error_class=None,
                error_message=None,
            )
    return count


def _job(row: Row) -> Job:
    return Job(
        id=row.id,
        campaign_id=row.campaign_id,
        kind=JobKind(row.kind),
        index=row.ordinal,
        state=JobState(row.state),
        payload=row.payload,
        attempts=row.attempts,
        token=row.token,
        failures=row.failures,
        created_at=row.created_at,
        updated_at=row.updated_at,
        error_class=row.error_class,
        error_message=row.error_message,
    )
