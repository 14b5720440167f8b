"""Idempotency keys: the answer is remembered in the transaction of its effect."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.dialects import postgresql, sqlite

from afterslip_service import clock
from afterslip_service.db.tables import idempotency
from afterslip_service.errors import KeyReusedError


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer given before."""

    status: int
    body: Any


def reserve(
    connection: Connection, key: str, route: str, request: str
) -> Answer | None:
    """Reserve a key for a request; return the answer if it was given before.

    A second request with the same key waits here until the first commits.

    Raises
    ------
    KeyReusedError
        If the key came before with another request.
    """
    dialect = sqlite if connection.dialect.name == "sqlite" else postgresql
    made = connection.execute(
        dialect.insert(idempotency)
        .values(key=key, route=route, request=request, created_at=clock.now())
        .on_conflict_do_nothing()
        .returning(idempotency.c.key)
    ).first()
    if made is not None:
        return None
    row = connection.execute(
        sa.select(idempotency).where(
            idempotency.c.key == key, idempotency.c.route == route
        )
    ).one()
    if row.request != request:
        raise KeyReusedError(
            f"the Idempotency-Key {key!r} was used before for another request; "
            "send a new key with a new request"
        )
    return Answer(row.status, row.body)


def remember(
    connection: Connection, key: str, route: str, status: int, body: Any
) -> None:
    """Keep the answer to a key that was reserved in this transaction."""
    connection.execute(
        idempotency.update()
        .where(idempotency.c.key == key, idempotency.c.route == route)
        .values(status=status, body=body)
    )


def prune(connection: Connection, before: datetime) -> int:
    """Forget the keys that are older than ``before``."""
    return connection.execute(
        idempotency.delete().where(idempotency.c.created_at < before)
    ).rowcount
