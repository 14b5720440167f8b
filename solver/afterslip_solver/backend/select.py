"""Choice of a backend by name."""

from __future__ import annotations

import os

from afterslip_solver.backend.base import BackendError
from afterslip_solver.backend.cpu.backend import CpuBackend
from afterslip_solver.backend.protocols import Backend


def available() -> dict[str, str]:
    """Say for every backend "" where it can be used here, else why not."""
    reasons = {"cpu": ""}
    try:
        _gpu()
    except BackendError as error:
        reasons["gpu"] = str(error)
    else:
        reasons["gpu"] = ""
    return reasons


def get(
    name: str = "auto", threads: int | None = None, deterministic: bool = False
) -> Backend:
    """Return the backend ``cpu``, ``gpu`` or the better one that works (``auto``).

    Parameters
    ----------
    name : "cpu", "gpu" or "auto".
    threads : threads of the CPU backend; default ``AFTERSLIP_THREADS`` or 1,
        because workers run one process per core.
    deterministic : products with K on a GPU are the same to the last bit every time;
        those of the CPU always are.

    Raises
    ------
    BackendError
        If the name is unknown or no CUDA device can be used.
    """
    if name == "auto":
        name = "gpu" if not available()["gpu"] else "cpu"
    if name == "gpu":
        return _gpu(deterministic)
    if name != "cpu":
        message = f"unknown backend {name!r}: use 'cpu', 'gpu' or 'auto'"
        raise BackendError(message)
    if threads is None:
        threads = int(os.environ.get("AFTERSLIP_THREADS", "1"))
    return CpuBackend(threads)


def compile_kernels(name: str) -> None:
    """Compile the kernels that a curve takes on a device, unless they are on disk."""
    if name == "gpu":
        from afterslip_solver.backend.cuda.loader import compile_listed

        compile_listed()


def _gpu(deterministic: bool = False) -> Backend:
    try:
        from afterslip_solver.backend.cuda.backend import GpuBackend
    except ImportError as error:
        message = "CuPy is not installed (the extra 'gpu')"
        raise BackendError(message) from error
    device: Backend = GpuBackend(deterministic)
    return device
