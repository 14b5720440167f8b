"""The dispatcher: one leader that brings the work in line with the database."""

from __future__ import annotations

import os
import platform
import threading
import time
from collections import deque
from datetime import timedelta

import structlog

from afterslip_service import clock
from afterslip_service.db import (
    attempts,
    campaigns,
    claims,
    events,
    idempotency,
    jobs,
    leases,
)
from afterslip_service.db.claims import Claim
from afterslip_service.db.session import Database, SQLAlchemyError
from afterslip_service.engine import retry
from afterslip_service.engine.states import JobKind
from afterslip_service.errors import LeaseLostError
from afterslip_service.placement.base import Ended, Placement
from afterslip_service.reconcile import failures, receipts, watch
from afterslip_service.reconcile.context import Context
from afterslip_service.settings import Settings
from afterslip_workers import entry

LEASE = "dispatcher"
SWEEP_EVERY_S = 60.0
KEEP_KEYS = timedelta(days=2)
WATCH_EVERY_S = 0.5
# a lost attempt may still be writing; by then it has been told to stop
LINGER = timedelta(minutes=10)
SWEPT_AT_ONCE = 500

log = structlog.get_logger()


class Dispatcher:
    """Reconciles the database with a placement, in a thread of its own.

    Every look at the database (``tick``) starts from nothing but the database, so
    that it does not matter which dispatcher made the last one, or how it died.
    """

    def __init__(
        self, database: Database, placement: Placement, settings: Settings
    ) -> None:
        holder = f"{platform.node()}:{os.getpid()}:{clock.new_id()[-6:]}"
        self.context = Context(database, placement, settings, holder)
        self._stop = threading.Event()
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None
        self._ended: deque[Ended] = deque()
        self._swept = float("-inf")
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

    def wake(self) -> None:
        """Make the loop look at once; losing a wake-up only costs one interval."""
        self._wake.set()

    def stop(self, timeout: float = 10.0) -> None:
        """Stop the loop and give the lease back."""
        self._stop.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join(timeout)
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
                log.error("the dispatcher stumbled", error=self.trouble, exc_info=True)
                self._stop.wait(self.context.settings.tick)
            self._wake.wait(self.context.settings.tick)

    def tick(self) -> None:
        """Look once at everything, and act."""
        if not self._lead():
            return
        self._receive()
        self._watch()
        self._accept()
        self._cancel()
        self._close()
        self._claim()
        self._sweep()

    def _lead(self) -> bool:
        """Take or renew the lease; a new leader first puts the house in order."""
        settings = self.context.settings
        now = time.monotonic()
        if self.leads and now - self._beat < settings.lease / 3:
            return True
        with self.context.database.write() as connection:
            lease = leases.acquire(
                connection, LEASE, self.context.holder, settings.lease
            )
        if lease is None:
            self._step_down()
            return False
        self._beat = now
        if lease != self.context.lease:
            self.context.lease = lease
            self.context.watched.clear()
            log.info("this dispatcher leads", holder=lease.holder, epoch=lease.epoch)
            watch.orphans(self.context)
        return True

    def _step_down(self) -> None:
        if self.context.lease is not None:
            log.warning("another dispatcher leads now")
        self.context.lease = None

    def _receive(self) -> None:
        """Write down what has ended; what the database refuses is kept for later."""
        self._ended.extend(self.context.placement.ended())
        while self._ended:
            try:
                receipts.take(self.context, self._ended[0])
            except (SQLAlchemyError, LeaseLostError):
                raise
            except Exception:
                self._ended.popleft()
                raise
            self._ended.popleft()

    def _watch(self) -> None:
        now = time.monotonic()
        if now - self._watched >= min(WATCH_EVERY_S, self.context.settings.tick):
            self._watched = now
            watch.live(self.context)

    def _accept(self) -> None:
        with self.context.database.read() as connection:
            stored = jobs.stored(connection)
        for job in stored:
            receipts.accept(self.context, job)

    def _cancel(self) -> None:
        """Carry out what operators asked for."""
        with self.context.database.read() as connection:
            asked = campaigns.cancelling(connection)
        for campaign in asked:
            with self.context.write() as connection:
                campaigns.get(connection, campaign, lock=True, deleted=True)
                jobs.cancel_waiting(connection, campaign)
                campaigns.refresh(connection, campaign)
                live = [
                    attempt.token
                    for attempt in attempts.live(connection)
                    if attempt.campaign_id == campaign
                ]
            for token in live:
                entry.request_cancel(self.context.store, token)

    def _close(self) -> None:
        with self.context.database.read() as connection:
            done = campaigns.unfinished(connection)
        for campaign in done:
            receipts.close_campaign(self.context, campaign)

    def _claim(self) -> None:
        """Fill the free slots; the backlog stays in the database."""
        with self.context.database.read() as connection:
            busy = len(attempts.live(connection))
        free = self.context.placement.slots() - busy
        while free > 0 and not self._stop.is_set():
            with self.context.write() as connection:
                found = claims.claim(connection, self.context.holder, free)
                campaigns.refresh_all(connection, {c.job.campaign_id for c in found})
            if not found:
                return
            for claim in found:
                self._submit(claim)
            free -= len(found)

    def _submit(self, claim: Claim) -> None:
        """Hand an attempt to the placement; a claim that it will not take goes back."""
        try:
            self.context.placement.submit(claim.token, self._envelope(claim))
        except Exception as error:
            with self.context.write() as connection:
                job = jobs.get(connection, claim.job.id)
                message = f"the placement took no work: {error}"
                failures.fail(connection, job, claim.token, retry.INTERRUPTED, message)
            raise

    def _envelope(self, claim: Claim) -> dict[str, object]:
        """Return what the worker is told."""
        job, settings = claim.job, self.context.settings
        greens = {"index": job.index, **job.payload}
        return {
            "version": entry.VERSION,
            "token": claim.token,
            "kind": job.kind.value,
            "campaign": job.campaign_id,
            "spec": claim.canonical,
            "store": str(settings.store),
            "files_base": None if settings.files is None else str(settings.files),
            "group": greens if job.kind is JobKind.GREENS else None,
            "inversion": job.payload if job.kind is JobKind.INVERSION else None,
            "backend": settings.backend,
            "timeout_s": settings.attempt_timeout,
        }

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
        self._sweep_attempts()

    def _sweep_attempts(self) -> None:
        """Remove what attempts left that were lost, or whose end we missed."""
        store = self.context.store
        tokens = entry.attempt_tokens(store)[:SWEPT_AT_ONCE]
        with self.context.database.read() as connection:
            settled = attempts.settled(connection, tokens, clock.now() - LINGER)
        for token in settled:
            entry.discard(store, token)
