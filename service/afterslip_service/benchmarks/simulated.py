"""Workers that sleep instead of solving."""

from __future__ import annotations

import heapq
import threading
import time
from collections.abc import Callable

from afterslip_service.benchmarks.seeding import DIGEST
from afterslip_service.placement.base import Ended, WorkerFacts
from afterslip_workers.messages import (
    Envelope,
    Group,
    GroupManifest,
    Receipt,
    Stats,
)


class Sleepers:
    """A placement whose every attempt is stored after some seconds.

    Parameters
    ----------
    slots : attempts at a time.
    seconds : that each takes.
    """

    dies_with_us = True

    def __init__(self, slots: int, seconds: float) -> None:
        self._slots, self._seconds = slots, seconds
        self._waiting: list[tuple[float, str, Ended]] = []
        self._held: set[str] = set()
        self._changed = threading.Condition()
        self._closed = False
        self.wake: Callable[[], None] = lambda: None
        self._clock = threading.Thread(target=self._tell, daemon=True)
        self._clock.start()

    def slots(self) -> int:
        """Return the number of sleepers."""
        return self._slots

    def submit(self, envelope: Envelope) -> None:
        """Let one sleep."""
        token, ended = envelope.token, _stored(envelope, self._seconds)
        with self._changed:
            self._held.add(token)
            when = time.monotonic() + self._seconds
            heapq.heappush(self._waiting, (when, token, ended))
            self._changed.notify()

    def forget(self, token: str) -> None:
        """Let it sleep on: its receipt will be refused."""

    def ended(self) -> list[Ended]:
        """Return those that have slept enough."""
        now, found = time.monotonic(), []
        with self._changed:
            while self._waiting and self._waiting[0][0] <= now:
                found.append(heapq.heappop(self._waiting)[2])
            self._held -= {ended.token for ended in found}
        return found

    def holds(self) -> frozenset[str]:
        """Return the tokens of those who sleep."""
        with self._changed:
            return frozenset(self._held)

    def workers(self) -> list[WorkerFacts]:
        """Return no workers: there are none."""
        return []

    def trouble(self) -> str | None:
        """Return no trouble."""
        return None

    def close(self) -> None:
        """End the clock."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._clock.join()

    def _tell(self) -> None:
        """Wake the dispatcher whenever somebody has slept enough."""
        while True:
            with self._changed:
                left = self._left()
                while not self._closed and (left is None or left > 0):
                    self._changed.wait(left)
                    left = self._left()
                if self._closed:
                    return
            self.wake()
            time.sleep(0.005)

    def _left(self) -> float | None:
        return self._waiting[0][0] - time.monotonic() if self._waiting else None


def _stored(envelope: Envelope, seconds: float) -> Ended:
    """Return a receipt whose manifest promises no files."""
    token, group = envelope.token, envelope.group
    stats = Stats(seconds=seconds, worker="sleeper", solves=0)
    manifest = GroupManifest(
        token=token,
        kind="greens",
        campaign=envelope.campaign,
        model_digest=DIGEST,
        group=Group(index=group.index if group else 0, sources=envelope.sources),
        files={},
        stats=stats,
    )
    receipt = Receipt(token=token, outcome="stored", manifest=manifest, stats=stats)
    return Ended(token, receipt.as_json())
