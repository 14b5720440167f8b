"""States of jobs and campaigns, and the moves between them."""

from __future__ import annotations

from enum import StrEnum


class JobKind(StrEnum):
    """What a job makes."""

    MODEL = "model"
    GREENS = "greens"
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
    # waiting -> failed is a job whose attempts are spent without a new one
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


def sources_of(target: JobState) -> frozenset[JobState]:
    """Return the states from which a job may move to ``target``."""
    return frozenset(state for state, to in MOVES.items() if target in to)


def may_move(state: JobState, target: JobState) -> bool:
    """Tell whether a job may move from ``state`` to ``target``."""
    return target in MOVES[state]
