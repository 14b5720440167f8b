"""What single processes use of NVIDIA's GPUs, as far as the driver tells it."""

from __future__ import annotations

import importlib
from collections.abc import Set
from functools import cache
from typing import Any

# of NVML: nothing was sampled, which pynvml also raises where it has worked
SUCCESS, NOT_FOUND = 0, 6
# device → the newest sample that was read, µs
_sampled: dict[int, int] = {}


@cache
def _nvml() -> Any:
    """Return the driver's library, None without a driver or its Python module."""
    try:
        nvml: Any = importlib.import_module("pynvml")
    except ImportError:
        return None
    try:
        nvml.nvmlInit()
    except nvml.NVMLError:
        return None
    return nvml


def used_by(pids: Set[int]) -> dict[str, float]:
    """Sum up what some processes use of the GPUs of this machine.

    Parameters
    ----------
    pids : of this machine; those of a container that the driver numbers otherwise are
        not found.

    Returns
    -------
    {"gpu_process_memory": bytes, "gpu_process_utilization": percent of the last
    moment in which a kernel of theirs ran, of their busiest GPU}; what the driver does
    not tell is missing, as the second is of a part of a GPU (MIG), and both are of
    processes that have nothing on a GPU. See ``nvmlDeviceGetComputeRunningProcesses``
    and ``nvmlDeviceGetProcessUtilization`` of the NVML API reference.
    """
    nvml = _nvml()
    if nvml is None:
        return {}
    memory: list[int] = []
    busy: list[int] = []
    for index in range(_count(nvml)):
        try:
            device = nvml.nvmlDeviceGetHandleByIndex(index)
            running = nvml.nvmlDeviceGetComputeRunningProcesses(device)
        except nvml.NVMLError:
            continue
        own = [process for process in running if process.pid in pids]
        memory += [p.usedGpuMemory for p in own if p.usedGpuMemory is not None]
        if own:
            busy += _busy(nvml, index, device, pids)
    found: dict[str, float] = {}
    if memory:
        found["gpu_process_memory"] = sum(memory)
    if busy:
        found["gpu_process_utilization"] = max(busy)
    return found


def _count(nvml: Any) -> int:
    try:
        return int(nvml.nvmlDeviceGetCount())
    except nvml.NVMLError:
        return 0


def _busy(nvml: Any, index: int, device: Any, pids: Set[int]) -> list[int]:
    """Percent that processes keep a GPU busy; empty where nobody can say."""
    try:
        samples = nvml.nvmlDeviceGetProcessUtilization(device, _sampled.get(index, 0))
    except nvml.NVMLError as error:
        return [0] if error.value in (SUCCESS, NOT_FOUND) else []
    _sampled[index] = max([_sampled.get(index, 0), *(s.timeStamp for s in samples)])
    latest: dict[int, Any] = {}
    for sample in sorted(samples, key=lambda one: one.timeStamp):
        latest[sample.pid] = sample
    return [min(sum(int(s.smUtil) for pid, s in latest.items() if pid in pids), 100)]
