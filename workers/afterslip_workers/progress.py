"""Progress of an attempt, which is its sign of life as well."""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from afterslip_workers.store.durable import read_json

FILE = "progress.json"
CANCEL = "cancel"
LOG = "log.txt"
MANIFEST = "manifest.json"

_FIELDS = ("phase", "solves_done", "solves_expected", "residual", "lane_residuals")


class ProgressFile:
    """Rewrites ``progress.json`` whenever something happens, and at least on beat.

    Not synchronised to the disk: it need not survive a crash, it must be cheap.
    """

    def __init__(self, folder: Path, token: str, beat_s: float = 1.0) -> None:
        self._path = folder / FILE
        self._state: dict[str, Any] = dict.fromkeys(_FIELDS)
        self._state.update(token=token, phase="starting", solves_done=0)
        self._beat_s = beat_s
        self._written = float("-inf")

    def update(self, news: dict[str, Any]) -> None:
        """Take what the child says; written at the next beat."""
        self._state.update({key: news[key] for key in _FIELDS if key in news})

    def beat(self, *, force: bool = False) -> None:
        """Write the file if its time has come.

        A full disk must not end the watch over the child: then only the time of
        the file's last change moves.
        """
        moment = time.monotonic()
        if not force and moment - self._written < self._beat_s:
            return
        self._written = moment
        self._state["updated"] = time.time()
        temporary = self._path.with_suffix(".partial")
        try:
            temporary.write_text(json.dumps(self._state))
            temporary.replace(self._path)
        except OSError:
            with suppress(OSError):
                os.utime(self._path)


def read(folder: Path) -> dict[str, Any] | None:
    """Progress of the attempt in ``folder``; None before its first sign of life."""
    content = read_json(folder / FILE)
    return content if isinstance(content, dict) else None


def request_cancel(folder: Path) -> None:
    """Ask an attempt to stop, from any process that sees its folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / CANCEL).touch()


def cancel_requested(folder: Path) -> bool:
    """Whether somebody asked the attempt to stop."""
    return (folder / CANCEL).exists()


def log_tail(folder: Path, lines: int = 15) -> str:
    """Last lines of an attempt's log."""
    try:
        with (folder / LOG).open("rb") as stream:
            stream.seek(0, os.SEEK_END)
            stream.seek(max(stream.tell() - 8192, 0))
            text = stream.read().decode(errors="replace")
    except FileNotFoundError:
        return ""
    return "\n".join(text.splitlines()[-lines:])
