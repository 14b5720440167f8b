"""Attempts that a child carries out which misbehaves on demand."""

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
