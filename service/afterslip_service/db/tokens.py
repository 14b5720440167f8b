"""Tokens and the page's sessions in the database; never their secrets."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from afterslip_service import clock
from afterslip_service.db.tables import sessions, tokens
from afterslip_service.engine.access import Role
from afterslip_service.errors import MissingError

PREFIX = "afs_"
SECRET_BYTES = 32
TOUCH_EVERY = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class Token:
    """A token as the database knows it."""

    id: str
    name: str
    user: str
    role: Role
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None
    campaign: str | None = None

    def valid(self, now: datetime) -> bool:
        """Tell whether it opens anything."""
        return self.revoked_at is None and (
            self.expires_at is None or now < self.expires_at
        )


def digest(secret: str) -> str:
    """Return what is stored of a secret.

    A slow, salted hash protects words that people choose. These secrets are 256
    random bits: nobody finds one by trying, whatever the hash costs, so one SHA-256
    is as safe, can be looked up by an index, and costs a request nothing. Neither
    does the time of the look-up tell anything, because who tries secrets cannot
    choose how their digests begin.
    """
    return hashlib.sha256(secret.encode()).hexdigest()


def create(
    connection: Connection,
    *,
    name: str,
    user: str,
    role: Role,
    expires_at: datetime | None,
    campaign: str | None = None,
) -> tuple[Token, str]:
    """Write a new token; return it and its secret, which is shown this once.

    Parameters
    ----------
    campaign : the only one that it reads; None for all.
    """
    secret = PREFIX + secrets.token_urlsafe(SECRET_BYTES)
    identity = clock.new_id()
    connection.execute(
        tokens.insert().values(
            id=identity,
            name=name,
            user=user,
            role=role,
            campaign_id=campaign,
            hash=digest(secret),
            created_at=clock.now(),
            expires_at=expires_at,
        )
    )
    return get(connection, identity), secret


def get(connection: Connection, identity: str) -> Token:
    """Return a token.

    Raises
    ------
    MissingError
        If there is none of that id.
    """
    row = connection.execute(
        sa.select(tokens).where(tokens.c.id == identity)
    ).one_or_none()
    if row is None:
        raise MissingError("token", identity)
    return _token(row)


def page(
    connection: Connection, *, before: str | None, limit: int | None, user: str | None
) -> list[Token]:
    """Return tokens, newest first, all of them or those of a user."""
    query = sa.select(tokens).order_by(tokens.c.id.desc()).limit(limit)
    if before is not None:
        query = query.where(tokens.c.id < before)
    if user is not None:
        query = query.where(tokens.c.user == user)
    return [_token(row) for row in connection.execute(query)]


def revoke(connection: Connection, identity: str) -> None:
    """End a token and its sessions; a second time changes nothing."""
    connection.execute(
        tokens.update()
        .where(tokens.c.id == identity, tokens.c.revoked_at.is_(None))
        .values(revoked_at=clock.now())
    )
    connection.execute(sessions.delete().where(sessions.c.token_id == identity))


def of_secret(connection: Connection, secret: str) -> Token | None:
    """Return the valid token of a secret, None if it opens nothing."""
    row = connection.execute(
        sa.select(tokens).where(tokens.c.hash == digest(secret))
    ).one_or_none()
    return _valid(row, secret)


def of_session(connection: Connection, secret: str) -> Token | None:
    """Return the valid token behind a session, None if it opens nothing."""
    query = (
        sa.select(tokens, sessions.c.hash.label("session_hash"))
        .join(sessions, sessions.c.token_id == tokens.c.id)
        .where(sessions.c.hash == digest(secret), sessions.c.expires_at > clock.now())
    )
    row = connection.execute(query).one_or_none()
    return _valid(row, secret, "session_hash")


def _valid(row: sa.Row[Any] | None, secret: str, column: str = "hash") -> Token | None:
    if row is None:
        return None
    # the database has compared already, in its own way
    if not secrets.compare_digest(getattr(row, column), digest(secret)):
        return None
    token = _token(row)
    return token if token.valid(clock.now()) else None


def usable(connection: Connection, identity: str) -> bool:
    """Tell whether a token still opens anything."""
    return get(connection, identity).valid(clock.now())


def stale(token: Token) -> bool:
    """Tell whether the last use is worth writing down anew."""
    return token.last_used_at is None or clock.now() - token.last_used_at > TOUCH_EVERY


def touch(connection: Connection, identity: str) -> None:
    """Write down that a token was used."""
    connection.execute(
        tokens.update().where(tokens.c.id == identity).values(last_used_at=clock.now())
    )


def begin_session(
    connection: Connection, token: Token, seconds: float
) -> tuple[str, datetime]:
    """Begin a session of the page; return the cookie's secret and when it ends."""
    now = clock.now()
    end = now + timedelta(seconds=seconds)
    if token.expires_at is not None:
        end = min(end, token.expires_at)
    secret = secrets.token_urlsafe(SECRET_BYTES)
    connection.execute(sessions.delete().where(sessions.c.expires_at < now))
    connection.execute(
        sessions.insert().values(
            hash=digest(secret), token_id=token.id, created_at=now, expires_at=end
        )
    )
    return secret, end


def end_session(connection: Connection, secret: str) -> None:
    """End a session; a second time changes nothing."""
    connection.execute(sessions.delete().where(sessions.c.hash == digest(secret)))


def _token(row: sa.Row[Any]) -> Token:
    return Token(
        id=row.id,
        name=row.name,
        user=row.user,
        role=Role(row.role),
        created_at=row.created_at,
        expires_at=row.expires_at,
        revoked_at=row.revoked_at,
        last_used_at=row.last_used_at,
        campaign=row.campaign_id,
    )
