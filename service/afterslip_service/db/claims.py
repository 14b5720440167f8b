"""Claims: the next jobs, by priority, then in turns between users and campaigns."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from afterslip_service import clock
from afterslip_service.db import awaited, queue, twins
from afterslip_service.db.jobs import LIVE, Job, move_all, of_row
from afterslip_service.db.tables import attempts, campaigns, jobs, shares
from afterslip_service.engine.states import AttemptState, JobState


@dataclass(frozen=True, slots=True)
class Claim:
    """A job that was claimed, with the token of its new attempt."""

    job: Job
    token: str
    number: int
    physics: str
    canonical: dict[str, Any]


@dataclass(slots=True)
class _User:
    """A user with work that may start, and how much more of it at this time."""

    name: str
    priority: int
    quota_left: int


def claim(
    connection: Connection, dispatcher: str, most: int = 1, limit: int | None = None
) -> list[Claim]:
    """Take the next jobs that may run, and open an attempt for each.

    Higher priorities come first; among equals users take turns, and so do the
    campaigns of a user. A call may return fewer than there are: ask again until it
    returns none. Rows that another transaction holds are passed by.

    Parameters
    ----------
    most : jobs to claim at most.
    limit : jobs of one user that may be under way at a time; None: any number.
    """
    now = clock.now()
    users = _users(connection, now, limit)
    if not users:
        return []
    level = max(user.priority for user in users)
    users = [user for user in users if user.priority == level][:most]
    lines = _lines(connection, users, level, now, -(-most // len(users)))
    quota_left = {user.name: user.quota_left for user in users}
    return _open(connection, lines, dispatcher, now, most, quota_left)


def _users(connection: Connection, now: datetime, limit: int | None) -> list[_User]:
    """Return the users with work that may start, served longest ago first."""
    ready = campaigns.c.wake_at <= now
    top = sa.select(sa.func.max(campaigns.c.priority))
    own = top.where(campaigns.c.owner == shares.c.owner, ready).correlate(shares)
    rows = connection.execute(
        sa.select(shares.c.owner, own.scalar_subquery()).order_by(
            shares.c.turn, shares.c.owner
        )
    )
    busy = {} if limit is None else _busy(connection)
    found = []
    for name, priority in rows.all():
        if name == queue.NOBODY:
            nobody = top.where(campaigns.c.owner.is_(None), ready)
            priority = connection.execute(nobody).scalar()
        # nobody in particular is not limited
        quota_left = 2**31 if limit is None or not name else limit - busy.get(name, 0)
        if priority is not None and quota_left > 0:
            found.append(_User(name, priority, quota_left))
    return found


def _busy(connection: Connection) -> dict[str, int]:
    """Return how many jobs of each user are under way."""
    query = (
        sa.select(campaigns.c.owner, sa.func.count().label("n"))
        .join(jobs, jobs.c.campaign_id == campaigns.c.id)
        .where(jobs.c.state.in_(LIVE), campaigns.c.owner.is_not(None))
        .group_by(campaigns.c.owner)
    )
    return {row.owner: row.n for row in connection.execute(query)}


def _lines(
    connection: Connection, users: list[_User], level: int, now: datetime, each: int
) -> list[list[sa.Row[Any]]]:
    """Lock the campaigns of users that are next, served longest ago first."""
    c = campaigns.c
    ready = (
        sa.select(c.id, c.owner, c.physics, c.canonical, c.turn)
        .where(c.priority == level, c.wake_at <= now)
        .order_by(c.turn, c.id)
        .limit(each)
        .with_for_update(skip_locked=True)
    )
    own = [
        ready.where(c.owner.is_(None) if name == queue.NOBODY else c.owner == name)
        for name in (user.name for user in users)
    ]
    lines: dict[str, list[sa.Row[Any]]] = {user.name: [] for user in users}
    # one question for all of them; each line has a limit and locks of its own
    for row in connection.execute(
        sa.union_all(*(sa.select(line.subquery()) for line in own))
    ):
        lines[row.owner or queue.NOBODY].append(row)
    return [sorted(line, key=lambda row: (row.turn, row.id)) for line in lines.values()]


def _in_turns(lines: Iterable[deque[Any]]) -> Iterator[Any]:
    """Yield one of each line, then the second of each, and so on."""
    waiting = [line for line in lines if line]
    while waiting:
        for line in waiting:
            yield line.popleft()
        waiting = [line for line in waiting if line]


def _open(
    connection: Connection,
    lines: list[list[sa.Row[Any]]],
    dispatcher: str,
    now: datetime,
    most: int,
    quota_left: dict[str, int],
) -> list[Claim]:
    """Claim jobs of each user's campaigns in turns, and record whose turn it was."""
    turn = queue.last_turn(connection)
    chosen = [campaign for line in lines for campaign in line]
    if not chosen:
        return []
    each = -(-most // len(lines))
    deep = max(-(-each // len(line)) for line in lines if line)
    found = twins.put_off(connection, _next_jobs(connection, chosen, now, deep), now)
    found = awaited.put_off(connection, found, now)
    users = [
        deque(_in_turns([deque((c, row) for row in found[c.id]) for c in line]))
        for line in lines
    ]
    claims: list[Claim] = []
    turns: dict[str, tuple[str, int]] = {}
    for campaign, row in _in_turns(users):
        owner, job = campaign.owner or queue.NOBODY, of_row(row)
        if len(claims) < most and quota_left[owner] > 0:
            quota_left[owner] -= 1
            turn += 1
            turns[campaign.id] = (owner, turn)
            known = (campaign.physics, campaign.canonical)
            claims.append(Claim(job, clock.new_id(), job.attempts + 1, *known))
    if not claims:
        # their jobs are locked by others or put off, or the queue was wrong about them
        queue.requeue(connection, [campaign.id for campaign in chosen])
        return []
    connection.execute(
        attempts.insert(),
        [
            {
                "token": claim.token,
                "job_id": claim.job.id,
                "number": claim.number,
                "state": AttemptState.QUEUED,
                "dispatcher": dispatcher,
                "queued_at": now,
                "seen_at": now,
            }
            for claim in claims
        ],
    )
    move_all(
        connection,
        [
            (claim.job, {"token": claim.token, "attempts": claim.number})
            for claim in claims
        ],
        JobState.QUEUED,
        error_class=None,
        error_message=None,
    )
    _write_turns(connection, turns)
    return claims


def _next_jobs(
    connection: Connection, chosen: Sequence[sa.Row[Any]], now: datetime, most: int
) -> dict[str, list[sa.Row[Any]]]:
    """Lock and return the next jobs of campaigns that are locked already.

    Each row is read once more under its own lock, so that what is claimed waits
    also where somebody moved it without a lock on its campaign. Rows that another
    transaction holds are passed by. See `queue.wake_at` for the order of kinds.
    """
    found: dict[str, list[sa.Row[Any]]] = {campaign.id: [] for campaign in chosen}
    may = sa.and_(
        jobs.c.campaign_id == campaigns.c.id,
        jobs.c.kind == queue.kind(),
        jobs.c.state == JobState.WAITING,
        jobs.c.not_before <= now,
    )
    order = (jobs.c.not_before, jobs.c.ordinal)
    if most == 1:
        first = sa.select(jobs.c.id).where(may).order_by(*order).limit(1)
        firsts = sa.select(first.correlate(campaigns).scalar_subquery()).where(
            campaigns.c.id.in_(list(found))
        )
        ids = [
            identity for identity in connection.execute(firsts).scalars() if identity
        ]
        query = sa.select(jobs).where(
            jobs.c.id.in_(ids), jobs.c.state == JobState.WAITING
        )
        locked = query.order_by(jobs.c.id).with_for_update(skip_locked=True)
        for row in connection.execute(locked):
            found[row.campaign_id].append(row)
        return found
    for campaign in chosen:
        whole = sa.select(jobs).join(campaigns, may).order_by(*order).limit(most)
        query = whole.where(campaigns.c.id == campaign.id)
        query = query.with_for_update(of=jobs, skip_locked=True)
        found[campaign.id] = list(connection.execute(query))
    return found


def _write_turns(connection: Connection, turns: dict[str, tuple[str, int]]) -> None:
    """Write down whose turn it was, and when the next job may start now."""
    connection.execute(
        campaigns.update()
        .where(campaigns.c.id == sa.bindparam("campaign"))
        .values(
            turn=sa.bindparam("number"),
            wake_at=queue.wake_at(),
            updated_at=clock.now(),
        ),
        [{"campaign": c, "number": n} for c, (_, n) in turns.items()],
    )
    newest = dict(sorted(turns.values()))
    connection.execute(
        shares.update()
        .where(shares.c.owner == sa.bindparam("user"))
        .values(turn=sa.bindparam("number")),
        [{"user": user, "number": number} for user, number in newest.items()],
    )
