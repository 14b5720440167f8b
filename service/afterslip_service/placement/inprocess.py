"""Threads of this process instead of a cluster: for tests and for debugging."""

from __future__ import annotations

import os
import platform
import queue
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from afterslip.error_class import ErrorClass
from afterslip_service.placement.base import Ended, WorkerFacts
from afterslip_workers.messages import Envelope, Receipt

Execute = Callable[[Mapping[str, Any]], dict[str, Any]]


class InProcess:
    """A placement of ``slots`` threads.

    Parameters
    ----------
    execute : the task function.
    slots : attempts that run at the same time.
    wake : called when something has ended.
    """

    dies_with_us = True

    def __init__(
        self,
        execute: Execute,
        slots: int = 2,
        wake: Callable[[], None] = lambda: None,
    ) -> None:
        self._execute = execute
        self._slots = slots
        self.wake = wake
        self._pool = ThreadPoolExecutor(slots, thread_name_prefix="attempt")
        self._done: queue.SimpleQueue[Ended] = queue.SimpleQueue()
        self._held: set[str] = set()
        self._dropped: set[str] = set()
        self._lock = threading.Lock()

    def slots(self) -> int:
        """Return the number of threads."""
        return self._slots

    def submit(self, envelope: Envelope) -> None:
        """Run an attempt on the next free thread."""
        with self._lock:
            self._held.add(envelope.token)
        self._pool.submit(self._run, envelope.token, envelope.as_json())

    def _run(self, token: str, envelope: Mapping[str, Any]) -> None:
        try:
            if token in self._dropped:
                ended = Ended(
                    token, Receipt(token=token, outcome="cancelled").as_json()
                )
            else:
                ended = Ended(token, self._execute(envelope))
        except Exception as error:  # noqa: BLE001 - as a worker's death would end it
            ended = Ended(
                token, None, ErrorClass.INTERNAL, f"{type(error).__name__}: {error}"
            )
        with self._lock:
            self._dropped.discard(token)
        self._done.put(ended)
        self.wake()

    def forget(self, token: str) -> None:
        """Drop an attempt that no thread has begun."""
        with self._lock:
            if token in self._held:
                self._dropped.add(token)

    def ended(self) -> list[Ended]:
        """Return what has ended since the last call."""
        out = []
        while not self._done.empty():
            out.append(self._done.get())
        with self._lock:
            self._held -= {ended.token for ended in out}
        return out

    def holds(self) -> frozenset[str]:
        """Return the tokens that were not yet returned as ended."""
        with self._lock:
            return frozenset(self._held)

    def workers(self) -> list[WorkerFacts]:
        """Return this process as the only worker."""
        name = f"{platform.node()}:{os.getpid()}"
        return [WorkerFacts(name, "in-process", "running", self._slots)]

    def trouble(self) -> str | None:
        """Nothing can be wrong with threads."""
        return None

    def close(self) -> None:
        """Drop what waits; a thread that runs cannot be stopped and is left."""
        self._pool.shutdown(wait=False, cancel_futures=True)
