"""Which physics a campaign asks for, and what a source is good for in its terms.

Revision 0005, after 0004.

Rows are rewritten by what they hold and not one by one: sources share a few
qualities. Numbers pass through Python, because SQLite writes fewer digits into JSON
than a number has.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

FIRST = "viscoelastic"
# what the first physics says of a source, in columns of their own until now
QUALITY = ("until", "tolerance", "time_tolerance")
KINDS = ("greens", "group")

campaigns = sa.table(
    "campaigns",
    sa.column("id", sa.String),
    sa.column("physics", sa.String),
    sa.column("deleted_at", sa.DateTime),
)
jobs = sa.table(
    "jobs",
    sa.column("id", sa.String),
    sa.column("kind", sa.String),
    sa.column("state", sa.String),
    sa.column("payload", sa.JSON),
)
events = sa.table(
    "events",
    sa.column("id", sa.BigInteger),
    sa.column("kind", sa.String),
    sa.column("data", sa.JSON),
)
sources = sa.table(
    "sources",
    sa.column("campaign_id", sa.String),
    sa.column("quality", sa.JSON),
    *(sa.column(name, sa.Float) for name in QUALITY),
)


def upgrade() -> None:
    # columns that SQLite adds and drops in place, which takes a default: a copied
    # table would be dropped under the foreign keys that point to it
    op.add_column(
        "campaigns",
        sa.Column(
            "physics", sa.String(length=40), nullable=False, server_default=FIRST
        ),
    )
    empty = sa.text("'{}'")
    op.add_column(
        "sources", sa.Column("quality", sa.JSON(), nullable=False, server_default=empty)
    )
    connection = op.get_bind()
    columns = [sources.c[name] for name in QUALITY]
    for row in connection.execute(sa.select(*columns).distinct()).all():
        same = [column == value for column, value in zip(columns, row, strict=True)]
        quality = dict(zip(QUALITY, row, strict=True))
        connection.execute(sources.update().where(*same).values(quality=quality))
    for name in QUALITY:
        op.drop_column("sources", name)
    _rename(connection, *KINDS)
    _rewrite_origins(connection, _nested)


def downgrade() -> None:
    connection = op.get_bind()
    _refuse_others(connection)
    for name in QUALITY:
        zero = sa.text("0")
        op.add_column(
            "sources", sa.Column(name, sa.Float(), nullable=False, server_default=zero)
        )
    # of deleted campaigns only: the release before could not compare them
    others = sa.select(campaigns.c.id).where(campaigns.c.physics != FIRST)
    connection.execute(sources.delete().where(sources.c.campaign_id.in_(others)))
    as_text = sa.cast(sources.c.quality, sa.Text)
    for text in connection.execute(sa.select(as_text).distinct()).scalars().all():
        values = {name: json.loads(text)[name] for name in QUALITY}
        connection.execute(sources.update().where(as_text == text).values(**values))
    op.drop_column("sources", "quality")
    _rename(connection, *reversed(KINDS))
    _rewrite_origins(connection, _flat)
    op.drop_column("campaigns", "physics")


def _rename(connection: sa.Connection, old: str, new: str) -> None:
    """Rename a kind of jobs, also in the events that say which of them were damaged."""
    connection.execute(jobs.update().where(jobs.c.kind == old).values(kind=new))
    damaged = sa.select(events.c.id, events.c.data).where(
        events.c.kind == "store.damaged"
    )
    for row in connection.execute(damaged).all():
        if row.data.get("kind") == old:
            data = {**row.data, "kind": new}
            connection.execute(
                events.update().where(events.c.id == row.id).values(data=data)
            )


def _refuse_others(connection: sa.Connection) -> None:
    query = sa.select(campaigns.c.id, campaigns.c.physics).where(
        campaigns.c.physics != FIRST, campaigns.c.deleted_at.is_(None)
    )
    found = [f"{row.id} ({row.physics})" for row in connection.execute(query)]
    if found:
        raise ValueError(
            f"the release before knows no physics but {FIRST}: delete the campaigns "
            f"{', '.join(found)} first, or restore the dump that was made before the "
            "upgrade"
        )


def _rewrite_origins(
    connection: sa.Connection, change: Callable[[dict[str, Any]], dict[str, Any]]
) -> None:
    """Change how groups say where some of their sources are stored already."""
    query = sa.select(jobs.c.id, jobs.c.payload).where(
        jobs.c.kind.in_(KINDS), sa.cast(jobs.c.payload, sa.Text).like('%"taken"%')
    )
    for row in connection.execute(query).all():
        taken = {place: change(o) for place, o in row.payload["taken"].items()}
        payload = {**row.payload, "taken": taken}
        connection.execute(
            jobs.update().where(jobs.c.id == row.id).values(payload=payload)
        )


def _nested(origin: dict[str, Any]) -> dict[str, Any]:
    rest = {name: value for name, value in origin.items() if name not in QUALITY}
    return {**rest, "quality": {name: origin[name] for name in QUALITY}}


def _flat(origin: dict[str, Any]) -> dict[str, Any]:
    rest = {name: value for name, value in origin.items() if name != "quality"}
    return {**rest, **origin["quality"]}
