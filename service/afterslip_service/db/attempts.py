"""Attempts: every try at a job is recorded, with what it did and why it ended."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from afterslip_service import clock
from afterslip_service.db.tables import attempts, jobs
from afterslip_service.engine.states import AttemptState

LIVE = frozenset({AttemptState.QUEUED, AttemptState.RUNNING})


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try at a job."""

    token: str
    job_id: str
    campaign_id: str
    number: int
    state: AttemptState
    dispatcher: str
    worker: str | None
    queued_at: datetime
    started_at: datetime | None
    seen_at: datetime
    finished_at: datetime | None
    error_class: str | None
    error_message: str | None
    stats: dict[str, Any] | None
    history: list[dict[str, Any]]
    manifest: dict[str, Any] | None
    log: str | None


def live(connection: Connection) -> list[Attempt]:
    """Return the attempts that somebody should be working on."""
    return _select(connection, attempts.c.state.in_(LIVE))


def workers_that_failed(
    connection: Connection, job: str, classes: Collection[str]
) -> list[str]:
    """Return the workers on which attempts at a job failed in some ways."""
    query = (
        sa.select(attempts.c.worker)
        .distinct()
        .where(
            attempts.c.job_id == job,
            attempts.c.error_class.in_(classes),
            attempts.c.worker.is_not(None),
        )
        .order_by(attempts.c.worker)
    )
    return list(connection.execute(query).scalars())


def stored_before(
    connection: Connection, tokens: Collection[str]
) -> dict[str, list[str]]:
    """Return, by each of some attempts, the others at its job that stored a result."""
    other = attempts.alias()
    query = sa.select(attempts.c.token, other.c.token.label("other")).where(
        attempts.c.token.in_(tokens),
        other.c.job_id == attempts.c.job_id,
        other.c.token != attempts.c.token,
        sa.func.length(sa.cast(other.c.manifest, sa.Text)) > len("null"),
    )
    found: dict[str, list[str]] = {}
    for row in connection.execute(query):
        found.setdefault(row.token, []).append(row.other)
    return found


def many(connection: Connection, tokens: Collection[str]) -> dict[str, Attempt]:
    """Return attempts by their tokens."""
    found = _select(connection, attempts.c.token.in_(tokens))
    return {attempt.token: attempt for attempt in found}


def accepted(connection: Connection, job_ids: Collection[str]) -> dict[str, str]:
    """Return the token of the accepted attempt of those jobs that have one."""
    query = sa.select(attempts.c.job_id, attempts.c.token).where(
        attempts.c.job_id.in_(job_ids), attempts.c.state == AttemptState.ACCEPTED
    )
    return {row.job_id: row.token for row in connection.execute(query)}


def accept(connection: Connection, tokens: Collection[str], job_ids: Any) -> None:
    """Mark stored attempts as accepted; those that they replace become replaced."""
    connection.execute(
        attempts.update()
        .where(
            attempts.c.job_id.in_(job_ids), attempts.c.state == AttemptState.ACCEPTED
        )
        .values(state=AttemptState.REPLACED)
    )
    connection.execute(
        attempts.update()
        .where(attempts.c.token.in_(tokens))
        .values(state=AttemptState.ACCEPTED)
    )


def update_all(connection: Connection, rows: Sequence[dict[str, Any]]) -> None:
    """Set the same columns of several attempts; each row names its ``token``."""
    if not rows:
        return
    names = [name for name in rows[0] if name != "token"]
    query = (
        attempts.update()
        .where(attempts.c.token == sa.bindparam("of_token"))
        .values({name: sa.bindparam(f"new_{name}") for name in names})
    )
    connection.execute(
        query,
        [
            {"of_token": row["token"]} | {f"new_{name}": row[name] for name in names}
            for row in rows
        ],
    )


def get(connection: Connection, token: str) -> Attempt | None:
    """Return an attempt by its token."""
    found = _select(connection, attempts.c.token == token)
    return found[0] if found else None


def began(connection: Connection, token: str) -> datetime:
    """Return when an attempt was claimed."""
    query = sa.select(attempts.c.queued_at).where(attempts.c.token == token)
    moment: datetime = connection.execute(query).scalar_one()
    return moment


def of_job(connection: Connection, job: str) -> list[Attempt]:
    """Return the attempts at a job, oldest first."""
    return _select(connection, attempts.c.job_id == job)


@dataclass(frozen=True, slots=True)
class Span:
    """When an attempt was made and how it ended, without what it did."""

    token: str
    kind: str
    index: int
    number: int
    state: AttemptState
    worker: str | None
    queued_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    error_class: str | None


def spans(
    connection: Connection,
    campaign: str,
    *,
    since: datetime | None,
    after: str | None,
    limit: int,
) -> list[Span]:
    """Return the attempts of a campaign by token, which sorts by time.

    Parameters
    ----------
    since : leaves out those that had ended before.
    after : token of the last one that is known.
    """
    a = attempts.c
    columns = (a.token, a.number, a.state, a.worker, a.queued_at, a.started_at)
    query = (
        sa.select(
            *columns,
            a.finished_at,
            a.error_class,
            jobs.c.kind,
            jobs.c.ordinal.label("index"),
        )
        .join(jobs, jobs.c.id == a.job_id)
        .where(jobs.c.campaign_id == campaign)
        .order_by(a.token)
        .limit(limit)
    )
    if after is not None:
        query = query.where(a.token > after)
    if since is not None:
        query = query.where(sa.or_(a.finished_at.is_(None), a.finished_at >= since))
    rows = [row._asdict() for row in connection.execute(query)]
    return [Span(**{**row, "state": AttemptState(row["state"])}) for row in rows]


def latest(connection: Connection, job_ids: Sequence[str]) -> dict[str, Attempt]:
    """Return the newest attempt at each of some jobs."""
    found = _select(connection, attempts.c.job_id.in_(job_ids))
    return {attempt.job_id: attempt for attempt in found}


def settled(
    connection: Connection, tokens: Sequence[str], before: datetime
) -> list[str]:
    """Return those of some attempts that ended before a time and are not needed."""
    needed = LIVE | {AttemptState.STORED}
    query = sa.select(attempts.c.token).where(
        attempts.c.token.in_(tokens),
        attempts.c.state.not_in(needed),
        attempts.c.finished_at < before,
    )
    return list(connection.execute(query).scalars())


def update(connection: Connection, token: str, **values: Any) -> None:
    """Set columns of an attempt."""
    connection.execute(
        attempts.update().where(attempts.c.token == token).values(**values)
    )


def finish(
    connection: Connection, token: str, state: AttemptState, **values: Any
) -> None:
    """Close an attempt."""
    update(connection, token, state=state, finished_at=clock.now(), **values)


def _select(connection: Connection, condition: Any) -> list[Attempt]:
    query = (
        sa.select(attempts, jobs.c.campaign_id)
        .join(jobs, jobs.c.id == attempts.c.job_id)
        .where(condition)
        .order_by(attempts.c.job_id, attempts.c.number)
    )
    return [_attempt(row) for row in connection.execute(query)]


def _attempt(row: sa.Row[Any]) -> Attempt:
    return Attempt(
        token=row.token,
        job_id=row.job_id,
        campaign_id=row.campaign_id,
        number=row.number,
        state=AttemptState(row.state),
        dispatcher=row.dispatcher,
        worker=row.worker,
        queued_at=row.queued_at,
        started_at=row.started_at,
        seen_at=row.seen_at,
        finished_at=row.finished_at,
        error_class=row.error_class,
        error_message=row.error_message,
        stats=row.stats,
        history=row.history or [],
        manifest=row.manifest,
        log=row.log,
    )
