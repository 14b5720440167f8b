"""Attempts that a child carries out which misbehaves on demand."""

import time
from pathlib import Path

from afterslip_workers import entry

FAKE = str(Path(__file__).parent / "fake_child.py")


def envelope(store, token="a1", timeout_s=None, **order):
    return {
        "version": entry.VERSION,
        "token": token,
        "kind": "group",
        "campaign": "c1",
        "spec": {},
        "store": str(store),
        "group": order,
        "timeout_s": timeout_s,
    }


def wait_for_phase(store, phase, token="a1"):
    end = time.monotonic() + 20
    while time.monotonic() < end:
        found = entry.read_progress(store, token)
        if found and found["phase"] == phase:
            return found
        time.sleep(0.02)
    raise AssertionError(f"{phase} never reached, last {found}")
