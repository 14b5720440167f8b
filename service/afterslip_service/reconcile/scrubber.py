"""The scrubber: reads all that is stored, slowly, and takes back what is damaged.

It runs beside the dispatcher that leads, in a thread of its own. How far it has come
is recorded in the facts of its lease, so that it goes on there after a restart
and in another process.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from typing import Any

import structlog

from afterslip_service.db import events, leases, scrubbing
from afterslip_service.db.leases import Lease
from afterslip_service.db.scrubbing import LEASE, Result
from afterslip_service.db.session import Connection, SQLAlchemyError
from afterslip_service.engine.states import JobKind
from afterslip_service.errors import LeaseLostError
from afterslip_service.reconcile import damage
from afterslip_service.reconcile.context import Context
from afterslip_workers import entry
from afterslip_workers.messages import GroupManifest

log = structlog.get_logger()

# s; a service that has just started has more urgent things to do
BEGIN_S = 60.0
LOOK_S = 1.0
# s after which damage is looked at once more: the store may have been away
CONFIRM_S = 2.0
RETRY_S = 30.0
SAVE_S = 5.0
# between two results, so that many small ones do not keep the database busy
PAUSE_S = 0.005
LEASE_S = 30.0
MODELS, FILES, RESULTS = "models", "files", "results"
HINTS = {
    MODELS: "`afterslip fsck --repair` removes it; it is built anew",
    FILES: "upload the file again",
    RESULTS: "run `afterslip fsck --repair`",
}


class _StoppedError(Exception):
    """The service stops, or somebody else leads now."""


@dataclass(slots=True)
class Record:
    """How far a scrubber has come; times in s since 1970.

    Attributes
    ----------
    stage, after : what is being read, and the last thing of it that was.
    began : when this reading of everything began; 0 between two.
    verified : when the last whole reading began: all older was read since.
    bytes, files, damaged, cycles : totals.
    """

    stage: str = MODELS
    after: Any = None
    began: float = 0.0
    verified: float = 0.0
    bytes: int = 0
    files: int = 0
    damaged: int = 0
    cycles: int = 0

    @classmethod
    def of(cls, facts: dict[str, Any]) -> Record:
        """Read a record, also one of another release."""
        names = {field.name for field in fields(cls)}
        return cls(**{key: value for key, value in facts.items() if key in names})


class Scrubber:
    """Reads the store while this process leads.

    Parameters
    ----------
    context : the dispatcher's, whose lease says who leads.
    """

    def __init__(self, context: Context) -> None:
        self._context, self._settings = context, context.settings
        self._database = context.database
        self._stored = entry.Stored(context.store)
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._lead: Lease | None = None
        self._record = Record()
        self._saved = self._due = 0.0
        self.trouble: str | None = None

    def start(self) -> None:
        """Start reading, unless the settings say never."""
        if self._settings.scrub_rate > 0:
            self._thread = threading.Thread(target=self._run, name="scrubber")
            self._thread.start()

    def stop(self, timeout: float = 10.0) -> None:
        """Stop, in the middle of a file if need be."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(timeout)

    def _run(self) -> None:
        wait = BEGIN_S
        while not self._stop.wait(wait):
            wait = LOOK_S
            try:
                self._turn()
                self.trouble = None
            except (_StoppedError, LeaseLostError):
                if not self._stop.is_set():
                    self._lead = None
            except Exception as error:  # noqa: BLE001 - it outlives everything
                # database or store are away, and what was read of a file is forgotten
                trouble = f"{type(error).__name__}: {error}"
                if trouble != self.trouble:
                    log.warning("the scrubber waits", reason=trouble)
                self.trouble, wait = trouble, RETRY_S
        self._give_back()

    def _turn(self) -> None:
        """Read what is due, until all of it was."""
        if not self._begin():
            return
        record = self._record
        if not record.began:
            if not self._is_due():
                return
            record.began, record.stage, record.after = time.time(), MODELS, None
        for shelf, after in ((MODELS, FILES), (FILES, RESULTS)):
            if record.stage == shelf:
                self._read_shelf(shelf)
                record.stage, record.after = after, None
        while not self._stop.wait(PAUSE_S):
            place = None if record.after is None else tuple(record.after)
            with self._database.read() as connection:
                result = scrubbing.following(connection, place)
            if result is None:
                self._end()
                return
            try:
                self._read_result(result)
            except (KeyError, TypeError, ValueError) as error:
                # one that cannot be understood must not hold up the others
                log.error("not read", place=result.place, error=repr(error))
            record.after = list(result.place)

    def _end(self) -> None:
        """Write down that everything was read."""
        record = self._record
        record.verified, record.began = record.began, 0.0
        record.cycles += 1
        self._save()

    def _begin(self) -> bool:
        """Take the lease and the record; False while somebody else has them."""
        lead = self._context.lease
        if lead is None or lead != self._lead:
            self._lead = None
        if lead is None or not entry.reachable(self._settings.store):
            return False
        if self._lead is None:
            self._lead = lead
            with self._write() as connection:
                # both at once: another scrubber may be about to write its last record
                self._record = Record.of(scrubbing.record(connection))
                self._acquire(connection)
        elif self._record.began or self._is_due():
            self._save()
        return True

    def _is_due(self) -> bool:
        """Tell whether everything is to be read anew."""
        rest = 3600.0 * self._settings.scrub_every
        return time.time() >= self._record.verified + rest

    @contextmanager
    def _write(self) -> Iterator[Connection]:
        """Open a writing transaction in which we are sure to lead."""
        if self._lead is None or self._lead != self._context.lease:
            raise _StoppedError
        with self._database.write() as connection:
            leases.hold(connection, self._lead)
            yield connection
        self._context.after_commit()

    def _save(self) -> None:
        """Renew the lease and write the record down.

        Raises
        ------
        _StoppedError
            If another scrubber holds the lease still.
        """
        with self._write() as connection:
            self._acquire(connection)
        self._saved = time.monotonic()

    def _acquire(self, connection: Connection) -> Lease:
        facts, holder = asdict(self._record), self._context.holder
        mine = leases.acquire(connection, LEASE, holder, LEASE_S, facts)
        if mine is None:
            raise _StoppedError
        return mine

    def _give_back(self) -> None:
        """Write the record down for the next one, who need not wait for the lease."""
        try:
            with self._write() as connection:
                leases.release(connection, self._acquire(connection))
        except (_StoppedError, LeaseLostError, SQLAlchemyError):
            # it runs out, and what was read since the last record is read again
            return

    def _paced(self, count: int) -> None:
        """Wait until the bytes that were read are within the rate."""
        self._record.bytes += count
        rate = 1e6 * self._settings.scrub_rate
        self._due = max(self._due, time.monotonic() - LOOK_S) + count / rate
        while True:
            if self._lead != self._context.lease:
                raise _StoppedError
            if time.monotonic() - self._saved > SAVE_S:
                self._save()
            left = self._due - time.monotonic()
            if self._stop.wait(min(max(left, 0.0), LOOK_S)):
                raise _StoppedError
            if left <= LOOK_S:
                return

    def _damaged(self, files: dict[str, str]) -> list[str]:
        """Return the damaged ones of some files; those that are so a second time."""
        found = self._stored.damaged(files, self._paced)
        if found:
            self._confirm()
            again = {key: files[key] for key in found}
            found = self._stored.damaged(again, self._paced)
        self._record.files += len(files)
        return found

    def _confirm(self) -> None:
        """Wait a moment, and make sure that the store is not away."""
        if self._stop.wait(CONFIRM_S):
            raise _StoppedError
        if not entry.reachable(self._settings.store):
            raise entry.StoreLostError(f"the store {self._settings.store} is away")

    def _read_shelf(self, shelf: str) -> None:
        """Read cached models or uploads."""
        for name in self._stored.names(shelf):
            if self._record.after is not None and name <= self._record.after:
                continue
            files = self._stored.of_shelf(shelf, name)
            if keys := self._damaged(files):
                self._tell(None, shelf, keys)
            self._record.after = name

    def _read_result(self, result: Result) -> None:
        """Read what an accepted attempt wrote, and take it back if it is damaged."""
        try:
            # first: a store whose root is gone could take no new result
            fixed = self._stored.of_campaign(result.campaign)
        except entry.StoreError as error:
            self._confirm()
            if result.kind is JobKind.MODEL:
                self._tell_of(result, [str(error)])
            return
        if result.kind is JobKind.MODEL:
            if keys := self._damaged(fixed):
                self._tell_of(result, keys)
            return
        files = self._stored.of_result(result.campaign, result.manifest)
        if keys := self._damaged(files):
            again = [(result.manifest, keys)]
            store = self._settings.store
            if damage.make_again(self._write, store, result.campaign, again):
                self._record.damaged += len(keys)
                self._save()
        elif isinstance(result.manifest, GroupManifest) and not (
            self._stored.checksums_hold(result.campaign, result.manifest)
        ):
            self._restore(result, result.manifest)

    def _restore(self, result: Result, manifest: GroupManifest) -> None:
        """Write the checksums of a group anew whose files are whole."""
        with self._database.read() as connection:
            if not scrubbing.holds(connection, result):
                return
        self._stored.write_checksums(result.campaign, manifest)
        where = {"campaign": result.campaign, "index": result.index}
        log.warning("damaged checksums", **where, then="written from the manifest")

    def _tell_of(self, result: Result, keys: list[str]) -> None:
        """Say what is damaged of a campaign, unless it was deleted meanwhile."""
        with self._database.read() as connection:
            if not scrubbing.holds(connection, result):
                return
        self._tell(result.campaign, RESULTS, keys)

    def _tell(self, campaign: str | None, stage: str, keys: list[str]) -> None:
        """Say what is damaged that does not come back by itself."""
        kind = {MODELS: "model", FILES: "upload", RESULTS: "campaign"}[stage]
        data = {"kind": kind, "files": keys, "again": False, "hint": HINTS[stage]}
        log.error("damaged files", campaign=campaign, **data)
        with self._write() as connection:
            events.append(connection, campaign, events.STORE_DAMAGED, data)
        self._record.damaged += len(keys)
        self._save()


def oldest(record: Record) -> float | None:
    """Return the age of the oldest verification, s; None before the first reading."""
    return time.time() - record.verified if record.verified else None
