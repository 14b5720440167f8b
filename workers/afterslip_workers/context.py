"""What a task may use besides its envelope."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from afterslip_workers.envelope import Envelope
from afterslip_workers.errors import CancelledError
from afterslip_workers.store.place import Place
from afterslip_workers.warm import WarmCache


@dataclass(frozen=True, slots=True)
class Context:
    """One attempt, seen from inside the child.

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
    warm: WarmCache

    @property
    def place(self) -> Place:
        """The store."""
        return self.envelope.place

    @property
    def folder(self) -> Path:
        """Folder of the attempt."""
        return self.envelope.folder

    def phase(self, name: str) -> None:
        """Say what begins now, unless it is time to stop.

        Raises
        ------
        CancelledError
            If the attempt was asked to stop.
        """
        if self.should_stop():
            raise CancelledError
        self.report({"phase": name})
