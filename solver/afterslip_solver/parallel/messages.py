"""Messages between processes whose arrays are not copied on the way into a pipe."""

from __future__ import annotations

import os
import pickle
import struct
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

_SIZE = struct.Struct("<q")


def send(connection: Connection, what: Any) -> None:
    """Send what can be pickled; waits until the other end has taken all but a little.

    Raises
    ------
    OSError
        If the other end is closed.
    """
    buffers: list[pickle.PickleBuffer] = []
    head = pickle.dumps(what, protocol=5, buffer_callback=buffers.append)
    parts = [memoryview(head), *(buffer.raw() for buffer in buffers)]
    sizes = b"".join(_SIZE.pack(part.nbytes) for part in parts)
    handle = connection.fileno()
    for part in (memoryview(_SIZE.pack(len(parts)) + sizes), *parts):
        done = 0
        while done < part.nbytes:
            done += os.write(handle, part[done:])


def receive(connection: Connection) -> Any:
    """Wait for a message of `send`; its arrays can be written to.

    Raises
    ------
    EOFError
        If the other end was closed.
    """
    handle = connection.fileno()
    count = _SIZE.unpack(_read(handle, _SIZE.size))[0]
    sizes = _SIZE.iter_unpack(_read(handle, count * _SIZE.size))
    head, *buffers = (_read(handle, size) for (size,) in sizes)
    return pickle.loads(head, buffers=buffers)  # noqa: S301 - from our own process


def _read(handle: int, size: int) -> memoryview:
    # NumPy's memory is not cleared first
    out, done = np.empty(size, dtype=np.uint8).data, 0
    while done < size:
        got = os.readv(handle, [out[done:]])
        if got == 0:
            raise EOFError
        done += got
    return out
