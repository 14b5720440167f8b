"""What one process has solved, on its way to the one that writes it.

It lies in memory that has no name in any file system: nothing is left to be swept,
whichever of the processes dies. The first may send it while it solves the next group,
so the second waits for it.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


@contextmanager
def exchange_file() -> Iterator[str]:
    """Yield the path by which children of this process reach the memory."""
    handle = os.memfd_create("afterslip-group")
    try:
        yield f"/proc/{os.getpid()}/fd/{handle}"
    finally:
        os.close(handle)


class Sending:
    """Memory that is locked until something was left in it, or this process died.

    Parameters
    ----------
    path : of `exchange_file`.
    """

    def __init__(self, path: str) -> None:
        self._stream = Path(path).open("wb")  # noqa: SIM115 - closed by `save`
        fcntl.flock(self._stream, fcntl.LOCK_EX)

    def save(self, facts: Mapping[str, Any], arrays: Mapping[str, ArrayLike]) -> None:
        """Leave plain facts and arrays, and unlock the memory."""
        with self._stream as stream:
            head = json.dumps({"facts": facts, "names": list(arrays)}).encode()
            np.save(stream, np.frombuffer(head, dtype=np.uint8))
            for array in arrays.values():
                np.save(stream, np.asarray(array))


def load(path: str) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Wait for what will be left, and take it up, any number of times.

    Raises
    ------
    EOFError
        If the process that was to leave it died before it was whole.
    """
    with Path(path).open("rb") as stream:
        fcntl.flock(stream, fcntl.LOCK_SH)
        try:
            head = json.loads(np.load(stream).tobytes())
            return head["facts"], {name: np.load(stream) for name in head["names"]}
        except ValueError as error:
            raise EOFError(f"an array is not whole: {error}") from error
