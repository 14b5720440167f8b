"""Workers that start without the program that started them.

Python runs the main module again in each process that it spawns, so that what is sent
there finds its classes. Ours are sent nothing of it: a script without a guard would
start a service in every worker, and what it imports would take their time and memory.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import spawn
from typing import Any

# the nanny's name for them
_WORKER = "Dask Worker process"

_whole: Callable[[str], dict[str, Any]] = spawn.get_preparation_data
_lock = threading.Lock()
_clusters = 0


@contextmanager
def without_main() -> Iterator[None]:
    """Leave the main module out of Dask's workers, also of those begun anew."""
    _count(1)
    try:
        yield
    finally:
        _count(-1)


def _count(more: int) -> None:
    global _clusters
    with _lock:
        _clusters += more
        prepare = _prepare if _clusters else _whole
        setattr(spawn, "get_preparation_data", prepare)  # noqa: B010 - mypy's reason


def _prepare(name: str) -> dict[str, Any]:
    data = _whole(name)
    if name.startswith(_WORKER):
        data.pop("init_main_from_name", None)
        data.pop("init_main_from_path", None)
    return data
