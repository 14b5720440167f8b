"""Unit sources that are stored somewhere, by what changes their numbers."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from afterslip_service.db.tables import attempts, campaigns, jobs, sources

PARTS = ("model", "slip", "solver")
# what is understood by the physics alone
Quality = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Source:
    """A unit source in the store of a campaign.

    Attributes
    ----------
    key : digest of all that changes its numbers: of ``model``, ``slip``, ``solver``.
    quality : what the numbers are good for, in terms of the campaign's physics.
    token : accepted attempt that holds it; None until there is one.
    origin, origin_position : where it was taken from.
    """

    campaign_id: str
    position: int
    key: str
    model: str
    slip: str
    solver: str
    quality: Quality
    token: str | None = None
    origin: str | None = None
    origin_position: int | None = None


def plan(connection: Connection, found: Sequence[Source]) -> None:
    """Write the sources of a campaign, in place of what was planned before."""
    if not found:
        return
    connection.execute(
        sources.delete().where(sources.c.campaign_id == found[0].campaign_id)
    )
    names = Source.__dataclass_fields__
    connection.execute(
        sources.insert(), [{n: getattr(s, n) for n in names} for s in found]
    )


def register(connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
    """Say which accepted attempt holds the sources of a campaign.

    Parameters
    ----------
    rows : {"campaign", "position", "token", "quality", "origin", "origin_position"}.
    """
    if not rows:
        return
    names = ("token", "quality", "origin", "origin_position")
    query = (
        sources.update()
        .where(
            sources.c.campaign_id == sa.bindparam("of_campaign"),
            sources.c.position == sa.bindparam("at"),
        )
        .values(
            {
                name: sa.bindparam(f"new_{name}", type_=sources.c[name].type)
                for name in names
            }
        )
    )
    connection.execute(
        query,
        [
            {"of_campaign": row["campaign"], "at": row["position"]}
            | {f"new_{name}": row[name] for name in names}
            for row in rows
        ],
    )


def forget(connection: Connection, campaign: str, tokens: Collection[str]) -> None:
    """No longer offer what some attempts have stored."""
    connection.execute(
        sources.update()
        .where(sources.c.campaign_id == campaign, sources.c.token.in_(tokens))
        .values(token=None)
    )


def offer(
    connection: Connection, campaign: str, token: str, positions: Collection[int]
) -> None:
    """Offer again what an attempt has stored."""
    connection.execute(
        sources.update()
        .where(sources.c.campaign_id == campaign, sources.c.position.in_(positions))
        .values(token=token)
    )


def of_campaign(
    connection: Connection, campaign: str, positions: Collection[int] | None = None
) -> list[Source]:
    """Return the sources of a campaign, in the order of its store."""
    query = sa.select(sources).where(sources.c.campaign_id == campaign)
    if positions is not None:
        query = query.where(sources.c.position.in_(positions))
    rows = connection.execute(query.order_by(sources.c.position))
    return [_source(row) for row in rows]


def known(
    connection: Connection, keys: Collection[str], physics: str
) -> dict[str, list[Source]]:
    """Return accepted sources by key, those that were solved first before copies.

    Parameters
    ----------
    physics : of their campaigns; another one's quality means something else.
    """
    query = (
        sa.select(sources)
        .join(campaigns, campaigns.c.id == sources.c.campaign_id)
        .where(
            sources.c.key.in_(keys),
            campaigns.c.physics == physics,
            sources.c.token.is_not(None),
            campaigns.c.deleted_at.is_(None),
        )
        .order_by(sources.c.campaign_id, sources.c.position)
    )
    out: dict[str, list[Source]] = {}
    for row in connection.execute(query):
        out.setdefault(row.key, []).append(_source(row))
    return out


def files_of(connection: Connection, tokens: Collection[str]) -> dict[str, Any]:
    """Return number and files (by name, with checksums) of stored groups."""
    query = (
        sa.select(attempts.c.token, attempts.c.manifest, jobs.c.ordinal)
        .join(jobs, jobs.c.id == attempts.c.job_id)
        .where(attempts.c.token.in_(tokens))
    )
    return {
        row.token: {"group": row.ordinal, "files": (row.manifest or {}).get("files")}
        for row in connection.execute(query)
    }


def nearest(connection: Connection, wanted: Source) -> tuple[Source, list[str]] | None:
    """Return the accepted source of other campaigns that differs least, and in what."""
    best: tuple[Source, list[str]] | None = None
    for part in ("slip", "model"):
        query = (
            sa.select(sources)
            .where(
                getattr(sources.c, part) == getattr(wanted, part),
                sources.c.campaign_id != wanted.campaign_id,
                sources.c.campaign_id < wanted.campaign_id,
                sources.c.token.is_not(None),
            )
            .order_by(sources.c.campaign_id.desc())
            .limit(200)
        )
        for row in connection.execute(query):
            found = _source(row)
            differs = [p for p in PARTS if getattr(found, p) != getattr(wanted, p)]
            if best is None or len(differs) < len(best[1]):
                best = (found, differs)
    return best


def _source(row: sa.Row[Any]) -> Source:
    return Source(**{name: getattr(row, name) for name in Source.__dataclass_fields__})
