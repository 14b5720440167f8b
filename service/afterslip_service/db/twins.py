"""Groups whose unit sources another campaign is solving at this moment.

They are put off: when the other group is accepted, theirs is copied and not solved.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from afterslip_service.db.jobs import LIVE, set_begin
from afterslip_service.db.tables import jobs, sources
from afterslip_service.engine.states import JobKind

Row = sa.Row[Any]
# how long until somebody looks again; short beside any solve worth waiting for
DELAY = timedelta(seconds=2)
# in a group's payload: it is to be solved, whatever other campaigns have stored
AGAIN = "again"


def put_off(
    connection: Connection, found: dict[str, list[Row]], now: datetime
) -> dict[str, list[Row]]:
    """Take groups out of what may be claimed that are under way elsewhere.

    Parameters
    ----------
    found : the next jobs by campaign, locked.
    """
    wanted = [(row, _solved(row.payload)) for row in _groups(found)]
    under_way = _under_way(connection)
    if not wanted or len({r.campaign_id for r, _ in wanted} | set(under_way)) < 2:
        return found
    places = {**under_way}
    for row, positions in wanted:
        places[row.campaign_id] = places.get(row.campaign_id, set()) | positions
    keys = _keys(connection, places)
    busy = {
        keys[place]: place[0]
        for place in ((c, p) for c, own in under_way.items() for p in own)
        if place in keys
    }
    late = set()
    for row, positions in wanted:
        own = [(row.campaign_id, position) for position in positions]
        mine = [keys[place] for place in own if place in keys]
        if any(busy.get(key, row.campaign_id) != row.campaign_id for key in mine):
            late.add(row.id)
        else:
            busy |= dict.fromkeys(mine, row.campaign_id)
    if not late:
        return found
    set_begin(connection, late, now + DELAY)
    return {c: [row for row in rows if row.id not in late] for c, rows in found.items()}


def _groups(found: dict[str, list[Row]]) -> Iterable[Row]:
    for rows in found.values():
        for row in rows:
            if row.kind == JobKind.GROUP and not row.payload.get(AGAIN):
                yield row


def _solved(payload: dict[str, Any]) -> set[int]:
    """Return the positions of the sources that a group does not copy."""
    taken = payload.get("taken") or {}
    return {p for p in payload.get("sources", []) if str(p) not in taken}


def _under_way(connection: Connection) -> dict[str, set[int]]:
    """Return the positions of the sources that are being solved, by campaign."""
    query = sa.select(jobs.c.campaign_id, jobs.c.payload).where(
        jobs.c.state.in_(LIVE), jobs.c.kind == JobKind.GROUP
    )
    out: dict[str, set[int]] = {}
    for row in connection.execute(query):
        out.setdefault(row.campaign_id, set()).update(_solved(row.payload))
    return out


def _keys(
    connection: Connection, places: dict[str, set[int]]
) -> dict[tuple[str, int], str]:
    """Return the keys of sources by campaign and position."""
    positions = sorted(set().union(*places.values()))
    query = sa.select(sources.c.campaign_id, sources.c.position, sources.c.key).where(
        sources.c.campaign_id.in_(list(places)), sources.c.position.in_(positions)
    )
    return {
        (row.campaign_id, row.position): row.key
        for row in connection.execute(query)
        if row.position in places[row.campaign_id]
    }
