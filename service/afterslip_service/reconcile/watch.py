"""Signs of life: progress of live attempts, and attempts that show none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from afterslip.error_class import ErrorClass
from afterslip_service import clock
from afterslip_service.db import attempts, campaigns, events, jobs
from afterslip_service.db.attempts import Attempt
from afterslip_service.db.jobs import Job
from afterslip_service.db.session import Connection
from afterslip_service.engine.states import AttemptState, JobKind, JobState
from afterslip_service.placement.base import Ended
from afterslip_service.reconcile import failures, receipts
from afterslip_service.reconcile.context import Context, Watched
from afterslip_workers import entry
from afterslip_workers.messages import Progress, TaskError

RECORD_EVERY_S = 1.0
HISTORY = 400
_LIVE = frozenset({JobState.QUEUED, JobState.RUNNING})
_SHOWN = ("phase", "solves_done", "solves_expected", "iteration", "residual")


def live(context: Context) -> None:
    """Read the progress of every live attempt; give up those without a heartbeat."""
    with context.database.read() as connection:
        found = attempts.live(connection)
    placed = context.placement.holds()
    if found and not entry.reachable(context.store):
        # where the store is away silence means nothing
        now = context.ticks()
        for watched in context.watched.values():
            watched.changed_at = now
        return
    news, ended = [], []
    for attempt in found:
        # also one that is placed: a scheduler may be cut off from its worker
        if attempt.token not in placed or _silent(context, attempt):
            over = ended_unreported(context, attempt)
            if over is not None:
                ended.append(over)
                continue
        progress = _look_at(context, attempt, placed=attempt.token in placed)
        if progress is not None:
            news.append(_News(attempt, progress))
    for token in set(context.watched) - {attempt.token for attempt in found}:
        del context.watched[token]
    if ended:
        receipts.take_all(context, ended)
    _record(context, [item for item in news if item.worth_recording])


def _look_at(context: Context, attempt: Attempt, *, placed: bool) -> Progress | None:
    """Look for a sign of life of one attempt; return progress worth recording."""
    now = context.ticks()
    watched = context.watched.setdefault(attempt.token, Watched(changed_at=now))
    try:
        progress = entry.read_progress(context.store, attempt.token)
    except TaskError as error:
        # its result could not be read either
        give_up(context, attempt, error.error_class, error.message)
        return None
    if progress is not None and progress.updated != watched.updated:
        watched.updated, watched.changed_at = progress.updated, now
    # an attempt that waits behind others in the placement has not begun to beat
    if attempt.state is AttemptState.QUEUED and progress is None and placed:
        watched.changed_at = now
    elif _silent(context, attempt):
        give_up(context, attempt, ErrorClass.WORKER_LOST, _silence(context, attempt))
        return None
    if progress is not None and now - watched.recorded_at >= RECORD_EVERY_S:
        watched.recorded_at = now
        return progress
    return None


def _silent(context: Context, attempt: Attempt) -> bool:
    """Tell whether an attempt's last sign of life is too long ago."""
    watched = context.watched.get(attempt.token)
    limit = context.settings.lost_after
    return watched is not None and context.ticks() - watched.changed_at > limit


def _silence(context: Context, attempt: Attempt) -> str:
    worker = attempt.worker or "the worker"
    return f"{worker} has given no sign of life for {context.settings.lost_after:g} s"


def ended_unreported(context: Context, attempt: Attempt) -> Ended | None:
    """Read in the store how an attempt ended whose end was not reported here.

    An earlier dispatcher placed it; its receipt, or at least its manifest, is the
    last thing that it wrote.
    """
    receipt = entry.read_receipt(context.store, attempt.token)
    if receipt is None and not entry.has_manifest(context.store, attempt.token):
        return None
    return Ended(attempt.token, receipt)


def give_up(context: Context, attempt: Attempt, error_class: str, message: str) -> None:
    """Take an attempt for lost; should it still live, it is asked to stop.

    One that has ended since it was read is left alone: what it stored is not lost.
    """
    text = entry.read_log(context.store, attempt.token) or None
    with context.write() as connection:
        found = jobs.by_tokens(connection, [attempt.token], lock=True)
        job = found.get(attempt.token)
        if job is None or job.token != attempt.token or job.state not in _LIVE:
            return
        failures.fail(
            connection,
            job,
            attempt.token,
            error_class,
            message,
            state=AttemptState.LOST,
            lost_limit=context.settings.lost_limit,
            log=text,
        )
    # the mark stays until the folder is swept: one that is asked to stop may be late
    entry.request_cancel(context.store, attempt.token)
    context.placement.forget(attempt.token)
    context.watched.pop(attempt.token, None)


def orphans(context: Context) -> None:
    """Take over what an earlier dispatcher placed.

    On a cluster that died with it, what has not ended is given up at once. On a
    cluster of others its attempts live on, and are watched like our own; those
    that nobody has begun were perhaps never placed, and are given up too.
    """
    with context.database.read() as connection:
        found = attempts.live(connection)
    placed = context.placement.holds()
    left, ended = [], []
    for attempt in found:
        if attempt.token in placed:
            continue
        over = ended_unreported(context, attempt)
        if over is None:
            left.append(attempt)
        else:
            ended.append(over)
    if ended:
        receipts.take_all(context, ended)
    for attempt in left:
        idle = attempt.state is AttemptState.QUEUED
        begun = not idle or _begun(context, attempt)
        if context.placement.dies_with_us or not begun:
            message = "the service was stopped while the attempt was under way"
            give_up(context, attempt, ErrorClass.INTERRUPTED, message)


def _begun(context: Context, attempt: Attempt) -> bool:
    """Tell whether a worker, of whatever release, has begun an attempt."""
    try:
        return entry.read_progress(context.store, attempt.token) is not None
    except TaskError:
        return True


def unplaced(context: Context) -> None:
    """Give back what was claimed and not placed, also after a database was away."""
    if not context.unplaced:
        return
    with context.write() as connection:
        for token, message in context.unplaced.items():
            job = jobs.by_token(connection, token)
            if job is not None:
                failures.fail(connection, job, token, ErrorClass.INTERRUPTED, message)
    context.unplaced.clear()


@dataclass(slots=True)
class _News:
    """Progress of an attempt."""

    attempt: Attempt
    progress: Progress

    @property
    def shown(self) -> dict[str, Any]:
        return {key: getattr(self.progress, key) for key in _SHOWN}

    @property
    def new(self) -> bool:
        history = self.attempt.history
        return not history or any(
            history[-1].get(k) != v for k, v in self.shown.items()
        )

    @property
    def worth_recording(self) -> bool:
        return self.new or self.attempt.state is not AttemptState.RUNNING


def _record(context: Context, news: list[_News]) -> None:
    """Write progress into the attempts and into the events."""
    if not news:
        return
    with context.write() as connection:
        tokens = [item.attempt.token for item in news]
        found = jobs.by_tokens(connection, tokens, lock=True)
        begun: list[tuple[Job, dict[str, Any]]] = []
        for item in news:
            job = found.get(item.attempt.token)
            if job is None or job.token != item.attempt.token:
                continue
            if job.state is JobState.QUEUED:
                begun.append((job, {}))
            elif job.state is not JobState.RUNNING:
                continue
            _write(connection, item, job)
        jobs.move_all(connection, begun, JobState.RUNNING)
        campaigns.refresh_all(connection, {job.campaign_id for job, _ in begun})


def _write(connection: Connection, item: _News, job: Job) -> None:
    attempt, now = item.attempt, clock.now()
    values: dict[str, Any] = {"seen_at": now}
    if job.state is JobState.QUEUED:
        values |= {"state": AttemptState.RUNNING, "started_at": now}
    if item.new:
        seconds = (now - (attempt.started_at or now)).total_seconds()
        history = [*attempt.history, {"seconds": round(seconds, 2), **item.shown}]
        values["history"] = history[-HISTORY:]
    attempts.update(connection, attempt.token, **values)
    if item.new and job.kind is not JobKind.INVERSION:
        data = {"index": job.index, "job": job.kind, "token": attempt.token}
        shown = {**data, **item.shown}
        events.append(connection, job.campaign_id, events.GROUP_PROGRESS, shown)
