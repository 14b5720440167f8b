"""Brings what waits in the spool to its stores, in order, as soon as they are back."""

from __future__ import annotations

import threading
from typing import Final

import structlog

from afterslip_workers.messages import TaskError
from afterslip_workers.store import spool
from afterslip_workers.store.backend import StoreBackend

FIRST_WAIT_S = 1.0
LONGEST_WAIT_S = 30.0

log = structlog.get_logger()


def deliver_all() -> int:
    """Deliver what can be delivered now; return how many entries still wait.

    A store that refuses once is not asked for its later entries: they arrive in
    the order in which they were made. What another process works on counts not.
    """
    left, refused = 0, set[str]()
    for backend, token in spool.waiting():
        if backend.name in refused:
            left += 1
            continue
        with spool.locked(backend, token) as ours:
            if not ours:
                continue
            if not _delivered(backend, token):
                refused.add(backend.name)
                left += 1
    return left


def _delivered(backend: StoreBackend, token: str) -> bool:
    try:
        spool.deliver(backend, token)
    except OSError:
        return False
    except TaskError as error:
        # it stays here, and holds up nothing: the others can be delivered
        log.warning("a result cannot be delivered", token=token, why=error.message)
    return True


class Deliverer:
    """A thread that lives while something waits."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._again = threading.Event()

    def kick(self) -> None:
        """Look at the spool now, and again until it is empty."""
        self._again.set()
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(
                    target=self._run, name="delivery", daemon=True
                )
                self._thread.start()

    def _run(self) -> None:
        wait = FIRST_WAIT_S
        while True:
            self._again.clear()
            left = deliver_all()
            with self._lock:
                if not left and not self._again.is_set():
                    self._thread = None
                    return
            if self._again.wait(wait):
                wait = FIRST_WAIT_S
            else:
                wait = min(2.0 * wait, LONGEST_WAIT_S)


deliverer: Final = Deliverer()
