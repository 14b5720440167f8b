"""Ranges of a loop side by side, for compiled code that runs without the GIL."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

# below this many steps a thread is not worth its start
_FEW = 20_000
# the same of rows that are copied
_ROWS = 4096
_within = threading.local()


def copy_rows(source: NDArray[Any], out: NDArray[Any]) -> None:
    """Copy (..., n, k) arrays, into another precision too.

    Memory that was never written to is had page by page, which takes longer than to
    copy where one thread does it.
    """

    def copy(first: int, last: int) -> None:
        out[..., first:last, :] = source[..., first:last, :]

    over(out.shape[-2], copy, few=_ROWS)


def take_rows(source: NDArray[Any], rows: NDArray[np.integer]) -> NDArray[Any]:
    """Return ``source[rows]``."""
    out = np.empty((len(rows), *source.shape[1:]), dtype=source.dtype)

    def take(first: int, last: int) -> None:
        # other modes make a copy first
        np.take(source, rows[first:last], axis=0, out=out[first:last], mode="clip")

    over(len(rows), take)
    return out


def over(
    n: int, call: Callable[[int, int], None], few: int = _FEW, per_thread: int = 4
) -> None:
    """Call ``call(start, stop)`` with ranges that make up 0..n.

    Parameters
    ----------
    few : number of steps that one thread does alone.
    per_thread : ranges for each thread; they may differ in work.

    A loop within a range of another one has no threads of its own.
    """
    threads = min(len(os.sched_getaffinity(0)), -(-n // few))
    if threads < 2 or getattr(_within, "range", False):
        call(0, n)
        return
    cuts = np.linspace(0, n, per_thread * threads + 1).astype(int).tolist()
    with ThreadPoolExecutor(threads, initializer=_enter) as pool:
        list(pool.map(call, cuts[:-1], cuts[1:]))


def _enter() -> None:
    _within.range = True
