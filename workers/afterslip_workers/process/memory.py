"""Memory that a computing process holds, on the processor and on its GPU."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

import psutil

from afterslip_common.graphics import ask
from afterslip_workers.machine.device import graphics
from afterslip_workers.process.children import Child

# what a process that was cancelled may hold more than before, beside warm models:
# libraries that it has loaded meanwhile, and its allocator's slack
SLACK = 512 << 20
_GONE_WITHIN_S = 4.0


@dataclass(frozen=True, slots=True)
class Held:
    """Bytes that a process holds; on the GPU as the driver counts them."""

    resident: int
    gpu: int


def of(pid: int) -> Held:
    """Ask for the memory of a process; a process that is gone holds none."""
    return Held(resident(pid), _on_gpu(pid))


def resident(pid: int) -> int:
    """Bytes that a process holds of the host's memory; 0 if it is gone."""
    with suppress(psutil.Error):
        return int(psutil.Process(pid).memory_info().rss)
    return 0


def _on_gpu(pid: int) -> int:
    """Ask the driver, where there is one."""
    if not graphics():
        return 0
    total = 0
    for number, used in ask("compute-apps", "pid,used_memory", timeout_s=5.0):
        with suppress(ValueError):
            total += (int(used) << 20) if int(number) == pid else 0
    return total


def ensure_released(child: Child, before: Held, warm: int = 0) -> dict[str, Any]:
    """See that a stopped process gave its memory back, or end it.

    Parameters
    ----------
    before : what it held when the attempt began.
    warm : bytes of the models that it caches for the next attempt.

    Returns
    -------
    {"before", "after": {"resident", "gpu"} in bytes, "warm", "ended": whether the
    process was ended for it}.
    """
    after = of(child.pid) if child.alive else Held(0, _on_gpu(child.pid))
    grown = max(after.resident - before.resident, after.gpu - before.gpu)
    ended = False
    if child.alive and grown > SLACK + warm:
        child.kill()
        ended = True
    if not child.alive:
        end = time.monotonic() + _GONE_WITHIN_S
        while (gpu := _on_gpu(child.pid)) and time.monotonic() < end:
            time.sleep(0.2)
        after = Held(0, gpu)
    found = {"before": asdict(before), "after": asdict(after)}
    return {**found, "warm": warm, "ended": ended}
