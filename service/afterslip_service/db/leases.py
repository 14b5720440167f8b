"""Leases: one leader at a time, by the database's clock."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from afterslip_service.db.session import moment
from afterslip_service.db.tables import leases
from afterslip_service.errors import LeaseLostError

# a lease that was given back ran out then
RELEASED = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Lease:
    """A lease that is ours: who holds it and how often it has changed hands."""

    name: str
    holder: str
    epoch: int


@dataclass(frozen=True, slots=True)
class LeaseRow:
    """A lease as it stands in the database.

    Attributes
    ----------
    expires_at : by the database's clock; long ago where it was given back.
    expired : whether that is over, by the same clock.
    facts : what the holder said when it renewed last.
    """

    name: str
    holder: str
    epoch: int
    expires_at: datetime
    expired: bool
    facts: dict[str, Any] | None

    @property
    def mark(self) -> tuple[str, int, datetime]:
        """What changes with every renewal."""
        return self.holder, self.epoch, self.expires_at

    @property
    def released(self) -> bool:
        """Whether the holder gave it back."""
        return self.expires_at == RELEASED


def look(connection: Connection, name: str) -> LeaseRow | None:
    """Lock a lease and return how it stands; None if it was never taken."""
    row = connection.execute(
        sa.select(leases).where(leases.c.name == name).with_for_update()
    ).one_or_none()
    if row is None:
        return None
    expired = row.expires_at <= moment(connection)
    return LeaseRow(name, row.holder, row.epoch, row.expires_at, expired, row.facts)


def take(
    connection: Connection,
    row: LeaseRow,
    holder: str,
    seconds: float,
    facts: dict[str, Any] | None = None,
) -> Lease:
    """Take a lease that this transaction has looked at; its epoch counts changes."""
    epoch = row.epoch + (row.holder != holder)
    until = moment(connection) + timedelta(seconds=seconds)
    connection.execute(
        leases.update()
        .where(leases.c.name == row.name)
        .values(holder=holder, epoch=epoch, expires_at=until, facts=facts)
    )
    return Lease(row.name, holder, epoch)


def facts(connection: Connection, name: str) -> dict[str, Any] | None:
    """Return what the holder said when it renewed last; None if nobody holds it."""
    query = sa.select(leases.c.facts).where(
        leases.c.name == name, leases.c.expires_at > moment(connection)
    )
    return connection.execute(query).scalar_one_or_none()


def acquire(
    connection: Connection,
    name: str,
    holder: str,
    seconds: float,
    facts: dict[str, Any] | None = None,
) -> Lease | None:
    """Take the lease, or renew it; None while another holder's has not run out."""
    now = moment(connection)
    until = now + timedelta(seconds=seconds)
    row = connection.execute(
        sa.select(leases).where(leases.c.name == name).with_for_update()
    ).one_or_none()
    if row is None:
        return _first(connection, name, holder, until, facts)
    if row.holder != holder and row.expires_at > now:
        return None
    epoch = row.epoch if row.holder == holder else row.epoch + 1
    connection.execute(
        leases.update()
        .where(leases.c.name == name)
        .values(holder=holder, epoch=epoch, expires_at=until, facts=facts)
    )
    return Lease(name, holder, epoch)


def _first(
    connection: Connection,
    name: str,
    holder: str,
    until: datetime,
    facts: dict[str, Any] | None,
) -> Lease | None:
    """Take a lease that was never taken; two may try at once."""
    try:
        with connection.begin_nested():
            connection.execute(
                leases.insert().values(
                    name=name, holder=holder, epoch=1, expires_at=until, facts=facts
                )
            )
    except sa.exc.IntegrityError:
        return None
    return Lease(name, holder, 1)


def hold(connection: Connection, lease: Lease) -> None:
    """Make sure, inside a writing transaction, that the lease is still ours.

    The row stays locked until the commit: a successor waits for us.

    Raises
    ------
    LeaseLostError
        If another dispatcher has taken it.
    """
    row = connection.execute(
        sa.select(leases.c.holder, leases.c.epoch)
        .where(leases.c.name == lease.name)
        .with_for_update()
    ).one_or_none()
    if row is None or (row.holder, row.epoch) != (lease.holder, lease.epoch):
        raise LeaseLostError(f"another dispatcher has taken the lease {lease.name!r}")


def release(connection: Connection, lease: Lease) -> None:
    """Give the lease back, so that a successor need not wait for it to run out."""
    connection.execute(
        leases.update()
        .where(
            leases.c.name == lease.name,
            leases.c.holder == lease.holder,
            leases.c.epoch == lease.epoch,
        )
        .values(expires_at=RELEASED)
    )


def holder(connection: Connection, name: str) -> str | None:
    """Return who holds a lease that has not run out."""
    query = sa.select(leases.c.holder).where(
        leases.c.name == name, leases.c.expires_at > moment(connection)
    )
    return connection.execute(query).scalar_one_or_none()
