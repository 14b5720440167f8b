"""The command line of a worker that joins a scheduler."""

from __future__ import annotations

import sys

from afterslip_service.placement.local import GPU_THREADS, gpus
from afterslip_workers import entry


def worker_command(
    address: str, workers: int, *, gpu: bool, name: str | None = None
) -> list[str]:
    """Return the command that runs workers until they are asked to stop.

    Parameters
    ----------
    address : of the scheduler.
    workers : processes, one solve at a time each; on GPUs one a GPU, which takes a
        second attempt, solved while the first is written.
    gpu : use dask-cuda's worker, which gives each process a GPU of its own.
    """
    # the module of dask-cuda is its worker's command: a word before the address would
    # be taken for the address
    program = ["-m", "dask_cuda.cli"] if gpu else ["-m", "dask", "worker"]
    threads = GPU_THREADS if gpu else 1
    command = [sys.executable, *program, address, "--nthreads", str(threads)]
    if not gpu:
        command += ["--nworkers", str(workers)]
    # the dashboard of a worker knows no users
    command += ["--no-dashboard", "--memory-limit", "0", "--preload", entry.PRELOAD]
    if name is not None:
        command += ["--name", name]
    return command


def has_gpu() -> bool:
    """Tell whether GPU workers can be started here."""
    try:
        import dask_cuda  # noqa: F401 - only whether it is there
    except ImportError:
        return False
    return bool(gpus())
