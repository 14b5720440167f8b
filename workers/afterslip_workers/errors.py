"""Why a task failed, in one word for the scheduler and one sentence for people.

::

    TaskError        error_class, message
    CancelledError   somebody asked for it

Others are understood by their type: what the numerics raise derives from the classes
of `afterslip_common.errors`, whichever package has computed.
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Any

from afterslip.error_class import ErrorClass
from afterslip.errors import DamagedError, SpecError
from afterslip_common.errors import InputError, MeshError, RankLostError
from afterslip_workers.messages import TaskError
from afterslip_workers.store.errors import StoreLostError

if TYPE_CHECKING:
    from afterslip_workers.store.backend import StoreBackend

__all__ = ["AWAY", "POISON", "CancelledError", "TaskError", "classify"]

# a result waits on the worker's disk until the store is back
AWAY = frozenset({ErrorClass.STORE_FULL, ErrorClass.STORE_LOST})
# what leaves a process, or a device, unfit for another task
POISON = frozenset({ErrorClass.OOM, ErrorClass.GPU_ERROR, ErrorClass.GPU_LOST})

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


class CancelledError(Exception):
    """The attempt was asked to stop and did."""


def _names(error: BaseException) -> set[str]:
    return {kind.__name__ for kind in type(error).__mro__}


def classify(error: BaseException, backend: StoreBackend | None = None) -> TaskError:
    """Turn whatever a task raised into a class and a readable message.

    CuPy's errors alone are known by name: it may not be installed, and to import it
    takes seconds and memory of the GPU.

    Parameters
    ----------
    backend : where the task wrote. Libraries that lose the system's reason for a
        failed write are then understood from how the store is now.
    """
    if isinstance(error, TaskError):
        return error
    text = " ".join(str(error).split()) or type(error).__name__
    device = _device(error, text)
    if device is None and isinstance(error, InputError) and error.__cause__:
        # a backend that finds no device says so in its own words
        device = _device(error.__cause__, text)
    if device is not None:
        return device
    if isinstance(error, MemoryError) or "OutOfMemoryError" in _names(error):
        return TaskError(
            ErrorClass.OOM,
            f"memory ran out ({text}): use a coarser mesh, fewer workers, "
            "or a machine with more memory",
        )
    if isinstance(error, OSError):
        away = _away(error, text, backend)
        if away is not None:
            return away
    if isinstance(error, DamagedError):
        return TaskError(ErrorClass.DAMAGED, str(error))
    if isinstance(error, SpecError | InputError):
        return TaskError(ErrorClass.BAD_INPUT, str(error))
    if isinstance(error, MeshError):
        return TaskError(ErrorClass.MESH, str(error))
    where = _innermost(error)
    return TaskError(ErrorClass.INTERNAL, f"{type(error).__name__}: {text}{where}")


def _away(error: OSError, text: str, backend: StoreBackend | None) -> TaskError | None:
    """Tell a store that is full or away from other failures of the system."""
    full = _full_disk(error)
    if full is not None:
        return TaskError(
            ErrorClass.STORE_FULL,
            f"no space left to write {full.filename or 'the result'} "
            f"({full.strerror}): free space in the store, then retry",
        )
    lost = isinstance(error, StoreLostError)
    if lost or (backend is not None and not backend.reachable()):
        return TaskError(ErrorClass.STORE_LOST, f"the store cannot be reached: {text}")
    if backend is not None and backend.full():
        return TaskError(
            ErrorClass.STORE_FULL,
            f"no space left in the store ({text}): free some, then retry",
        )
    return None


def _full_disk(error: BaseException | None) -> OSError | None:
    """Find the refusal of the file system, also behind another library's error."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in _FULL:
            return error
        error = error.__cause__ or error.__context__
    return None


# numbers of cudaError_t and CUresult, which agree where both have the error
_CUDA_MEMORY = frozenset({2})
# CUDA's own names say "sticky" of what no later call in the process survives
_CUDA_LOST = {
    46: "devices unavailable",
    100: "no device",
    101: "invalid device",
    214: "uncorrectable memory error (ECC)",
    220: "uncorrectable NVLink error",
    802: "system not ready",
}


def _device(error: BaseException, text: str) -> TaskError | None:
    """Understand what CUDA's runtime and driver raise through CuPy."""
    names = _names(error)
    if isinstance(error, RankLostError):
        return TaskError(ErrorClass.GPU_ERROR, f"one of several GPUs failed ({text})")
    if not names & {"CUDARuntimeError", "CUDADriverError"}:
        if names & {"CUBLASError", "CUSPARSEError", "CUSOLVERError", "CuFFTError"}:
            return TaskError(
                ErrorClass.GPU_ERROR, f"a library of the GPU failed ({text})"
            )
        return None
    status: Any = getattr(error, "status", None)
    if status in _CUDA_MEMORY:
        return TaskError(
            ErrorClass.OOM,
            f"the GPU's memory ran out ({text}): use a coarser mesh, "
            "or a GPU with more memory",
        )
    if status in _CUDA_LOST:
        return TaskError(
            ErrorClass.GPU_LOST,
            f"the GPU is lost, {_CUDA_LOST[status]} ({text}): see nvidia-smi and the "
            "kernel's log, and restart its worker when it is back",
        )
    return TaskError(
        ErrorClass.GPU_ERROR,
        f"the GPU failed ({text}): the process that used it was ended, "
        "its next task starts afresh",
    )


def _innermost(error: BaseException) -> str:
    trace = error.__traceback__
    if trace is None:
        return ""
    while trace.tb_next is not None:
        trace = trace.tb_next
    code = trace.tb_frame.f_code
    return f" (in {code.co_name}, line {trace.tb_lineno}; see the attempt's log)"
