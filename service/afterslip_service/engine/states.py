"""States of jobs and campaigns, and the moves between them."""

from __future__ import annotations

from enum import StrEnum


class JobKind(StrEnum):
    """What a job makes."""

    MODEL = "model"
    GROUP = "group"
    INVERSION = "inversion"


class JobState(StrEnum):
    """Where a job stands; only ``accepted`` and ``cancelled`` are final."""

    WAITING = "waiting"
    QUEUED = "queued"
    RUNNING = "running"
    STORED = "stored"
    ACCEPTED = "accepted"
    FAILED = "failed"
    CANCELLED = "cancelled"


class AttemptState(StrEnum):
    """Where one try at a job stands."""

    QUEUED = "queued"
    RUNNING = "running"
    STORED = "stored"
    ACCEPTED = "accepted"
    FAILED = "failed"
    CANCELLED = "cancelled"
    LOST = "lost"
    # accepted once, until a later attempt took its place
    REPLACED = "replaced"
    # accepted once, until its files were found damaged
    DAMAGED = "damaged"


class CampaignState(StrEnum):
    """State of a campaign, always derived from its jobs."""

    WAITING = "waiting"
    BUILDING = "building"
    RUNNING = "running"
    COMPLETE = "complete"
    FAILED = "failed"
    CANCELLED = "cancelled"
    PAUSED = "paused"


ACTIVE_JOBS = frozenset({JobState.QUEUED, JobState.RUNNING, JobState.STORED})
FINAL_JOBS = frozenset({JobState.ACCEPTED, JobState.CANCELLED})

MOVES: dict[JobState, frozenset[JobState]] = {
    # waiting -> failed is a job whose attempts are used up without a new one
    JobState.WAITING: frozenset({JobState.QUEUED, JobState.FAILED, JobState.CANCELLED}),
    JobState.QUEUED: frozenset(
        {
            JobState.RUNNING,
            JobState.STORED,
            JobState.WAITING,
            JobState.FAILED,
            JobState.CANCELLED,
        }
    ),
    JobState.RUNNING: frozenset(
        {JobState.STORED, JobState.WAITING, JobState.FAILED, JobState.CANCELLED}
    ),
    # anything but accepted only when the bytes that were stored prove to be damaged
    JobState.STORED: frozenset(
        {JobState.ACCEPTED, JobState.WAITING, JobState.FAILED, JobState.CANCELLED}
    ),
    JobState.FAILED: frozenset({JobState.WAITING, JobState.CANCELLED}),
    JobState.ACCEPTED: frozenset(),
    JobState.CANCELLED: frozenset(),
}


# what only somebody who asks for it may do: take up again what was cancelled or
# accepted, or fall back on the result that was accepted before
OPERATOR_MOVES: dict[JobState, frozenset[JobState]] = {
    JobState.WAITING: frozenset({JobState.ACCEPTED}),
    JobState.QUEUED: frozenset({JobState.ACCEPTED}),
    JobState.RUNNING: frozenset({JobState.ACCEPTED}),
    JobState.FAILED: frozenset({JobState.ACCEPTED}),
    JobState.CANCELLED: frozenset({JobState.WAITING}),
    JobState.ACCEPTED: frozenset({JobState.WAITING}),
}


def sources_of(target: JobState, *, operator: bool = False) -> frozenset[JobState]:
    """Return the states from which a job may move to ``target``."""
    return frozenset(s for s in JobState if may_move(s, target, operator=operator))


def may_move(state: JobState, target: JobState, *, operator: bool = False) -> bool:
    """Tell whether a job may move from ``state`` to ``target``.

    Parameters
    ----------
    operator : somebody asked for it, who may also leave final states.
    """
    asked = OPERATOR_MOVES.get(state, frozenset()) if operator else frozenset()
    return target in MOVES[state] or target in asked
