"""Receipts: what ended is recorded, many in one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import structlog

from afterslip.error_class import ErrorClass
from afterslip_service import clock
from afterslip_service.db import attempts, jobs
from afterslip_service.db.jobs import Job
from afterslip_service.db.session import Connection, SQLAlchemyError
from afterslip_service.engine.states import AttemptState, JobState
from afterslip_service.errors import LeaseLostError
from afterslip_service.placement.base import Ended
from afterslip_service.reconcile import failures
from afterslip_service.reconcile.context import Context
from afterslip_workers import entry
from afterslip_workers.messages import (
    Failure,
    Receipt,
    TaskError,
    failed,
    of_manifest,
    read_receipt,
)

log = structlog.get_logger()
# what a worker of 0.1.0 says of an envelope of this release, which it calls internal
REFUSED = "the envelope has version "
_TAKEN = frozenset({JobState.STORED, JobState.ACCEPTED})


class EndedAttempt:
    """An end with all that the store says about it, read before the transaction."""

    def __init__(self, context: Context, ended: Ended) -> None:
        self.token = ended.token
        try:
            receipt = _receipt(context, ended)
        except TaskError as unread:
            # the work is done again: what cannot be read cannot be accepted
            receipt = failed(ended.token, unread)
        self.outcome, self.stats = receipt.outcome, receipt.stats
        self.manifest = receipt.manifest
        self.log = None
        if self.outcome != "stored":
            self.log = entry.read_log(context.store, ended.token) or None
        error = receipt.error
        self.error_class = error.error_class if error else ErrorClass.INTERNAL
        self.message = error.message if error else "the worker gave no reason"
        if self.message.startswith(REFUSED) and self.error_class == ErrorClass.INTERNAL:
            self.error_class = ErrorClass.OTHER_RELEASE
        stats = self.stats.as_json()
        self.known: dict[str, Any] = {"stats": stats} if stats else {}
        if self.stats.worker:
            self.known["worker"] = self.stats.worker


def _receipt(context: Context, ended: Ended) -> Receipt:
    """Return the receipt of an attempt, or what stands for it.

    Raises
    ------
    TaskError
        If it, or its manifest, is of another release.
    """
    if ended.receipt is not None:
        return read_receipt(ended.receipt)
    # a process that dies between its last byte and its receipt has stored all
    manifest = entry.read_manifest(context.store, ended.token)
    if manifest is not None:
        return of_manifest(manifest)
    error_class = ended.error_class or ErrorClass.INTERNAL
    message = ended.message or "the worker gave no reason"
    error = Failure(error_class=error_class, message=message)
    return Receipt(token=ended.token, outcome="failed", error=error)


def take(context: Context, ended: Ended) -> bool:
    """Record how one attempt ended; see `take_all`."""
    return ended.token in take_all(context, [ended])


def take_all(context: Context, ended: Sequence[Ended]) -> set[str]:
    """Record how attempts ended.

    Returns
    -------
    Tokens whose receipt was taken. Others no longer hold their job; what they wrote
    is swept away, unless it was taken before.
    """
    ends = [EndedAttempt(context, item) for item in ended]
    try:
        taken, repeated = _write_all(context, ends)
    except (SQLAlchemyError, LeaseLostError):
        raise
    except Exception:
        if len(ends) == 1:
            raise
        # one that cannot be understood must not hold up the others
        taken, repeated = set(), set()
        for item in ends:
            try:
                more, again = _write_all(context, [item])
            except (SQLAlchemyError, LeaseLostError):
                raise
            except Exception as error:  # noqa: BLE001 - logged and left to the watch
                log.error("receipt not understood", token=item.token, error=str(error))
                continue
            taken |= more
            repeated |= again
    for item in ends:
        context.watched.pop(item.token, None)
        if item.token in repeated:
            continue
        if item.token not in taken:
            log.warning("late receipt refused", token=item.token, outcome=item.outcome)
        if item.token not in taken or item.outcome != "stored":
            entry.discard(context.store, item.token)
    return taken


def _write_all(
    context: Context, ends: Sequence[EndedAttempt]
) -> tuple[set[str], set[str]]:
    """Return the tokens that were taken, and those that had been taken before."""
    taken, repeated = set[str](), set[str]()
    with context.write() as connection:
        found = jobs.by_tokens(connection, [item.token for item in ends], lock=True)
        stored: list[tuple[EndedAttempt, Job]] = []
        for item in ends:
            job = found.get(item.token)
            if job is None or job.token != item.token:
                continue
            if job.state in _TAKEN:
                # it came twice: what it wrote is still needed, or is in the campaign
                repeated.add(item.token)
            elif item.outcome == "stored" and item.manifest is not None:
                stored.append((item, job))
            elif _write_failure(connection, item, job, context.settings.lost_limit):
                taken.add(item.token)
        taken |= _write_stored(connection, stored)
    return taken, repeated


def _write_stored(
    connection: Connection, stored: Sequence[tuple[EndedAttempt, Job]]
) -> set[str]:
    if not stored:
        return set()
    jobs.move_all(connection, [(job, {}) for _, job in stored], JobState.STORED)
    now = clock.now()
    attempts.update_all(
        connection,
        [
            {
                "token": item.token,
                "state": AttemptState.STORED,
                "finished_at": now,
                "manifest": item.manifest and item.manifest.as_json(),
                "stats": item.known.get("stats"),
                "worker": item.known.get("worker"),
            }
            for item, _ in stored
        ],
    )
    for item, job in stored:
        refused = item.stats.spooled
        if refused is not None and refused.error_class == ErrorClass.STORE_FULL:
            began = attempts.began(connection, item.token)
            failures.pause_full(connection, job.campaign_id, refused.message, began)
    return {item.token for item, _ in stored}


def _write_failure(
    connection: Connection, item: EndedAttempt, job: Job, lost_limit: int
) -> bool:
    known = {**item.known, "log": item.log}
    if item.outcome == "cancelled":
        return failures.cancelled(connection, job, item.token, **known)
    return failures.fail(
        connection,
        job,
        item.token,
        item.error_class,
        item.message,
        lost_limit=lost_limit,
        **known,
    )
