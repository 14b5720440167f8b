"""Attempts that a child carries out which misbehaves on demand."""

import threading
import time
from pathlib import Path

from afterslip_workers import entry
from afterslip_workers.messages import VERSION

FAKE = str(Path(__file__).parent / "fake_child.py")


def envelope(store, token="a1", timeout_s=None, **order):
    return {
        "version": VERSION,
        "token": token,
        "kind": "group",
        "campaign": "c1",
        "physics": "viscoelastic",
        "spec": order,
        "store": str(store),
        "group": {"index": 0, "sources": [0]},
        "timeout_s": timeout_s,
    }


def wait_for_phase(store, phase, token="a1"):
    end = time.monotonic() + 20
    while time.monotonic() < end:
        found = entry.read_progress(store, token)
        if found and found.phase == phase:
            return found
        time.sleep(0.02)
    raise AssertionError(f"{phase} never reached, last {found}")


class Attempt:
    """An attempt in a thread of its own, as Dask runs it."""

    def __init__(self, store, token, **order):
        self._store, self._token = store, token
        self._thread = threading.Thread(target=self._run, args=(order,))
        self._thread.start()

    def _run(self, order):
        order.setdefault("do", "nothing")
        self._receipt = entry.execute(envelope(self._store, self._token, **order))

    def touch(self, name):
        (self._store / "attempts" / self._token / name).touch()

    @property
    def ended(self):
        return not self._thread.is_alive()

    def receipt(self):
        self._thread.join(30)
        return self._receipt
