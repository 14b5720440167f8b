"""Messages between a worker and its child: a length, then JSON."""

from __future__ import annotations

import json
import struct
from typing import Any, BinaryIO

_LENGTH = struct.Struct(">I")


def encode(message: dict[str, Any]) -> bytes:
    """Return a message as it travels."""
    content = json.dumps(message).encode()
    return _LENGTH.pack(len(content)) + content


def send(stream: BinaryIO, message: dict[str, Any]) -> None:
    """Write one message."""
    stream.write(encode(message))
    stream.flush()


def receive(stream: BinaryIO) -> dict[str, Any] | None:
    """Wait for one message; None when the other side is gone."""
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    content = stream.read(length)
    if len(content) < length:
        return None
    message: dict[str, Any] = json.loads(content)
    return message


class Decoder:
    """Collects messages from pieces, so that a reader never blocks inside one."""

    def __init__(self) -> None:
        self._pending = bytearray()

    def feed(self, piece: bytes) -> list[dict[str, Any]]:
        """Take bytes as they came; return the messages that they complete."""
        self._pending += piece
        found: list[dict[str, Any]] = []
        while len(self._pending) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._pending)
            end = _LENGTH.size + length
            if len(self._pending) < end:
                break
            found.append(json.loads(self._pending[_LENGTH.size : end]))
            del self._pending[:end]
        return found
