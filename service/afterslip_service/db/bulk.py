"""What operators do to many jobs at once; every one of these can be undone.

Each locks the campaign before it reads the jobs, as every transaction does that
moves some.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from afterslip_service import clock
from afterslip_service.db import attempts, campaigns, jobs, sources
from afterslip_service.db.jobs import Job
from afterslip_service.db.twins import AGAIN
from afterslip_service.engine.states import AttemptState, JobKind, JobState

_FRESH: dict[str, Any] = {"error_class": None, "error_message": None, "failures": {}}


def cancel_waiting(connection: Connection, campaign: str) -> int:
    """Cancel the campaign's jobs that nobody works on."""
    return sum(cancel(connection, campaign, kind) for kind in JobKind)


def reset_failed(connection: Connection, campaign: str) -> int:
    """Put the campaign's failed jobs back in the queue, their count at zero."""
    return sum(retry(connection, campaign, kind) for kind in JobKind)


def cancel(
    connection: Connection,
    campaign: str,
    kind: JobKind = JobKind.GROUP,
    only: Collection[int] | None = None,
) -> int:
    """Cancel jobs that nobody works on; what was accepted before is valid again."""
    idle = frozenset({JobState.WAITING, JobState.FAILED})
    found = _chosen(connection, campaign, kind, idle, only)
    before = attempts.accepted(connection, [job.id for job in found])
    again = [(j, {"token": before[j.id]}) for j in found if j.id in before]
    plain: list[tuple[Job, dict[str, Any]]] = [
        (job, {}) for job in found if job.id not in before
    ]
    done = jobs.move_all(connection, plain, JobState.CANCELLED)
    for job, values in again:
        positions = job.payload.get("sources", [])
        sources.offer(connection, campaign, values["token"], positions)
    return done + jobs.move_all(
        connection, again, JobState.ACCEPTED, operator=True, **_FRESH
    )


def uncancel(
    connection: Connection, campaign: str, only: Collection[int] | None = None
) -> int:
    """Put cancelled jobs, of all kinds unless numbers are given, back in the queue."""
    gone = frozenset({JobState.CANCELLED})
    kinds = tuple(JobKind) if only is None else (JobKind.GROUP,)
    return sum(
        _requeue(connection, _chosen(connection, campaign, kind, gone, only))
        for kind in kinds
    )


def retry(
    connection: Connection,
    campaign: str,
    kind: JobKind = JobKind.GROUP,
    only: Collection[int] | None = None,
    error_class: str | None = None,
) -> int:
    """Put failed jobs back in the queue, their count of failures at zero."""
    failed = frozenset({JobState.FAILED})
    found = _chosen(connection, campaign, kind, failed, only)
    if error_class is not None:
        found = [job for job in found if job.error_class == error_class]
    return _requeue(connection, found)


def invalidate(
    connection: Connection, campaign: str, only: Collection[int] | None = None
) -> int:
    """Have accepted groups solved again; their results stay until the new ones are in.

    Such a group is solved, not taken from another campaign.
    """
    good = frozenset({JobState.ACCEPTED})
    found = _chosen(connection, campaign, JobKind.GROUP, good, only)
    if found:
        campaigns.set_unfinished(connection, campaign)
        sources.forget(connection, campaign, [job.token for job in found if job.token])
    for job in found:
        job.payload.pop("taken", None)
        job.payload[AGAIN] = True
    return jobs.move_all(
        connection,
        [(job, {"payload": job.payload}) for job in found],
        JobState.WAITING,
        operator=True,
        not_before=clock.now(),
        token=None,
        **_FRESH,
    )


def retract(
    connection: Connection, campaign: str, tokens: Collection[str], until: datetime
) -> list[Job]:
    """Have groups and inversions made again whose files are damaged.

    Unlike those of `invalidate` their results are gone: a cancel does not bring them
    back. What another attempt has replaced is left alone, and so is all of a campaign
    that was deleted since its files were read: they may be gone for that reason.

    Parameters
    ----------
    tokens : accepted attempts that wrote the files.
    until : the new attempts begin then, unless `release` lets them earlier.

    Returns
    -------
    The jobs, as they were.
    """
    if campaigns.hold(connection, campaign).deleted:
        return []
    good = frozenset({JobState.ACCEPTED})
    found = [
        job
        for kind in (JobKind.GROUP, JobKind.INVERSION)
        for job in _chosen(connection, campaign, kind, good, None)
        if job.token in tokens
    ]
    if not found:
        return []
    theirs = [job.token for job in found if job.token]
    if any(job.kind is JobKind.GROUP for job in found):
        campaigns.set_unfinished(connection, campaign)
        sources.forget(connection, campaign, theirs)
    attempts.update_all(
        connection,
        [{"token": token, "state": AttemptState.DAMAGED} for token in theirs],
    )
    moves = []
    for job in found:
        plain = {key: v for key, v in job.payload.items() if key != "taken"}
        if job.kind is JobKind.GROUP:
            plain[AGAIN] = True
        moves.append((job, {"payload": plain}))
    jobs.move_all(
        connection,
        moves,
        JobState.WAITING,
        operator=True,
        not_before=until,
        token=None,
        **_FRESH,
    )
    campaigns.refresh(connection, campaign)
    return found


def release(connection: Connection, campaign: str, retracted: Sequence[Job]) -> None:
    """Let what was retracted begin: its files are gone."""
    campaigns.hold(connection, campaign)
    waiting = frozenset({JobState.WAITING})
    for kind in {job.kind for job in retracted}:
        only = {job.index for job in retracted if job.kind is kind}
        found = _chosen(connection, campaign, kind, waiting, only)
        jobs.set_begin(connection, [job.id for job in found], clock.now())
    campaigns.refresh(connection, campaign)


def _chosen(
    connection: Connection,
    campaign: str,
    kind: JobKind,
    states: frozenset[JobState],
    only: Collection[int] | None,
) -> list[Job]:
    jobs.lock_campaigns(connection, [campaign])
    found = jobs.of_campaign(connection, campaign, kind, states=states)
    return [job for job in found if only is None or job.index in only]


def _requeue(connection: Connection, found: list[Job]) -> int:
    return jobs.move_all(
        connection,
        [(job, {}) for job in found],
        JobState.WAITING,
        operator=True,
        not_before=clock.now(),
        token=None,
        **_FRESH,
    )
