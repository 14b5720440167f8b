"""Backends of a store: a folder that all machines share, or a bucket of objects.

Everything above speaks of keys, relative to the store's root. A file is written
whole or not at all, and is there for good when the call returns.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol


class StoreBackend(Protocol):
    """What both kinds of store can do.

    Every method may raise OSError; :class:`StoreLostError` where the store as a
    whole is away. ``name`` is for people and holds no credentials; in a ``remote``
    store nothing can be written in place, so that attempts work on a disk of their
    own and each look costs a request.
    """

    name: str
    remote: bool

    def prepare(self) -> None:
        """Make the store's folders, or see that the bucket is there."""

    def reachable(self) -> bool:
        """Tell whether the store can be read and written now."""

    def probe(self) -> None:
        """Write something that does not last."""

    def full(self) -> bool:
        """Tell whether there is no space left."""

    def read(self, key: str) -> bytes | None:
        """Return the content of a file, None where there is none."""

    def read_range(self, key: str, start: int, stop: int) -> bytes:
        """Return the bytes from ``start`` up to ``stop``."""

    def drop_cached(self, key: str) -> None:
        """Forget what memory holds of a file, so that a read asks the disk again."""

    def tail(self, key: str, most: int) -> bytes:
        """Return the last bytes of a file, none where there is none."""

    def size(self, key: str) -> int | None:
        """Return the bytes of a file, None where there is none."""

    def sha256(self, key: str) -> str:
        """Return the checksum of what reads back, hexadecimal."""

    def digest(self, key: str) -> str | None:
        """Return the checksum of a file, None where there is none.

        It is taken again only when the file's size, times or inode, or its ETag,
        have changed.
        """

    def write(self, key: str, content: bytes) -> None:
        """Replace a file."""

    def create(self, key: str, content: bytes) -> bool:
        """Write a file unless there is one; False if there was."""

    def write_by_way_of(self, folder: str, key: str, content: bytes) -> None:
        """Replace a file by one written in a folder; FileNotFoundError if it is gone.

        Where the folder is a token's, nobody writes after the token was discarded:
        in a folder to the last step, in a bucket up to the time of one request.
        """

    def upload(self, path: Path, key: str) -> None:
        """Replace a file by a copy of a local one."""

    def add(
        self, folder: str, write: Callable[[Path], Any], name: Callable[[Path], str]
    ) -> None:
        """Add a file to a folder, without a copy where the store is a local one.

        Parameters
        ----------
        write : makes the file at a path. name : finds its name in the folder; it may
            take as long as the file takes to reach the disk.
        """

    def move(self, pairs: Sequence[tuple[str, str]]) -> None:
        """Give files new names; where that takes a copy, the old ones may stay."""

    def remove(self, key: str) -> None:
        """Remove a file or a folder with all in it; an absent one is no error."""

    def keys(self, folder: str) -> list[str]:
        """Return the keys of all finished files in a folder and below."""

    def names(self, folder: str) -> list[str]:
        """Return the names in a folder, of files and folders."""

    def local(self, key: str) -> AbstractContextManager[Path]:
        """Open a file as one of this machine, perhaps a passing copy."""

    def zarr(self, key: str) -> Any:
        """Return what zarr opens: a path or a store."""


def read_json(backend: StoreBackend, key: str) -> Any | None:
    """Read a JSON file; None where it is absent or not readable as JSON."""
    content = backend.read(key)
    try:
        return None if content is None else json.loads(content)
    except ValueError:
        return None


def write_json(backend: StoreBackend, key: str, content: Any) -> None:
    """Replace a JSON file."""
    backend.write(key, json.dumps(content, indent=1, sort_keys=True).encode())
