"""What was computed, and for whom: sums over attempts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from afterslip_service.db.tables import attempts, campaigns, jobs, sources
from afterslip_service.engine.states import AttemptState, JobKind, JobState


@dataclass(frozen=True, slots=True)
class Usage:
    """What somebody's attempts took.

    Attributes
    ----------
    who : a campaign's id or a user's name; "" for campaigns that belong to nobody.
    seconds : s of workers, of all attempts that began; one GPU each where there are.
    lost : s of these in attempts whose result was not taken.
    solves, iterations : of accepted attempts.
    """

    who: str
    name: str
    attempts: int
    seconds: float
    lost: float
    solves: int
    iterations: int


def by_campaign(
    connection: Connection, owner: str | None, limit: int, after: str | None
) -> list[Usage]:
    """Sum up campaigns, the newest first.

    Parameters
    ----------
    owner : only campaigns of this user.
    limit : most campaigns. after : only those whose id comes before this one.
    """
    chosen = sa.select(campaigns.c.id).where(campaigns.c.deleted_at.is_(None))
    if owner is not None:
        chosen = chosen.where(campaigns.c.owner == owner)
    if after is not None:
        chosen = chosen.where(campaigns.c.id < after)
    chosen = chosen.order_by(campaigns.c.id.desc()).limit(limit)
    query = (
        _sums(connection, campaigns.c.id, sa.func.max(campaigns.c.name))
        .where(campaigns.c.id.in_(chosen))
        .order_by(campaigns.c.id.desc())
    )
    return [_usage(row) for row in connection.execute(query)]


def by_user(connection: Connection) -> list[Usage]:
    """Sum up users, deleted campaigns included, in the order of their names."""
    who = sa.func.coalesce(campaigns.c.owner, "")
    query = _sums(connection, who, sa.func.max(who)).order_by(who)
    return [_usage(row) for row in connection.execute(query)]


def of_campaign(connection: Connection, campaign: str) -> float:
    """Return the worker seconds of a campaign's attempts that have ended."""
    query = (
        sa.select(sa.func.sum(seconds(connection)))
        .select_from(attempts.join(jobs, jobs.c.id == attempts.c.job_id))
        .where(jobs.c.campaign_id == campaign)
    )
    return float(connection.execute(query).scalar() or 0.0)


def _sums(connection: Connection, who: Any, name: Any) -> Any:
    lasted = seconds(connection)
    taken = attempts.c.state == "accepted"

    def of_stats(key: str) -> Any:
        value = attempts.c.stats[key].as_integer()
        return sa.func.coalesce(sa.func.sum(sa.case((taken, value), else_=0)), 0)

    whole = attempts.join(jobs, jobs.c.id == attempts.c.job_id).join(
        campaigns, campaigns.c.id == jobs.c.campaign_id
    )
    return (
        sa.select(
            who.label("who"),
            name.label("name"),
            sa.func.count().label("attempts"),
            sa.func.coalesce(sa.func.sum(lasted), 0.0).label("seconds"),
            sa.func.coalesce(
                sa.func.sum(sa.case((taken, 0.0), else_=lasted)), 0.0
            ).label("lost"),
            of_stats("solves").label("solves"),
            of_stats("iterations").label("iterations"),
        )
        .select_from(whole)
        .where(attempts.c.started_at.is_not(None))
        .group_by(who)
    )


def seconds(connection: Connection) -> Any:
    """Return the expression of how long an attempt took, s; 0 while it runs."""
    begin, end = attempts.c.started_at, attempts.c.finished_at
    lasted: Any
    if connection.dialect.name == "postgresql":
        lasted = sa.extract("epoch", end - begin)
    else:
        lasted = (sa.func.julianday(end) - sa.func.julianday(begin)) * 86400.0
    return sa.func.coalesce(sa.cast(lasted, sa.Float), 0.0)


def _usage(row: Any) -> Usage:
    return Usage(
        str(row.who),
        str(row.name),
        int(row.attempts),
        float(row.seconds),
        float(row.lost),
        int(row.solves),
        int(row.iterations),
    )


@dataclass(frozen=True, slots=True)
class Census:
    """How many there are of what, at one moment.

    Attributes
    ----------
    campaigns : by state. jobs : by kind and state. attempts : by state and class of
        error, "" without one.
    seconds, iterations : of accepted groups.
    retried : attempts after which their work was tried again.
    sources, reused : unit sources that are stored, and those of them that were
        copied from an earlier campaign.
    """

    campaigns: dict[str, int]
    jobs: dict[tuple[str, str], int]
    attempts: dict[tuple[str, str], int]
    groups: int
    seconds: float
    iterations: int
    retried: int
    sources: int
    reused: int


def census(connection: Connection) -> Census:
    """Count everything; some tens of milliseconds for 200,000 groups."""
    count = sa.func.count()
    error = sa.func.coalesce(attempts.c.error_class, "")
    iterations = attempts.c.stats["iterations"].as_integer()
    solved = (
        sa.select(
            count,
            sa.func.coalesce(sa.func.sum(seconds(connection)), 0.0),
            sa.func.coalesce(sa.func.sum(iterations), 0),
        )
        .select_from(attempts.join(jobs, jobs.c.token == attempts.c.token))
        .where(jobs.c.kind == JobKind.GROUP, jobs.c.state == JobState.ACCEPTED)
    )
    groups, lasted, total = connection.execute(solved).one()
    states = sa.select(campaigns.c.state, count).where(campaigns.c.deleted_at.is_(None))
    states = states.group_by(campaigns.c.state)
    kinds = sa.select(jobs.c.kind, jobs.c.state, count)
    kinds = kinds.group_by(jobs.c.kind, jobs.c.state)
    ends = sa.select(attempts.c.state, error, count)
    ends = ends.group_by(attempts.c.state, error)
    return Census(
        {str(s): int(n) for s, n in connection.execute(states)},
        {(str(k), str(s)): int(n) for k, s, n in connection.execute(kinds)},
        {(str(s), str(e)): int(n) for s, e, n in connection.execute(ends)},
        int(groups),
        float(lasted),
        int(total),
        int(connection.execute(_retried()).scalar_one()),
        *_copied(connection),
    )


def _retried() -> Any:
    """Count attempts that failed or were lost, and were followed by another."""
    ended = attempts.c.state.in_([AttemptState.FAILED, AttemptState.LOST])
    whole = attempts.join(jobs, jobs.c.id == attempts.c.job_id)
    query = sa.select(sa.func.count()).select_from(whole)
    return query.where(ended, attempts.c.number < jobs.c.attempts)


def _copied(connection: Connection) -> tuple[int, int]:
    """Return how many unit sources are stored, and how many of them were copied."""
    query = sa.select(sa.func.count(), sa.func.count(sources.c.origin))
    stored = query.where(sources.c.token.is_not(None))
    every, copied = connection.execute(stored).one()
    return int(every), int(copied)
