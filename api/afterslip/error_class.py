"""The classes of errors that a task may end with: words for programs.

They stand in answers of the service and in receipts of workers; what follows each is
said in docs/operations.md.
"""

from __future__ import annotations

from enum import StrEnum


class ErrorClass(StrEnum):
    """Why a task ended without a result."""

    # the input
    BAD_INPUT = "bad_input"
    MESH = "mesh"
    # the machine
    OOM = "oom"
    NO_MEMORY = "no_memory"
    OUT_OF_MEMORY = "out_of_memory"
    GPU_ERROR = "gpu_error"
    GPU_LOST = "gpu_lost"
    KILLED = "killed"
    WORKER_LOST = "worker_lost"
    TIMEOUT = "timeout"
    # the numbers
    NOT_CONVERGED = "not_converged"
    NAN = "nan"
    UNSTABLE = "unstable"
    # the store
    STORE_FULL = "store_full"
    STORE_LOST = "store_lost"
    DAMAGED = "damaged"
    # this program
    INTERNAL = "internal"
    INTERRUPTED = "interrupted"
    NOT_INSTALLED = "not_installed"
    OTHER_RELEASE = "other_release"
