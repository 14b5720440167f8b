"""Progress of an attempt, which is its sign of life as well."""

from __future__ import annotations

import json
import logging
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from afterslip_workers.messages import Progress, TaskError, read_progress
from afterslip_workers.store import paths
from afterslip_workers.store.backend import StoreBackend, read_json
from afterslip_workers.store.paths import CANCEL, LOG, PROGRESS

log = logging.getLogger(__name__)

# a bucket is read and written less often than a disk: each time is a request
_SHARE_EVERY_S = 3.0
_TAIL = 1 << 14

_FIELDS = (
    "phase",
    "solves_done",
    "solves_expected",
    "iteration",
    "residual",
    "lane_residuals",
)


class ProgressFile:
    """Rewrites ``progress.json`` whenever something happens, and at least on beat.

    Not synchronised to the disk: it need not survive a crash, it must be cheap.

    Parameters
    ----------
    folder : in which the attempt works.
    shared : store that the file is sent to as well, where the folder is not in it.
    """

    def __init__(
        self,
        folder: Path,
        token: str,
        beat_s: float = 1.0,
        shared: StoreBackend | None = None,
    ) -> None:
        self._path = folder / PROGRESS
        self._shared = shared
        self._key = f"{paths.attempt(token)}/{PROGRESS}"
        self._sent = float("-inf")
        self._state = Progress(token=token, solves_done=0, updated=time.time())
        self._beat_s = beat_s
        self._written = float("-inf")

    def update(self, news: dict[str, Any]) -> None:
        """Take what the child says; written at the next beat.

        What an engine says wrongly is left out: it must not end the watch either.
        """
        known = {key: news[key] for key in _FIELDS if key in news}
        try:
            self._state = read_progress({**self._state.as_json(), **known})
        except TaskError as error:
            log.warning("progress left out: %s", error)

    def beat(self, *, force: bool = False) -> None:
        """Write the file if its time has come.

        A full disk must not end the watch over the child: then only the time of
        the file's last change moves.
        """
        moment = time.monotonic()
        if not force and moment - self._written < self._beat_s:
            return
        self._written = moment
        self._state = self._state.model_copy(update={"updated": time.time()})
        content = json.dumps(self._state.as_json())
        temporary = self._path.with_suffix(".partial")
        try:
            temporary.write_text(content)
            temporary.replace(self._path)
        except OSError:
            with suppress(OSError):
                os.utime(self._path)
        if self._shared is None or (not force and moment - self._sent < _SHARE_EVERY_S):
            return
        self._sent = moment
        with suppress(OSError):
            self._shared.write(self._key, content.encode())


def read(backend: StoreBackend, token: str) -> Progress | None:
    """Progress of an attempt; None before its first sign of life.

    Raises
    ------
    TaskError
        See `afterslip_workers.messages.read_progress`.
    """
    content = read_json(backend, f"{paths.attempt(token)}/{PROGRESS}")
    return read_progress(content) if isinstance(content, dict) else None


def request_cancel(backend: StoreBackend, token: str) -> None:
    """Ask an attempt to stop, from any process that sees the store."""
    backend.write(f"{paths.attempt(token)}/{CANCEL}", b"1")


def cancel_requested(backend: StoreBackend, token: str) -> bool:
    """Whether somebody asked the attempt to stop."""
    return backend.size(f"{paths.attempt(token)}/{CANCEL}") is not None


def log_tail(folder: Path, lines: int = 15) -> str:
    """Last lines of the log of an attempt that works here."""
    try:
        with (folder / LOG).open("rb") as stream:
            stream.seek(0, os.SEEK_END)
            stream.seek(max(stream.tell() - _TAIL, 0))
            return _last(stream.read(), lines)
    except OSError:
        return ""


def stored_log(backend: StoreBackend, token: str, lines: int) -> str:
    """Last lines of an attempt's log as the store has it."""
    return _last(backend.tail(f"{paths.attempt(token)}/{LOG}", _TAIL), lines)


def _last(content: bytes, lines: int) -> str:
    return "\n".join(content.decode(errors="replace").splitlines()[-lines:])
