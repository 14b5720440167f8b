"""What a task may use besides its envelope."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from afterslip.spec.files import StoredFiles
from afterslip_workers.errors import CancelledError
from afterslip_workers.machine.model_cache import ModelCache
from afterslip_workers.messages import Envelope
from afterslip_workers.store import spool, uploads
from afterslip_workers.store.backend import StoreBackend
from afterslip_workers.store.open import open_store


class Laps:
    """How long each phase of a task takes."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}
        self._name, self._since = "starting", time.monotonic()

    def begin(self, name: str) -> None:
        """End the phase before, and begin another."""
        now = time.monotonic()
        before = self._seconds.get(self._name, 0.0)
        self._seconds[self._name] = before + now - self._since
        self._name, self._since = name, now

    def seconds(self) -> dict[str, float]:
        """Return the seconds of each phase until now."""
        self.begin(self._name)
        return {name: round(value, 4) for name, value in self._seconds.items()}


@dataclass(frozen=True, slots=True)
class Context:
    """One attempt, from inside the child.

    Attributes
    ----------
    envelope : the work.
    report : takes progress: {"phase", "solves_done", "solves_expected",
        "residual", "lane_residuals"}, any part of it.
    should_stop : becomes true when the attempt is cancelled.
    warm : objects that outlive the attempt.
    """

    envelope: Envelope
    report: Callable[[dict[str, Any]], None]
    should_stop: Callable[[], bool]
    warm: ModelCache
    laps: Laps = field(default_factory=Laps)

    @property
    def store_backend(self) -> StoreBackend:
        """The store."""
        return open_store(self.envelope.store)

    @property
    def files(self) -> StoredFiles:
        """Files that the spec may name."""
        return uploads.files_of(self.store_backend, self.envelope.files_base)

    @property
    def folder(self) -> Path:
        """Folder of the attempt."""
        return spool.folder_of(self.envelope)

    def phase(self, name: str) -> None:
        """Say what begins now, unless it is time to stop.

        Raises
        ------
        CancelledError
            If the attempt was asked to stop.
        """
        if self.should_stop():
            raise CancelledError
        self.lap(name)

    def lap(self, name: str) -> None:
        """Say what begins now, where it is too late to stop."""
        self.laps.begin(name)
        self.report({"phase": name})
