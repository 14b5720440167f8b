"""Data sets and uploaded files in the database."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.dialects import postgresql, sqlite

from afterslip_service import clock
from afterslip_service.db.tables import datasets, files
from afterslip_service.errors import MissingError


@dataclass(frozen=True, slots=True)
class Dataset:
    """Observations, as the spec of an inversion names them."""

    id: str
    name: str
    owner: str | None
    file: str
    content: dict[str, Any]
    n_observations: int
    created_at: datetime


def create(
    connection: Connection,
    *,
    name: str,
    file: str,
    content: dict[str, Any],
    n_observations: int,
    owner: str | None = None,
) -> str:
    """Write a data set and return its id."""
    identity = clock.new_id()
    connection.execute(
        datasets.insert().values(
            id=identity,
            name=name,
            owner=owner,
            file=file,
            content=content,
            n_observations=n_observations,
            created_at=clock.now(),
        )
    )
    return identity


def find(connection: Connection, name: str, user: str | None = None) -> Dataset:
    """Return the data set of that id, or the newest of that name.

    A user's own come before others': nobody replaces data in somebody else's
    request by giving a data set the same name.

    Raises
    ------
    MissingError
        If there is none.
    """
    query = (
        sa.select(datasets)
        .where(sa.or_(datasets.c.id == name, datasets.c.name == name))
        .order_by(
            (datasets.c.id == name).desc(),
            sa.func.coalesce(datasets.c.owner == user, sa.false()).desc(),
            datasets.c.id.desc(),
        )
        .limit(1)
    )
    row = connection.execute(query).one_or_none()
    if row is None:
        raise MissingError("dataset", name)
    return _dataset(row)


def page(connection: Connection, *, before: str | None, limit: int) -> list[Dataset]:
    """Return data sets, newest first, from the one after ``before``."""
    query = sa.select(datasets)
    if before is not None:
        query = query.where(datasets.c.id < before)
    rows = connection.execute(query.order_by(datasets.c.id.desc()).limit(limit))
    return [_dataset(row) for row in rows]


def record_file(
    connection: Connection, ref: str, size: int, name: str | None = None
) -> None:
    """Remember an uploaded file; the same content may come twice."""
    dialect = sqlite if connection.dialect.name == "sqlite" else postgresql
    connection.execute(
        dialect.insert(files)
        .values(ref=ref, size=size, name=name, created_at=clock.now())
        .on_conflict_do_nothing()
    )


def file_size(connection: Connection, ref: str) -> int | None:
    """Return the bytes of an uploaded file, None if it was not uploaded."""
    query = sa.select(files.c.size).where(files.c.ref == ref)
    return connection.execute(query).scalar_one_or_none()


def _dataset(row: sa.Row[Any]) -> Dataset:
    return Dataset(
        id=row.id,
        name=row.name,
        owner=row.owner,
        file=row.file,
        content=row.content,
        n_observations=row.n_observations,
        created_at=row.created_at,
    )
