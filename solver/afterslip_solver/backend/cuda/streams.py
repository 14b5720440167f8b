"""Work on a device beside what other threads of the process have queued there."""

from __future__ import annotations

from types import TracebackType
from typing import Any

import cupy


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


def graph_stream(own: Any) -> Any:
    """Return the current stream, or ``own`` instead of the default one.

    The default stream cannot record a graph, but others that block wait for it, and it
    for them.
    """
    current = cupy.cuda.get_current_stream()
    return own if current.ptr == cupy.cuda.Stream.null.ptr else current
