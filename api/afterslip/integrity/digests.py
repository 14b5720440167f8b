"""SHA-256 of files, each taken once while it does not change."""

from __future__ import annotations

import hashlib
import threading
import time
from pathlib import Path

# a file may change again within one tick of its file system's clock
_YOUNG_NS = 2_000_000_000
_MOST = 100_000
_BLOCK = 1 << 20

_Stamp = tuple[int, int, int, int, int]


class FileDigests:
    """SHA-256 of files, taken again when a file's size, times or inode change."""

    def __init__(self) -> None:
        self._known: dict[Path, tuple[_Stamp, str]] = {}
        # two readers of one file wait for one another, of two files hardly ever
        self._locks = [threading.Lock() for _ in range(64)]

    def clear(self) -> None:
        """Take all of them again."""
        self._known.clear()

    def cached(self, path: Path) -> str | None:
        """Return the SHA-256 of a file that has not changed since it was taken."""
        known = self._known.get(path)
        try:
            same = known is not None and known[0] == _stamp(path)
        except OSError:
            return None
        return known[1] if known is not None and same else None

    def of(self, path: Path) -> str:
        """Return the SHA-256 of a file, hexadecimal.

        Raises
        ------
        OSError
            It cannot be read.
        """
        with self._locks[hash(path) % len(self._locks)]:
            if (known := self.cached(path)) is not None:
                return known
            before = _stamp(path)
            with path.open("rb") as stream:
                digest = hashlib.file_digest(stream, "sha256").hexdigest()
            young = time.time_ns() - max(before[2:4]) < _YOUNG_NS
            if not young and _stamp(path) == before:
                if len(self._known) >= _MOST:
                    self._known.clear()
                self._known[path] = (before, digest)
            return digest

    def of_any(self, path: Path) -> str | None:
        """Return the SHA-256 of a file, None where there is none."""
        try:
            return self.of(path)
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return None


def _stamp(path: Path) -> _Stamp:
    found = path.stat()
    times = found.st_mtime_ns, found.st_ctime_ns
    return found.st_dev, found.st_size, *times, found.st_ino


# of this process
file_digests = FileDigests()
