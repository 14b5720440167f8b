"""The dispatcher: one leader that brings the work in line with the database."""

from __future__ import annotations

import threading
import time
from collections import deque
from datetime import timedelta

import structlog

from afterslip.errors import SpecError
from afterslip.physics.registry import find
from afterslip_service import clock
from afterslip_service.db import (
    attempts,
    bulk,
    campaigns,
    claims,
    events,
    idempotency,
    jobs,
    leases,
    queue,
    webhooks,
)
from afterslip_service.db.claims import Claim
from afterslip_service.db.jobs import Job
from afterslip_service.db.session import Database, SQLAlchemyError
from afterslip_service.engine import retry
from afterslip_service.engine.states import JobKind
from afterslip_service.errors import LeaseLostError
from afterslip_service.placement.base import Ended, Placement
from afterslip_service.reconcile import acceptance, receipts, reuse, watch
from afterslip_service.reconcile.context import Context
from afterslip_service.reconcile.leadership import RENEWALS, Leadership, holder_name
from afterslip_service.reconcile.scrubber import Scrubber
from afterslip_service.reconcile.sender import Sender
from afterslip_service.settings import Settings
from afterslip_workers import entry
from afterslip_workers.messages import Envelope, Group

SWEEP_EVERY_S = 60.0
KEEP_KEYS = timedelta(days=2)
KEEP_DELIVERIES = timedelta(days=30)
WATCH_EVERY_S = 0.5
CLOSE_EVERY_S = 5.0
# items of one transaction: it should hold its locks for a moment only
MOST = 128
# a lost attempt may still be writing; by then it has been asked to stop
LINGER = timedelta(minutes=10)
SWEPT_AT_ONCE = 500
# of what a job says, which the worker has to know of its group
_PLANNED = ("sources", "taken")

log = structlog.get_logger()


class Dispatcher:
    """Reconciles the database with a placement, in a thread of its own.

    Every look at the database (``tick``) starts from nothing but the database, so
    that it does not matter which dispatcher made the last one, or how it died.
    """

    def __init__(
        self, database: Database, placement: Placement, settings: Settings
    ) -> None:
        holder = holder_name()
        self.context = Context(database, placement, settings, holder)
        self.leadership = Leadership(database, holder, settings.lease)
        self.scrubber = Scrubber(self.context)
        self.sender = Sender(self.context)
        self._stop = threading.Event()
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None
        self._ended: deque[Ended] = deque()
        self._swept = float("-inf")
        self._closed = float("-inf")
        self._watched = float("-inf")
        self._beat = float("-inf")
        self.trouble: str | None = None

    @property
    def leads(self) -> bool:
        """True while this dispatcher holds the lease."""
        return self.context.lease is not None

    @property
    def alive(self) -> bool:
        """True while the loop turns."""
        thread = self._thread
        return thread is not None and thread.is_alive()

    def start(self) -> None:
        """Start the loop."""
        self._thread = threading.Thread(target=self._run, name="dispatcher")
        self._thread.start()
        self.scrubber.start()
        self.sender.start()

    def wake(self) -> None:
        """Make the loop look at once; losing a wake-up only costs one interval."""
        self._wake.set()

    def stop(self, timeout: float = 10.0) -> None:
        """Stop the loop and give the lease back."""
        # it gives its own lease back while we lead
        self.sender.stop(timeout)
        self.scrubber.stop(timeout)
        self._stop.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join(timeout)
            if self._thread.is_alive():
                # what it still writes must be refused once another one leads
                log.warning("the dispatcher is busy: its lease is left to run out")
                return
        lease, self.context.lease = self.context.lease, None
        if lease is not None:
            try:
                with self.context.database.write() as connection:
                    leases.release(connection, lease)
            except SQLAlchemyError as error:
                log.warning("the lease could not be given back", error=str(error))

    def _run(self) -> None:
        while not self._stop.is_set():
            self._wake.clear()
            try:
                self.tick()
                self.trouble = None
            except LeaseLostError:
                self._step_down()
            except Exception as error:  # the loop outlives everything
                self.trouble = f"{type(error).__name__}: {error}"
                log.error(
                    "a turn of the dispatcher failed", error=self.trouble, exc_info=True
                )
                self._stop.wait(self.context.settings.tick)
            self._wake.wait(self.context.settings.tick)

    def tick(self) -> None:
        """Look once at everything, and act."""
        if not self._lead():
            return
        watch.unplaced(self.context)
        self._receive()
        self._cancel()
        # slots that have become free are filled while what filled them is moved
        if acceptance.accept_all(self.context, meanwhile=self._claim):
            self.wake()
        self._watch()
        self._close()
        self._sweep()

    def _lead(self) -> bool:
        """Take or renew the lease; a new leader first puts the house in order."""
        settings = self.context.settings
        now = time.monotonic()
        if self.leads and now - self._beat < settings.lease / RENEWALS:
            return True
        if not self.leads and now - self._beat < min(
            settings.tick, settings.lease / 10
        ):
            return False
        lease = self.leadership.seek(self._facts())
        self._beat = now
        if lease is None:
            self._step_down()
            return False
        if lease != self.context.lease:
            self.context.lease = lease
            self.context.watched.clear()
            log.info("this dispatcher leads", holder=lease.holder, epoch=lease.epoch)
            self._swept = self._closed = float("-inf")
            watch.orphans(self.context)
        return True

    def _facts(self) -> dict[str, object]:
        """Return what other processes cannot see: who works for this dispatcher."""
        placement = self.context.placement
        return {"slots": placement.slots(), "trouble": placement.trouble()}

    def _step_down(self) -> None:
        if self.context.lease is not None:
            log.warning("another dispatcher leads now")
        self.context.lease = None

    def _receive(self) -> None:
        """Record what has ended; left for later while database or store is away."""
        self._ended.extend(self.context.placement.ended())
        while self._ended:
            some = [self._ended[n] for n in range(min(MOST, len(self._ended)))]
            try:
                receipts.take_all(self.context, some)
            except (SQLAlchemyError, LeaseLostError, entry.StoreLostError):
                raise
            except Exception:
                self._forget(len(some))
                raise
            self._forget(len(some))

    def _forget(self, count: int) -> None:
        for _ in range(count):
            self._ended.popleft()

    def _watch(self) -> None:
        now = time.monotonic()
        if now - self._watched >= min(WATCH_EVERY_S, self.context.settings.tick):
            self._watched = now
            watch.live(self.context)

    def _cancel(self) -> None:
        """Carry out what operators asked for."""
        with self.context.database.read() as connection:
            asked = campaigns.cancelling(connection)
        for campaign in asked:
            with self.context.write() as connection:
                if not campaigns.hold(connection, campaign).cancelling:
                    continue
                bulk.cancel_waiting(connection, campaign)
                campaigns.refresh(connection, campaign)
                live = jobs.live_tokens(connection, campaign)
            for token in live:
                entry.request_cancel(self.context.store, token)

    def _close(self) -> None:
        """Close what no acceptance closed: a cancel did it, or we died."""
        now = time.monotonic()
        if now - self._closed < CLOSE_EVERY_S:
            return
        self._closed = now
        with self.context.database.read() as connection:
            done = campaigns.unfinished(connection)
        for campaign in done:
            acceptance.close_campaign(self.context, campaign)

    def _claim(self) -> None:
        """Fill the free slots; the backlog stays in the database."""
        with self.context.database.read() as connection:
            busy = jobs.live_count(connection)
        free = self.context.placement.slots() - busy
        limit = self.context.settings.user_limit
        if free > 0 and not entry.reachable(self.context.store):
            # an attempt that began now could neither read the model nor keep a result
            return
        while free > 0 and not self._stop.is_set():
            with self.context.write() as connection:
                found = claims.claim(
                    connection, self.context.holder, min(free, MOST), limit
                )
                reuse.look_again(connection, found)
                # claims of other kinds leave their campaign in its state
                built = {
                    claim.job.campaign_id
                    for claim in found
                    if claim.job.kind is JobKind.MODEL
                }
                campaigns.refresh_all(connection, built)
            if not found:
                return
            self._submit(found)
            free -= len(found)

    def _submit(self, found: list[Claim]) -> None:
        """Hand attempts to the placement; claims that it will not take go back."""
        self.context.unplaced.update(
            {claim.token: "the placement took no work" for claim in found}
        )
        for claim in found:
            try:
                self.context.placement.submit(self._envelope(claim))
            except Exception as error:
                message = f"the placement took no work: {error}"
                for token in self.context.unplaced:
                    self.context.unplaced[token] = message
                watch.unplaced(self.context)
                raise
            del self.context.unplaced[claim.token]

    def _envelope(self, claim: Claim) -> Envelope:
        """Return the task of an attempt, as the worker gets it."""
        job, settings = claim.job, self.context.settings
        next_time = retry.escalate(job.failures)
        avoid, backend = next_time.avoid, str(settings.backend)
        if next_time.backend and backend == "auto" and not _in_parts(claim):
            backend = next_time.backend
        return Envelope(
            token=claim.token,
            kind=job.kind.value,
            campaign=job.campaign_id,
            physics=claim.physics,
            spec=claim.canonical,
            store=str(settings.store),
            files_base=None if settings.files is None else str(settings.files),
            group=_group(job) if job.kind is JobKind.GROUP else None,
            inversion=job.payload if job.kind is JobKind.INVERSION else None,
            backend=backend,
            escalation=next_time.strict,
            avoid=self._avoided(job.id, avoid) if avoid else [],
            timeout_s=settings.attempt_timeout,
            max_elements=settings.max_elements,
        )

    def _avoided(self, job: str, classes: frozenset[str]) -> list[str]:
        """Return the workers that another attempt at a job should not go to."""
        with self.context.database.read() as connection:
            return attempts.workers_that_failed(connection, job, classes)

    def _sweep(self) -> None:
        """Drop what nobody will ask for again."""
        now = time.monotonic()
        if now - self._swept < SWEEP_EVERY_S:
            return
        self._swept = now
        keep = timedelta(seconds=self.context.settings.keep_progress)
        with self.context.write() as connection:
            events.prune(connection, [events.GROUP_PROGRESS], clock.now() - keep)
            idempotency.prune(connection, clock.now() - KEEP_KEYS)
            webhooks.prune(connection, clock.now() - KEEP_DELIVERIES)
            if repaired := queue.repair(connection):
                log.error("campaigns were missing from the queue", count=repaired)
        self._sweep_attempts()
        entry.sweep_checkpoints(self.context.store)

    def _sweep_attempts(self) -> None:
        """Remove what attempts left that were lost, or whose end we missed."""
        store = self.context.store
        tokens = entry.attempt_tokens(store)[:SWEPT_AT_ONCE]
        with self.context.database.read() as connection:
            settled = attempts.settled(connection, tokens, clock.now() - LINGER)
        for token in settled:
            entry.discard(store, token)


def _group(job: Job) -> Group:
    planned = {name: job.payload[name] for name in _PLANNED if name in job.payload}
    return Group.model_validate({"index": job.index, **planned})


def _in_parts(claim: Claim) -> bool:
    """Tell whether several GPUs share the group, for which a CPU is no substitute."""
    try:
        return find(claim.physics).gpus(claim.canonical) > 1
    except SpecError:
        # its package is not installed here; the worker says so of itself
        return False
