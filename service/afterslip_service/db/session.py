"""Connections: short reads, and writers that queue instead of failing."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection, Engine, event
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from afterslip_service import clock
from afterslip_service.db import events, webhooks

# other packages pass connections on and hear of failures, but never import the library
__all__ = [
    "Connection",
    "DBAPIError",
    "Database",
    "PoolTimeoutError",
    "SQLAlchemyError",
    "moment",
    "normal_url",
    "shown_url",
]

BUSY_TIMEOUT_MS = 30_000
_WRITER = "afterslip_writer"


class Database:
    """A database by its URL; the same repositories run on SQLite and PostgreSQL.

    Parameters
    ----------
    url : SQLAlchemy URL (``sqlite:///path``, ``postgresql://...``) or a path,
        which means SQLite.
    """

    def __init__(self, url: str) -> None:
        self.url = normal_url(url)
        # tells our own wake-up calls from those of other processes
        self.mark = clock.new_id()
        self.is_sqlite = self.url.startswith("sqlite")
        self.engine = _sqlite(self.url) if self.is_sqlite else _postgres(self.url)

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Open a transaction that only reads."""
        with self.engine.connect() as connection, connection.begin():
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """Open a transaction that writes; commit it, or roll it back on error.

        SQLite takes the write lock at the start: a reader that turns writer
        half-way fails at once, without regard to the busy timeout.
        """
        pending: list[dict[str, Any]] = []
        options: dict[str, Any] = {_WRITER: True, events.PENDING: pending}
        with self.engine.connect() as bare:
            connection = bare.execution_options(**options)
            with connection.begin():
                yield connection
                if pending:
                    events.write(connection, pending)
                    webhooks.enqueue(connection, pending)
                    events.tell(connection, self.mark)

    def ping(self) -> None:
        """Ask the database for a one.

        Raises
        ------
        sqlalchemy.exc.SQLAlchemyError
            If it does not answer.
        """
        with self.read() as connection:
            connection.execute(sa.select(sa.literal(1)))

    def close(self) -> None:
        """Close every connection."""
        self.engine.dispose()


def normal_url(url: str) -> str:
    """Return the URL with our drivers; a bare path is a SQLite file."""
    if "://" not in url:
        return f"sqlite:///{Path(url).absolute()}"
    scheme, rest = url.split("://", 1)
    if scheme in {"postgres", "postgresql"}:
        return f"postgresql+psycopg://{rest}"
    return url


def shown_url(url: str) -> str:
    """Return the URL without its password, to be shown."""
    return sa.make_url(normal_url(url)).render_as_string(hide_password=True)


def moment(connection: Connection) -> datetime:
    """Return the database's own time, so that machines agree about leases."""
    if connection.dialect.name == "sqlite":
        return clock.now()
    query = sa.select(sa.func.clock_timestamp())
    value: datetime = connection.execute(query).scalar_one()
    return value


def _finite(value: Any) -> Any:
    """Return JSON content with null for what JSON cannot say."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value


def _dumps(value: Any) -> str:
    try:
        return json.dumps(value, allow_nan=False)
    except ValueError:
        # a residual may be NaN; PostgreSQL refuses a document that says so
        return json.dumps(_finite(value), allow_nan=False)


def _postgres(url: str) -> Engine:
    return sa.create_engine(
        url,
        pool_pre_ping=True,
        pool_size=10,
        max_overflow=20,
        json_serializer=_dumps,
    )


def _sqlite(url: str) -> Engine:
    engine = sa.create_engine(
        url,
        connect_args={"timeout": BUSY_TIMEOUT_MS / 1000, "check_same_thread": False},
        pool_size=20,
        max_overflow=30,
        json_serializer=_dumps,
    )

    @event.listens_for(engine, "connect")
    def _on_connect(raw: Any, _record: Any) -> None:
        # transactions are ours to begin: the driver's own would be deferred
        raw.isolation_level = None
        cursor = raw.cursor()
        cursor.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}")
        cursor.execute("PRAGMA journal_mode = WAL")
        cursor.execute("PRAGMA synchronous = NORMAL")
        cursor.execute("PRAGMA foreign_keys = ON")
        cursor.close()

    @event.listens_for(engine, "begin")
    def _on_begin(connection: Connection) -> None:
        writes = connection.get_execution_options().get(_WRITER, False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine
