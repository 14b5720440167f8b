"""What follows the end of an attempt that stored nothing."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import structlog

from afterslip.error_class import ErrorClass
from afterslip_service import clock
from afterslip_service.db import attempts, campaigns, jobs, sources
from afterslip_service.db.jobs import Job
from afterslip_service.db.session import Connection
from afterslip_service.engine import retry
from afterslip_service.engine.retry import Action, Verdict
from afterslip_service.engine.states import AttemptState, JobKind, JobState

log = structlog.get_logger()


def fail(
    connection: Connection,
    job: Job,
    token: str,
    error_class: str,
    message: str,
    *,
    state: AttemptState = AttemptState.FAILED,
    lost_limit: int = retry.LOST_LIMIT,
    **attempt: Any,
) -> bool:
    """Close an attempt as failed and decide what becomes of its job.

    Parameters
    ----------
    lost_limit : times that the job may lose its process or its worker.

    Returns
    -------
    False if the attempt no longer holds the job, in which case nothing changed.
    """
    message = message.replace("\x00", "")  # PostgreSQL's text holds everything else
    failures = retry.counted(job.failures, error_class)
    campaign = campaigns.hold(connection, job.campaign_id)
    verdict = retry.decide(error_class, failures, lost_limit)
    target = JobState.FAILED if verdict.action is Action.FAIL else JobState.WAITING
    if campaign.cancelling:
        return _ended_by_cancel(
            connection, job, token, state, error_class, message, attempt
        )
    error: dict[str, Any] = {
        "error_class": error_class,
        "error_message": message,
    }
    moved = jobs.move(
        connection,
        job,
        target,
        holder=token,
        failures=failures,
        token=None,
        not_before=clock.now() + timedelta(seconds=verdict.delay_s),
        **error,
    )
    if not moved:
        return False
    attempts.finish(connection, token, state, **error, **attempt)
    if verdict.action is Action.PAUSE:
        pause_full(connection, campaign.id, message, attempts.began(connection, token))
    elif target is JobState.FAILED and job.kind is not JobKind.INVERSION:
        where = "the model" if job.kind is JobKind.MODEL else f"group {job.index}"
        campaigns.set_error(connection, campaign.id, error_class, f"{where}: {message}")
    campaigns.refresh(connection, campaign.id)
    _note(job, token, error_class, verdict)
    return True


def _ended_by_cancel(
    connection: Connection,
    job: Job,
    token: str,
    state: AttemptState,
    error_class: str | None,
    message: str | None,
    attempt: dict[str, Any],
) -> bool:
    """Cancel a job whose attempt is over; what was accepted before is valid again."""
    before = attempts.accepted(connection, [job.id]).get(job.id)
    if before is None:
        moved = jobs.move(connection, job, JobState.CANCELLED, holder=token, token=None)
    else:
        moved = jobs.move(
            connection,
            job,
            JobState.ACCEPTED,
            holder=token,
            operator=True,
            token=before,
        )
        positions = job.payload.get("sources", [])
        sources.offer(connection, job.campaign_id, before, positions)
    if not moved:
        return False
    error = {"error_class": error_class, "error_message": message}
    attempts.finish(connection, token, state, **error, **attempt)
    campaigns.refresh(connection, job.campaign_id)
    return True


def _note(job: Job, token: str, error_class: str, verdict: Verdict) -> None:
    log.warning(
        "attempt failed",
        campaign=job.campaign_id,
        kind=job.kind.value,
        index=job.index,
        token=token,
        error_class=error_class,
        then=verdict.action.value,
    )


def pause_full(
    connection: Connection, campaign: str, message: str, began: datetime
) -> None:
    """Pause a campaign until an operator has made space in the store.

    A refusal that comes late says nothing of the space that was made meanwhile: who
    begins after the resume finds out.

    Parameters
    ----------
    began : when that began which the store has refused.
    """
    if campaigns.resumed_since(connection, campaign, began):
        return
    reason = retry.decide(ErrorClass.STORE_FULL, {ErrorClass.STORE_FULL: 1}).reason
    campaigns.set_paused(connection, campaign, True)
    campaigns.set_error(
        connection, campaign, ErrorClass.STORE_FULL, f"{reason}. {message}"
    )
    campaigns.refresh(connection, campaign)


def cancelled(connection: Connection, job: Job, token: str, **attempt: Any) -> bool:
    """Close an attempt that stopped because it was asked to."""
    campaign = campaigns.hold(connection, job.campaign_id)
    if not campaign.cancelling:
        # a worker that drains stops its attempts too: the job goes on elsewhere
        return fail(
            connection,
            job,
            token,
            ErrorClass.INTERRUPTED,
            "the worker stopped the attempt",
            state=AttemptState.CANCELLED,
            **attempt,
        )
    return _ended_by_cancel(
        connection, job, token, AttemptState.CANCELLED, None, None, attempt
    )
