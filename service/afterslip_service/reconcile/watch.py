"""Signs of life: progress of live attempts, and attempts that show none."""

from __future__ import annotations

import time
from typing import Any

from afterslip_service import clock
from afterslip_service.db import attempts, campaigns, events, jobs
from afterslip_service.db.attempts import Attempt
from afterslip_service.engine import retry
from afterslip_service.engine.states import AttemptState, JobKind, JobState
from afterslip_service.placement.base import Ended
from afterslip_service.reconcile import failures, receipts
from afterslip_service.reconcile.context import Context, Watched
from afterslip_workers import entry

TELL_EVERY_S = 1.0
HISTORY = 400
_SHOWN = ("phase", "solves_done", "solves_expected", "residual")


def live(context: Context) -> None:
    """Read the progress of every live attempt; give up those without a heartbeat."""
    with context.database.read() as connection:
        found = attempts.live(connection)
    held = context.placement.holds()
    for attempt in found:
        look_at(context, attempt, held=attempt.token in held)
    for token in set(context.watched) - {attempt.token for attempt in found}:
        del context.watched[token]


def look_at(context: Context, attempt: Attempt, *, held: bool) -> None:
    """Look for news of one attempt."""
    now = time.monotonic()
    watched = context.watched.setdefault(attempt.token, Watched(seen=now))
    progress = entry.read_progress(context.store, attempt.token)
    if progress is not None and float(progress["updated"]) != watched.updated:
        watched.updated, watched.seen = float(progress["updated"]), now
    # an attempt that waits behind others in the placement has not begun to beat
    waiting = attempt.state is AttemptState.QUEUED and progress is None and held
    if waiting:
        watched.seen = now
    elif not held and _orphan_ended(context, attempt):
        return
    elif now - watched.seen > context.settings.lost_after:
        give_up(context, attempt, "worker_lost", _silence(context, attempt))
        return
    if progress is not None and now - watched.told >= TELL_EVERY_S:
        watched.told = now
        _tell(context, attempt, progress)


def _silence(context: Context, attempt: Attempt) -> str:
    worker = attempt.worker or "the worker"
    return f"{worker} has given no sign of life for {context.settings.lost_after:g} s"


def _orphan_ended(context: Context, attempt: Attempt) -> bool:
    """Take over an attempt that an earlier dispatcher placed and that is stored."""
    manifest = entry.read_manifest(context.store, attempt.token)
    if manifest is None:
        return False
    receipt = {"token": attempt.token, "outcome": "stored", "manifest": manifest}
    receipts.take(context, Ended(attempt.token, receipt))
    return True


def give_up(context: Context, attempt: Attempt, error_class: str, message: str) -> None:
    """Take an attempt for lost; should it still live, it is told to stop."""
    text = entry.read_log(context.store, attempt.token) or None
    with context.write() as connection:
        job = jobs.by_token(connection, attempt.token)
        if job is None:
            return
        failures.fail(
            connection,
            job,
            attempt.token,
            error_class,
            message,
            state=AttemptState.LOST,
            log=text,
        )
    entry.request_cancel(context.store, attempt.token)
    context.placement.forget(attempt.token)
    context.watched.pop(attempt.token, None)


def orphans(context: Context) -> None:
    """Give up what an earlier dispatcher placed on a cluster that died with it.

    On a cluster of others its attempts live on, and are watched like our own.
    """
    if not context.placement.mortal:
        return
    with context.database.read() as connection:
        found = attempts.live(connection)
    held = context.placement.holds()
    for attempt in found:
        if attempt.token not in held and not _orphan_ended(context, attempt):
            message = "the service was stopped while the attempt ran"
            give_up(context, attempt, retry.INTERRUPTED, message)
            entry.discard(context.store, attempt.token)


def _tell(context: Context, attempt: Attempt, progress: dict[str, Any]) -> None:
    """Write progress into the attempt, and tell those who listen if it is news."""
    shown = {key: progress.get(key) for key in _SHOWN}
    values: dict[str, Any] = {"seen_at": clock.now()}
    history = attempt.history
    news = not history or any(history[-1].get(key) != shown[key] for key in _SHOWN)
    if not news and attempt.state is AttemptState.RUNNING:
        return
    if news:
        began = attempt.started_at or clock.now()
        seconds = (clock.now() - began).total_seconds()
        values["history"] = [*history, {"seconds": round(seconds, 2), **shown}]
        values["history"] = values["history"][-HISTORY:]
    with context.write() as connection:
        job = jobs.by_token(connection, attempt.token)
        if job is None or job.token != attempt.token:
            return
        campaigns.get(connection, job.campaign_id, lock=True, deleted=True)
        if attempt.state is AttemptState.QUEUED:
            if not jobs.move(connection, job, JobState.RUNNING, holder=attempt.token):
                return
            values |= {"state": AttemptState.RUNNING, "started_at": clock.now()}
            campaigns.refresh(connection, job.campaign_id)
        attempts.update(connection, attempt.token, **values)
        if news and job.kind is not JobKind.INVERSION:
            data = {"index": job.index, "job": job.kind, "token": attempt.token}
            events.append(
                connection, job.campaign_id, events.GROUP_PROGRESS, {**data, **shown}
            )
