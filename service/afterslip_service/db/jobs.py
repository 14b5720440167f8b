"""Jobs: claims, receipts and the moves between states.

Every transaction that changes jobs locks its campaign first, so that the API and
the dispatcher never wait for each other crosswise.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from afterslip.error_class import ErrorClass
from afterslip_service import clock
from afterslip_service.db import events, queue
from afterslip_service.db.tables import attempts, campaigns, inversions, jobs
from afterslip_service.engine.states import (
    JobKind,
    JobState,
    may_move,
    sources_of,
)

Row = sa.Row[Any]

# written into the query, so that the partial index on the same words is used
LIVE: sa.BindParameter[Any] = sa.bindparam(
    "live",
    value=[JobState.QUEUED.value, JobState.RUNNING.value, JobState.STORED.value],
    expanding=True,
    literal_execute=True,
)


@dataclass(frozen=True, slots=True)
class Job:
    """One piece of work: the model, a group of sources, or an inversion."""

    id: str
    campaign_id: str
    kind: JobKind
    index: int
    state: JobState
    payload: dict[str, Any]
    attempts: int
    token: str | None
    failures: dict[str, int]
    not_before: datetime
    created_at: datetime
    updated_at: datetime
    error_class: str | None
    error_message: str | None


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
        queue.requeue(connection, [campaign])
    return [str(row["id"]) for row in rows]


def move(
    connection: Connection,
    job: Job,
    target: JobState,
    *,
    holder: str | None = None,
    operator: bool = False,
    **values: Any,
) -> bool:
    """Move a job by compare-and-set; False if it is not where it was thought to be.

    Parameters
    ----------
    holder : token of the attempt in whose name the move is made; the move is
        refused if another attempt holds the job by now.
    operator : somebody asked for it, who may also leave final states.
    values : further columns to set.
    """
    query = jobs.update().where(
        jobs.c.id == job.id,
        jobs.c.state.in_(sources_of(target, operator=operator)),
    )
    if holder is not None:
        query = query.where(jobs.c.token == holder)
    now = clock.now()
    done = connection.execute(query.values(state=target, updated_at=now, **values))
    if done.rowcount != 1:
        return False
    _tell(connection, job, target, values)
    return True


def move_all(
    connection: Connection,
    moves: Sequence[tuple[Job, dict[str, Any]]],
    target: JobState,
    *,
    operator: bool = False,
    **common: Any,
) -> int:
    """Move jobs whose rows this transaction has locked; return how many moved.

    Parameters
    ----------
    moves : jobs, as they were read under the lock, each with columns to set; all
        set the same columns.
    common : columns that are set alike in all.
    """
    moves = [m for m in moves if may_move(m[0].state, target, operator=operator)]
    if not moves:
        return 0
    common |= {"state": target, "updated_at": clock.now()}
    if moves[0][1]:
        done = _move_each(connection, moves, common)
    else:
        done = _move_alike(connection, [job for job, _ in moves], common)
    for job, values in moves:
        _tell(connection, job, target, {**common, **values})
    return done


def _move_each(
    connection: Connection,
    moves: Sequence[tuple[Job, dict[str, Any]]],
    common: dict[str, Any],
) -> int:
    names = list(moves[0][1])
    query = (
        jobs.update()
        .where(jobs.c.id == sa.bindparam("job"), jobs.c.state == sa.bindparam("was"))
        .values(**common, **{name: sa.bindparam(f"new_{name}") for name in names})
    )
    rows = [
        {"job": job.id, "was": job.state}
        | {f"new_{name}": values[name] for name in names}
        for job, values in moves
    ]
    return connection.execute(query, rows).rowcount


def _move_alike(
    connection: Connection, found: Sequence[Job], common: dict[str, Any]
) -> int:
    """Move jobs that differ in nothing but where they stand, in one statement each."""
    by_state: dict[JobState, list[str]] = {}
    for job in found:
        by_state.setdefault(job.state, []).append(job.id)
    done = 0
    for state, ids in by_state.items():
        query = jobs.update().where(jobs.c.id.in_(ids), jobs.c.state == state)
        done += connection.execute(query.values(**common)).rowcount
    return done


def _tell(
    connection: Connection, job: Job, target: JobState, values: dict[str, Any]
) -> None:
    """Write the event of a move; the model's is ``model.built``."""
    if job.kind is JobKind.MODEL:
        return
    data: dict[str, Any] = {"state": target, "index": job.index}
    if values.get("error_class"):
        data["error"] = {
            "class": values["error_class"],
            "message": values["error_message"],
        }
    kind = events.GROUP_STATE
    if job.kind is JobKind.INVERSION:
        kind = events.INVERSION_STATE
        query = sa.select(inversions.c.id, inversions.c.name).where(
            inversions.c.job_id == job.id
        )
        row = connection.execute(query).one_or_none()
        if row is not None:
            data |= {"id": row.id, "name": row.name}
    events.append(connection, job.campaign_id, kind, data)


def set_begin(
    connection: Connection, identities: Collection[str], moment: datetime
) -> None:
    """Set when waiting jobs may begin."""
    connection.execute(
        jobs.update().where(jobs.c.id.in_(identities)).values(not_before=moment)
    )


def set_payload(connection: Connection, job: str, payload: dict[str, Any]) -> None:
    """Set what a job's next attempt gets."""
    connection.execute(jobs.update().where(jobs.c.id == job).values(payload=payload))


def by_token(connection: Connection, token: str) -> Job | None:
    """Return the job that an attempt belongs to."""
    return by_tokens(connection, [token]).get(token)


def by_tokens(
    connection: Connection, tokens: Collection[str], *, lock: bool = False
) -> dict[str, Job]:
    """Return the jobs that attempts belong to; with ``lock``, campaigns first."""
    query = (
        sa.select(attempts.c.token.label("tried"), jobs)
        .join(jobs, attempts.c.job_id == jobs.c.id)
        .where(attempts.c.token.in_(tokens))
        .order_by(jobs.c.campaign_id, jobs.c.id)
    )
    if lock:
        theirs = sa.select(jobs.c.campaign_id).join(
            attempts, attempts.c.job_id == jobs.c.id
        )
        lock_campaigns(connection, theirs.where(attempts.c.token.in_(tokens)))
        query = query.with_for_update(of=jobs)
    return {row.tried: of_row(row) for row in connection.execute(query)}


def lock_campaigns(
    connection: Connection, identities: Collection[str] | sa.Select[Any]
) -> None:
    """Lock campaigns in the order that all transactions keep to."""
    connection.execute(
        sa.select(campaigns.c.id)
        .where(campaigns.c.id.in_(identities))
        .order_by(campaigns.c.id)
        .with_for_update()
    ).all()


def get(connection: Connection, identity: str) -> Job:
    """Return a job by its id."""
    row = connection.execute(sa.select(jobs).where(jobs.c.id == identity)).one()
    return of_row(row)


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
    return [of_row(row) for row in rows]


def stored(connection: Connection, most: int = 200) -> list[Job]:
    """Return the jobs whose result is to be accepted.

    Where the store was full while a result was moved, it waits until somebody has
    freed space and resumed the campaign.
    """
    query = (
        sa.select(jobs)
        .join(campaigns, campaigns.c.id == jobs.c.campaign_id)
        .where(
            jobs.c.state.in_(LIVE),
            jobs.c.state == JobState.STORED,
            sa.or_(
                sa.not_(campaigns.c.paused),
                campaigns.c.error_class.is_distinct_from(ErrorClass.STORE_FULL),
            ),
        )
        .order_by(jobs.c.id)
        .limit(most)
    )
    return [of_row(row) for row in connection.execute(query)]


def live_tokens(connection: Connection, campaign: str) -> list[str]:
    """Return the attempts that are under way in a campaign."""
    query = sa.select(jobs.c.token).where(
        jobs.c.campaign_id == campaign,
        jobs.c.state.in_(LIVE),
        jobs.c.state != JobState.STORED,
        jobs.c.token.is_not(None),
    )
    return list(connection.execute(query).scalars())


def live_count(connection: Connection) -> int:
    """Return the number of jobs that are queued or run."""
    query = sa.select(sa.func.count()).where(
        jobs.c.state.in_(LIVE), jobs.c.state != JobState.STORED
    )
    return connection.execute(query).scalar_one()


def of_row(row: Row) -> Job:
    """Return a job from its row."""
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
        not_before=row.not_before,
        created_at=row.created_at,
        updated_at=row.updated_at,
        error_class=row.error_class,
        error_message=row.error_message,
    )
