"""What campaigns have taken here, to expect the same of the next one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from afterslip_service.db.tables import attempts, campaigns, jobs
from afterslip_service.engine.states import AttemptState, JobKind

NEWEST = 50


@dataclass(frozen=True, slots=True)
class Measured:
    """A campaign whose groups were solved here.

    Attributes
    ----------
    canonical : its spec.
    unknowns : of its model.
    group_s : s, of each of its last groups.
    model_s : s, of its model, None where it was there already.
    """

    id: str
    name: str
    canonical: dict[str, Any]
    unknowns: int
    group_s: tuple[float, ...]
    model_s: float | None


def newest(connection: Connection, physics: str) -> list[Measured]:
    """Return the newest campaigns of a physics that have solved groups."""
    c = campaigns.c
    query = (
        sa.select(c.id, c.name, c.canonical, c.model, c.recent)
        .where(c.physics == physics, c.deleted_at.is_(None), c.model.is_not(None))
        .order_by(c.id.desc())
        .limit(NEWEST)
    )
    rows = connection.execute(query).all()
    built = _models(connection, [row.id for row in rows])
    return [
        Measured(
            id=row.id,
            name=row.name,
            canonical=row.canonical,
            unknowns=int((row.model or {}).get("n_unknowns") or 0),
            group_s=tuple(row.recent or ()),
            model_s=built.get(row.id),
        )
        for row in rows
    ]


def step_s(connection: Connection, identities: list[str]) -> dict[str, float]:
    """Return how long a step of time has taken, s, by campaign; of all its groups.

    Only what marches through steps of fixed length counts them as iterations. Groups
    that found their runs stored took no step, and those that made them took several
    times as many: together they took what was made.
    """
    totals = dict.fromkeys(identities, (0.0, 0.0))
    for identity, stats in _accepted(connection, identities, JobKind.GROUP):
        if stats.get("seconds") is not None and stats.get("iterations") is not None:
            seconds, steps = totals[identity]
            seconds += float(stats["seconds"])
            totals[identity] = seconds, steps + float(stats["iterations"])
    return {key: seconds / steps for key, (seconds, steps) in totals.items() if steps}


def _models(connection: Connection, identities: list[str]) -> dict[str, float]:
    found = {}
    for identity, stats in _accepted(connection, identities, JobKind.MODEL):
        if stats.get("seconds") is not None and not stats.get("cached"):
            found[identity] = float(stats["seconds"])
    return found


def _accepted(
    connection: Connection, identities: list[str], kind: JobKind
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield campaign and statistics of each accepted attempt of a kind."""
    query = (
        sa.select(jobs.c.campaign_id, attempts.c.stats)
        .join(attempts, attempts.c.token == jobs.c.token)
        .where(
            jobs.c.campaign_id.in_(identities),
            jobs.c.kind == kind,
            attempts.c.state == AttemptState.ACCEPTED,
        )
    )
    for row in connection.execute(query):
        yield row.campaign_id, row.stats or {}
