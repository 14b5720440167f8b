"""Work on a device beside what other threads of the process have queued there."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any

import cupy
import cupyx
from numpy.typing import NDArray


class SideStream:
    """A stream that no other one waits for; see `Backend.beside`."""

    def __init__(self) -> None:
        self._stream = cupy.cuda.Stream(non_blocking=True)

    def __enter__(self) -> None:
        """Wait for what was made outside, and queue what follows here."""
        cupy.cuda.get_current_stream().synchronize()
        self._stream.__enter__()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Wait for all of it."""
        try:
            if error is None:
                self._stream.synchronize()
        finally:
            self._stream.__exit__(kind, error, trace)


def later(a: Any) -> Callable[[], NDArray[Any]]:
    """Return a call that waits for a copy of what the current stream makes of ``a``."""
    out: NDArray[Any] = cupyx.empty_pinned(a.shape, a.dtype)
    a.get(out=out, blocking=False)
    done = cupy.cuda.Event()
    done.record()

    def wait() -> NDArray[Any]:
        done.synchronize()
        return out

    return wait


def graph_stream(own: Any) -> Any:
    """Return the current stream, or ``own`` instead of the default one.

    The default stream cannot record a graph, but others that block wait for it, and it
    for them.
    """
    current = cupy.cuda.get_current_stream()
    return own if current.ptr == cupy.cuda.Stream.null.ptr else current
