"""Alembic's environment: the engine comes from the service."""

from __future__ import annotations

from typing import Any, Literal

import sqlalchemy as sa
from alembic import context
from sqlalchemy import Connection, Engine

from afterslip_service.db.session import Database
from afterslip_service.db.tables import metadata
from afterslip_service.settings import Settings

# two services that start at once must not both migrate
LOCK = 0x_AF7E_25_11


def _render(kind: str, value: Any, _context: Any) -> str | Literal[False]:
    """Write our column types into migrations as plain ones: those never change."""
    if kind == "type" and type(value).__module__.startswith("afterslip_service"):
        return "sa.DateTime(timezone=True)"
    return False


def _migrate(connection: Connection) -> None:
    context.configure(
        connection=connection,
        target_metadata=metadata,
        render_as_batch=True,
        render_item=_render,
        compare_type=True,
        # SQLite can, where its driver leaves transactions to us as here: a way that is
        # refused in the middle leaves everything as it was
        transactional_ddl=True,
    )
    with context.begin_transaction():
        if connection.dialect.name == "postgresql":
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(LOCK)))
        context.run_migrations()


def _engine() -> Engine:
    given: Engine | None = context.config.attributes.get("engine")
    return given or Database(Settings().database).engine


with _engine().connect() as _connection:
    # the lock is taken before the revision is read
    _migrate(_connection.execution_options(afterslip_writer=True))
    _connection.commit()
