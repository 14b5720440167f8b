"""Whether this worker takes work, and until when it may finish what it has."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

FILE_ENV = "AFTERSLIP_DRAIN"
LIMIT_ENV = "AFTERSLIP_DRAIN_S"
LIMIT_S = 600.0


class Drain:
    """The end of a worker in good order.

    Once asked for, no attempt is begun; those that run may finish until the limit,
    then they leave a checkpoint and stop.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._busy = 0
        self._until: float | None = None

    def ask(self, limit_s: float) -> None:
        """Take no more work; later calls only shorten the time."""
        until = time.monotonic() + limit_s
        with self._lock:
            self._until = until if self._until is None else min(self._until, until)

    @property
    def asked(self) -> bool:
        """Whether no more work is taken."""
        return self._until is not None

    @property
    def over(self) -> bool:
        """Whether what still runs is to stop."""
        return self._until is not None and time.monotonic() >= self._until

    @property
    def busy(self) -> int:
        """Number of attempts that run."""
        return self._busy

    @contextmanager
    def working(self) -> Iterator[None]:
        """Count an attempt as running."""
        with self._lock:
            self._busy += 1
        try:
            yield
        finally:
            with self._lock:
                self._busy -= 1


def requested() -> float | None:
    """Return the limit in s if what started this worker asks for its end."""
    name = os.environ.get(FILE_ENV)
    if not name or not Path(name).exists():
        return None
    return float(os.environ.get(LIMIT_ENV, LIMIT_S))


drain = Drain()
