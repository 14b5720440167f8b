"""What the machine of this worker is, in a few words and numbers."""

from __future__ import annotations

import gc
import os
import platform
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import psutil

from afterslip_common.graphics import ask


def threads() -> int:
    """Threads that one solve may use: AFTERSLIP_THREADS, 1 without it."""
    return max(int(os.environ.get("AFTERSLIP_THREADS", "1")), 1)


@cache
def processor_name() -> str:
    """Name of the processor."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return " ".join(line.partition(":")[2].split())
    return platform.processor() or platform.machine()


@cache
def graphics() -> tuple[dict[str, Any], ...]:
    """List the CUDA devices of this machine, as the driver knows them."""
    found = []
    for name, memory in ask("gpu", "name,memory.total"):
        # a device that shares the host's memory says that it has none of its own
        with suppress(ValueError):
            found.append({"name": name, "memory_bytes": int(memory) << 20})
    return tuple(found)


def trim() -> int:
    """Give back the GPU memory that this process keeps but does not use.

    CuPy keeps what arrays leave, for later arrays; to others it is in use.

    Returns
    -------
    Bytes of the GPU that are still in use; 0 where no task here has used one.
    """
    gc.collect()
    cupy: Any = sys.modules.get("cupy")
    # an error of CUDA comes up in the next computation
    with suppress(AttributeError, RuntimeError):
        pool = cupy.get_default_memory_pool()
        pool.free_all_blocks()
        return int(pool.total_bytes())
    return 0


def has_context() -> bool:
    """Tell whether this process has a CUDA context, and so its share of GPU memory.

    That CuPy is loaded means nothing: Zarr does so wherever it is installed.
    """
    cupy: Any = sys.modules.get("cupy")
    with suppress(AttributeError, RuntimeError):
        return bool(cupy.cuda.driver.ctxGetCurrent())
    return False


def name_of(backend: str) -> str:
    """Name of the device behind a backend of the solver."""
    cards = graphics() if backend == "gpu" else ()
    return str(cards[0]["name"]) if cards else processor_name()


def describe() -> dict[str, Any]:
    """Processor, devices, memory and threads of this worker.

    Returns
    -------
    {"host", "cpu", "cores", "memory_bytes", "threads", "gpus": [{"name",
    "memory_bytes"}]}
    """
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    return {
        "host": platform.node(),
        "cpu": processor_name(),
        "cores": cores,
        "memory_bytes": int(psutil.virtual_memory().total),
        "threads": threads(),
        "gpus": list(graphics()),
    }
