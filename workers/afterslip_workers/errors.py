"""Why a task failed, in one word for the scheduler and one sentence for people.

::

    TaskError            error_class, message
    ├── Cancelled        somebody asked for it
    └── (any other class is given by name, see CLASSES)
"""

from __future__ import annotations

import errno
import shutil
from contextlib import suppress
from pathlib import Path

CLASSES = frozenset(
    {
        "bad_input",
        "mesh",
        "oom",
        "worker_lost",
        "not_converged",
        "nan",
        "store_full",
        "killed",
        "timeout",
        "internal",
    }
)

_BAD_INPUT = frozenset(
    {
        "SpecError",
        "MaterialError",
        "ModelError",
        "SettingsError",
        "SourceError",
        "InversionError",
    }
)
_LEAST_FREE = 1 << 20
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


class TaskError(Exception):
    """A failure that a person can read.

    Parameters
    ----------
    error_class : one of ``CLASSES``; decides whether it is tried again.
    message : what happened and what to do about it.
    """

    def __init__(self, error_class: str, message: str) -> None:
        super().__init__(message)
        self.error_class = error_class
        self.message = message


class CancelledError(Exception):
    """The attempt was asked to stop and did."""


def _names(error: BaseException) -> set[str]:
    return {kind.__name__ for kind in type(error).__mro__}


def classify(error: BaseException, store: Path | None = None) -> TaskError:
    """Turn whatever a task raised into a class and a readable message.

    Device errors are known by name, because CuPy may not be installed.

    Parameters
    ----------
    store : where the task wrote. Libraries that lose the system's reason for a
        failed write are then understood from the space left there.
    """
    if isinstance(error, TaskError):
        return error
    names = _names(error)
    text = " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, MemoryError) or "OutOfMemoryError" in names:
        return TaskError(
            "oom",
            f"memory ran out ({text}): use a coarser mesh, fewer workers, "
            "or a machine with more memory",
        )
    full = _full_disk(error)
    if full is not None:
        return TaskError(
            "store_full",
            f"no space left to write {full.filename or 'the result'} "
            f"({full.strerror}): free space in the store, then retry",
        )
    if isinstance(error, OSError) and store is not None and _is_full(store):
        return TaskError(
            "store_full", f"no space left in the store ({text}): free some, then retry"
        )
    if names & _BAD_INPUT:
        return TaskError("bad_input", str(error))
    if "MeshError" in names:
        return TaskError("mesh", str(error))
    where = _innermost(error)
    return TaskError("internal", f"{type(error).__name__}: {text}{where}")


def _full_disk(error: BaseException | None) -> OSError | None:
    """Find the refusal of the file system, also behind another library's error."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in _FULL:
            return error
        error = error.__cause__ or error.__context__
    return None


def _is_full(store: Path) -> bool:
    with suppress(OSError):
        return shutil.disk_usage(store).free < _LEAST_FREE
    return False


def _innermost(error: BaseException) -> str:
    trace = error.__traceback__
    if trace is None:
        return ""
    while trace.tb_next is not None:
        trace = trace.tb_next
    code = trace.tb_frame.f_code
    return f" (in {code.co_name}, line {trace.tb_lineno}; see the attempt's log)"
