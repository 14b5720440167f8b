"""Memory that is free here, for any engine."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import psutil

from afterslip_common.graphics import ask, visible
from afterslip_workers.machine import heap, limit


def free_on_host() -> int:
    """Bytes that this process can still get of machine, cgroup and its own limit.

    What it holds for no array is given back before.
    """
    heap.give_back()
    free = int(psutil.virtual_memory().available)
    group = Path("/sys/fs/cgroup")
    with suppress(OSError, ValueError):
        most = int((group / "memory.max").read_text())
        used = int((group / "memory.current").read_text())
        free = min(free, most - used + _reclaimable(group))
    allowed = limit.of_child()
    if allowed is not None:
        free = min(free, allowed - int(psutil.Process().memory_info().rss))
    return max(free, 0)


def _reclaimable(group: Path) -> int:
    """Bytes of a cgroup that only remember files, and go when memory is wanted."""
    stat = dict(
        line.split() for line in (group / "memory.stat").read_text().splitlines()
    )
    return int(stat.get("active_file", 0)) + int(stat.get("inactive_file", 0))


def free_on_gpu(gpus: int = 1) -> int | None:
    """Bytes free on each GPU of this process, None if nobody can be asked.

    Parameters
    ----------
    gpus : how many of those that it sees; the fullest one counts.
    """
    chosen = (visible() or [])[:gpus]
    try:
        free = [int(value) for (value,) in ask("gpu", "memory.free", chosen)[:gpus]]
    except ValueError:
        return None
    return min(free) << 20 if free else None
