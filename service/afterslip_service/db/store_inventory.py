"""What a store should hold, as the database has it."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy import Connection

from afterslip_service.db.tables import (
    attempts,
    campaigns,
    datasets,
    files,
    inversions,
    jobs,
)
from afterslip_service.engine.states import AttemptState, JobKind, JobState
from afterslip_workers.messages import Manifest, read_manifest

_WANTED = (AttemptState.QUEUED, AttemptState.RUNNING, AttemptState.STORED)


def accepted(
    connection: Connection, campaign: str | None = None
) -> dict[str, dict[str, Manifest]]:
    """Return the manifests of accepted groups and inversions.

    Returns
    -------
    By campaign, then by the name under which the campaign keeps the manifest: a
    group's number, or ``inversion-`` and its id.
    """
    query = (
        sa.select(
            jobs.c.campaign_id,
            jobs.c.kind,
            jobs.c.ordinal,
            inversions.c.id,
            attempts.c.manifest,
        )
        .join(attempts, attempts.c.token == jobs.c.token)
        .join(inversions, inversions.c.job_id == jobs.c.id, isouter=True)
        .where(jobs.c.kind != JobKind.MODEL, jobs.c.state == JobState.ACCEPTED)
    )
    if campaign is not None:
        query = query.where(jobs.c.campaign_id == campaign)
    found: dict[str, dict[str, Manifest]] = {}
    for owner, kind, number, inversion, manifest in connection.execute(query):
        name = str(number) if kind == JobKind.GROUP else f"inversion-{inversion}"
        if manifest is not None:
            found.setdefault(owner, {})[name] = read_manifest(manifest)
    return found


def deleted(connection: Connection) -> frozenset[str]:
    """Return the campaigns that were deleted: nothing of them is computed again."""
    query = sa.select(campaigns.c.id).where(campaigns.c.deleted_at.is_not(None))
    return frozenset(connection.execute(query).scalars())


def uploads(connection: Connection) -> frozenset[str]:
    """Return the digests of all uploaded files, hexadecimal."""
    query = sa.union(sa.select(files.c.ref), sa.select(datasets.c.file))
    found = connection.execute(query).scalars()
    return frozenset(reference.removeprefix("sha256:") for reference in found)


def wanted(connection: Connection) -> frozenset[str]:
    """Return the attempts whose folders are still needed."""
    query = sa.select(attempts.c.token).where(attempts.c.state.in_(_WANTED))
    return frozenset(connection.execute(query).scalars())


def settled(connection: Connection) -> frozenset[str]:
    """Return the attempts that ended, accepted or not: nobody needs their folders."""
    query = sa.select(attempts.c.token).where(attempts.c.state.not_in(_WANTED))
    return frozenset(connection.execute(query).scalars())


def exists(connection: Connection, campaign: str) -> bool:
    """Tell whether a campaign is known."""
    query = sa.select(sa.literal(1)).where(campaigns.c.id == campaign)
    return connection.execute(query).first() is not None
