"""Half-solved groups: what a killed attempt had solved, for the next one.

::

    checkpoints/<digest>/<sha256>.npz      a state
    checkpoints/<digest>/latest.json       names it, with its checksum and counts

The digest is of all that changes a group's numbers, so that any attempt, in any
campaign, finds what an earlier one has left. What does not read back as it was
written is taken for absent, and said.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from afterslip_workers.store import durable, paths, spool
from afterslip_workers.store.backend import StoreBackend, read_json, write_json

if TYPE_CHECKING:
    from afterslip_solver.greens.checkpoint import State

LIMIT_ENV = "AFTERSLIP_CHECKPOINT_S"
BYTES_ENV = "AFTERSLIP_CHECKPOINT_BYTES"
LATEST = "latest.json"
# nobody comes back for what has lain that long
KEEP_S = 7 * 86400.0

_LIMIT_S = 60.0
_MOST_BYTES = 16e9
# saving may take one part in so many of the time
_SHARE = 20.0


def digest_of(*parts: Any) -> str:
    """Name of the checkpoints of what these plain values describe."""
    text = json.dumps(parts, sort_keys=True, default=repr)
    return hashlib.sha256(text.encode()).hexdigest()[:40]


class Checkpoints:
    """Keeps a run's states in the store; the solver's ``Checkpointer``.

    Parameters
    ----------
    key : `digest_of` the group's numerics.
    limit_s : a group that is expected to take less is not stored at all.
    most : bytes that a state may have.

    Attributes
    ----------
    resumed_from : solves that were not done again; 0 for a run from the start.
    repeated : solves that an earlier attempt had done or begun in vain.
    notes : what a person should know, e.g. of a damaged state.
    """

    def __init__(
        self,
        backend: StoreBackend,
        key: str,
        limit_s: float | None = None,
        most: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.backend, self.key = backend, key
        self._folder = paths.checkpoint(key)
        self._limit = _number(LIMIT_ENV, _LIMIT_S) if limit_s is None else limit_s
        self._most = _number(BYTES_ENV, _MOST_BYTES) if most is None else most
        self._clock = clock
        self._began = self._saved = clock()
        self._cost = 0.0
        self._done = self._expected = 0
        self._first = 0
        self._file: str | None = None
        self._note: dict[str, Any] | None = None
        self.resumed_from = 0
        self.repeated = 0
        self.notes: list[str] = []

    def note_progress(self, news: dict[str, Any]) -> None:
        """Hear of the run's progress."""
        self._expected = int(news.get("solves_expected") or self._expected)

    def load(self) -> State | None:
        """Return the newest state that is whole, or None."""
        try:
            known = read_json(self.backend, f"{self._folder}/{LATEST}")
            if not isinstance(known, dict):
                return None
            state = self._read(known)
        except OSError as error:
            self.notes.append(f"the checkpoint could not be read: {error}")
            return None
        if state is None:
            self.notes.append("a damaged checkpoint was ignored")
            self.drop()
            return None
        self._file = str(known["file"])
        self._first = self._done = self.resumed_from = int(known["solves"])
        # what was finished after the state was stored, and the solve under way
        reached = int(known.get("reached") or known["solves"])
        self.repeated = max(reached - self.resumed_from, 0) + 1
        return state

    def _read(self, known: dict[str, Any]) -> State | None:
        key = f"{self._folder}/{known.get('file')}"
        if (
            self.backend.size(key) is None
            or self.backend.sha256(key) != known["sha256"]
        ):
            return None
        with self.backend.local(key) as path, np.load(path) as stored:
            return dict(stored.items())

    def due(self) -> bool:
        """Whether a state is worth its cost; asked after every solve."""
        self._done += 1
        now = self._clock()
        each = (now - self._began) / max(self._done - self._first, 1)
        if each * max(self._expected, self._done) < self._limit:
            return False
        if now - self._saved >= _SHARE * self._cost or self._limit == 0.0:
            return True
        self._reach()
        return False

    def _reach(self) -> None:
        """Note a solve whose state is not stored, so that a successor can say so."""
        if self._note is not None:
            self._note["reached"] = self._done
            with suppress(OSError):
                write_json(self.backend, f"{self._folder}/{LATEST}", self._note)

    def save(self, state: State) -> None:
        """Keep a state; a store that refuses costs the checkpoint, not the run."""
        size = sum(array.nbytes for array in state.values())
        if size > self._most:
            note = f"a state of {size / 1e9:.1f} GB is too large to be stored"
            if note not in self.notes:
                self.notes.append(note)
            return
        began = self._clock()
        try:
            self._write(state)
        except OSError as error:
            self.notes.append(f"a checkpoint could not be written: {error}")
        self._saved = self._clock()
        self._cost = self._saved - began

    def _write(self, state: State) -> None:
        handle, name = tempfile.mkstemp(".npz", "state-", spool.made_root())
        path = Path(name)
        try:
            with os.fdopen(handle, "wb") as stream:
                arrays: dict[str, Any] = dict(state)
                np.savez(stream, **arrays)
            content = durable.sha256(path)
            file = f"{content}.npz"
            self.backend.upload(path, f"{self._folder}/{file}")
        finally:
            path.unlink()
        solves = int(state["solves"])
        self._note = {"file": file, "sha256": content, "solves": solves}
        self._note["time"] = time.time()
        write_json(self.backend, f"{self._folder}/{LATEST}", self._note)
        old, self._file = self._file, file
        if old not in {None, file}:
            self.backend.remove(f"{self._folder}/{old}")

    def drop(self) -> None:
        """Forget all states."""
        self.resumed_from = self.repeated = self._first = self._done = 0
        with suppress(OSError):
            discard(self.backend, self.key)

    def stats(self) -> dict[str, Any]:
        """Return what the attempt's record says of it."""
        found: dict[str, Any] = {"checkpoint": self.key}
        if self.resumed_from:
            found["resumed_from"] = self.resumed_from
            found["solves_repeated"] = self.repeated
        if self.notes:
            found["notes"] = self.notes
        return found


def _number(variable: str, default: float) -> float:
    given = os.environ.get(variable)
    return float(given) if given else default


def discard(backend: StoreBackend, key: str) -> None:
    """Remove a group's checkpoints; absent ones are no error."""
    backend.remove(paths.checkpoint(key))


def sweep(backend: StoreBackend, now: float) -> int:
    """Remove what nobody came back for in a week; return how many."""
    count = 0
    for key in backend.names(paths.CHECKPOINTS):
        known = read_json(backend, f"{paths.checkpoint(key)}/{LATEST}")
        if isinstance(known, dict) and now - float(known.get("time", now)) > KEEP_S:
            discard(backend, key)
            count += 1
    return count
