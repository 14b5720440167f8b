"""Campaigns in other earths, and the inversions that wait for them."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from afterslip.error_class import ErrorClass
from afterslip_service.db.jobs import move_all, of_row, set_begin
from afterslip_service.db.tables import campaigns
from afterslip_service.engine.states import CampaignState, JobKind, JobState

Row = sa.Row[Any]
# how long until somebody looks again; short beside the campaigns that are waited for
DELAY = timedelta(seconds=2)
ENDED = frozenset({CampaignState.FAILED, CampaignState.CANCELLED})


def there(connection: Connection, digest: str, owner: str | None) -> str | None:
    """Return the newest campaign of a content and owner that is not given up."""
    c = campaigns.c
    query = sa.select(c.id).where(
        c.digest == digest,
        c.owner.is_(None) if owner is None else c.owner == owner,
        c.deleted_at.is_(None),
        sa.not_(c.cancelling),
        c.state.not_in(ENDED),
    )
    return connection.execute(query.order_by(c.id.desc()).limit(1)).scalar()


def put_off(
    connection: Connection, found: dict[str, list[Row]], now: datetime
) -> dict[str, list[Row]]:
    """Take inversions out of what may be claimed whose other earths are not solved.

    One whose other earth will not be solved fails, until somebody retries both.

    Parameters
    ----------
    found : the next jobs by campaign, locked.
    """
    wanted = {
        row.id: (row, names)
        for rows in found.values()
        for row in rows
        if row.kind == JobKind.INVERSION and (names := _named(row.payload))
    }
    if not wanted:
        return found
    states = _states(connection, {n for _, names in wanted.values() for n in names})
    held = set()
    for row, names in wanted.values():
        open_ = [n for n in names if states.get(n) is not CampaignState.COMPLETE]
        if not open_:
            continue
        held.add(row.id)
        lost = [n for n in open_ if states.get(n, CampaignState.CANCELLED) in ENDED]
        if lost:
            _fail(connection, row, lost[0], states.get(lost[0]))
        else:
            set_begin(connection, {row.id}, now + DELAY)
    return {c: [row for row in rows if row.id not in held] for c, rows in found.items()}


def still_open(connection: Connection, payload: dict[str, Any]) -> list[str]:
    """Return the campaigns named in an inversion's request that are not solved yet."""
    names = _named(payload)
    states = _states(connection, set(names)) if names else {}
    return [n for n in names if states.get(n) is not CampaignState.COMPLETE]


def _named(payload: dict[str, Any]) -> list[str]:
    """Return the campaigns in other earths that an inversion's request names."""
    groups = (payload.get("model_error") or {}).get("campaigns") or []
    return [identity for group in groups for identity in group]


def _states(
    connection: Connection, identities: Collection[str]
) -> dict[str, CampaignState]:
    query = sa.select(campaigns.c.id, campaigns.c.state).where(
        campaigns.c.id.in_(identities), campaigns.c.deleted_at.is_(None)
    )
    return {row.id: CampaignState(row.state) for row in connection.execute(query)}


def _fail(
    connection: Connection, row: Row, lost: str, state: CampaignState | None
) -> None:
    what = "was deleted" if state is None else f"is {state.value}"
    move_all(
        connection,
        [(of_row(row), {})],
        JobState.FAILED,
        error_class=ErrorClass.BAD_INPUT.value,
        error_message=f"model_error.campaigns: {lost} {what}: it has no Green's "
        "functions to compare; retry that campaign, then this one",
    )
