"""What this worker's processes use of the machine, and what they work at."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psutil

from afterslip_workers.machine import device, gpu_use, limit
from afterslip_workers.messages import Envelope

_at_work: dict[str, dict[str, Any]] = {}
_known: dict[int, psutil.Process] = {}


@contextmanager
def working_at(envelope: Envelope) -> Iterator[None]:
    """Let `measure` name an attempt while it is under way."""
    _at_work[envelope.token] = {
        "campaign": envelope.campaign,
        "kind": envelope.kind,
        "index": None if envelope.group is None else envelope.group.index,
    }
    try:
        yield
    finally:
        _at_work.pop(envelope.token, None)


def measure() -> dict[str, Any]:
    """Sum up this process and those that compute for it.

    Returns
    -------
    {"cpu_percent": since the last call, 100 is one core, "memory_used",
    "memory_limit": bytes, None where there is none, "host", "gpus": names,
    "at_work": [{"campaign", "kind", "index"}]}, and what `gpu_use.used_by` finds
    of these processes
    """
    percent, memory = 0.0, 0
    own = psutil.Process()
    pids = set()
    for process in (own, *own.children(recursive=True)):
        # the one object of a process remembers its last measurement
        process = _known.setdefault(process.pid, process)
        pids.add(process.pid)
        with suppress(psutil.Error):
            percent += process.cpu_percent()
            memory += int(process.memory_info().rss)
    for pid in [pid for pid, process in _known.items() if not process.is_running()]:
        del _known[pid]
    facts = device.describe()
    return {
        "cpu_percent": round(percent, 1),
        "memory_used": memory,
        "memory_limit": limit.of_child(),
        "host": facts["host"],
        "gpus": [gpu["name"] for gpu in facts["gpus"]],
        "at_work": list(_at_work.values()),
        **gpu_use.used_by(pids),
    }
