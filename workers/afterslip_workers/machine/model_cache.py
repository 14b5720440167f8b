"""Prepared models cached between tasks, up to a limit of memory."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np
import psutil

from afterslip_workers.machine import heap, limit


class ModelCache:
    """Least recently used first out, bounded by bytes.

    Parameters
    ----------
    limit : bytes that may stay; the newest entry always stays.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._entries: OrderedDict[str, tuple[Any, int]] = OrderedDict()
        self.builds = 0

    def get(self, key: str, build: Callable[[], Any]) -> Any:
        """Return the object of ``key``, building it only when it is not cached."""
        if key in self._entries:
            self._entries.move_to_end(key)
            return self._entries[key][0]
        before = resident_bytes()
        built = build()
        self.builds += 1
        heap.give_back()
        # the larger of what can be counted and what the process grew by: caches
        # inside compiled libraries are counted by the second only
        self._store(key, built, max(footprint(built), resident_bytes() - before))
        return built

    def peek(self, key: str) -> Any:
        """Return the object of ``key``, or None."""
        return self._entries.get(key, (None, 0))[0]

    def put(self, key: str, made: Any) -> None:
        """Cache what was made already."""
        self._store(key, made, footprint(made))

    def take(self, key: str) -> Any:
        """Return the object of ``key``, which is then no longer cached, or None."""
        return self._entries.pop(key, (None, 0))[0]

    def _store(self, key: str, made: Any, size: int) -> None:
        self._entries[key] = (made, size)
        while self.bytes > self._limit and len(self._entries) > 1:
            self._entries.popitem(last=False)

    def clear(self) -> None:
        """Let everything go."""
        self._entries.clear()

    @property
    def bytes(self) -> int:
        """Bytes of all entries."""
        return sum(size for _, size in self._entries.values())

    def __contains__(self, key: str) -> bool:
        return key in self._entries

    def __len__(self) -> int:
        return len(self._entries)


class WarmOnly(ModelCache):
    """What another one holds, for a thread that may not build.

    Parameters
    ----------
    cache : the other one.
    """

    def __init__(self, cache: ModelCache) -> None:
        super().__init__(0)
        self._cache = cache

    def get(self, key: str, build: Callable[[], Any]) -> Any:
        """Return the object of ``key``.

        Raises
        ------
        NotWarmError
            It is not there.
        """
        del build
        found = self._cache.peek(key)
        if found is None:
            raise NotWarmError
        return found


class NotWarmError(LookupError):
    """A model would have to be built."""


def warm_limit() -> int:
    """Bytes that warm models may hold: AFTERSLIP_WARM_BYTES or a quarter of memory.

    It is a quarter of what this process may hold, if that is limited.
    """
    given = os.environ.get("AFTERSLIP_WARM_BYTES")
    if given:
        return int(float(given))
    return (limit.of_child() or int(psutil.virtual_memory().total)) // 4


def resident_bytes() -> int:
    """Memory that this process holds now."""
    return int(psutil.Process().memory_info().rss)


def footprint(thing: Any, counted: set[int] | None = None) -> int:
    """Bytes of the arrays reachable from ``thing``, each counted once."""
    counted = set() if counted is None else counted
    if id(thing) in counted:
        return 0
    counted.add(id(thing))
    if isinstance(thing, np.ndarray):
        owner = thing if thing.base is None else thing.base
        if owner is not thing and isinstance(owner, np.ndarray):
            return footprint(owner, counted)
        return int(thing.nbytes)
    if isinstance(thing, dict):
        return sum(footprint(value, counted) for value in thing.values())
    if isinstance(thing, list | tuple):
        return sum(footprint(value, counted) for value in thing)
    if not type(thing).__module__.startswith(("afterslip", "scipy", "pyamg")):
        return 0
    names = [*getattr(thing, "__dict__", ())]
    for kind in type(thing).__mro__:
        slots = getattr(kind, "__slots__", ())
        names += [slots] if isinstance(slots, str) else [*slots]
    return sum(footprint(getattr(thing, name, None), counted) for name in names)
