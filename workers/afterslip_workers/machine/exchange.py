"""What one process has solved, on its way to the one that writes it.

It lies in memory that has no name in any file system: nothing is left to be swept,
whichever of the processes dies.
"""

from __future__ import annotations

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


def save(path: str, facts: Mapping[str, Any], arrays: Mapping[str, ArrayLike]) -> None:
    """Leave plain facts and arrays."""
    head = json.dumps({"facts": facts, "names": list(arrays)}).encode()
    with Path(path).open("wb") as stream:
        np.save(stream, np.frombuffer(head, dtype=np.uint8))
        for array in arrays.values():
            np.save(stream, np.asarray(array))


def load(path: str) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Take up what was left, any number of times."""
    with Path(path).open("rb") as stream:
        head = json.loads(np.load(stream).tobytes())
        return head["facts"], {name: np.load(stream) for name in head["names"]}
