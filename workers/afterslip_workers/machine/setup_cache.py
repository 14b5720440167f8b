"""The set-up of models, cached on this machine's disk for the next process.

A file for each set of arrays, keyed by what they are computed from. Files are only ever
replaced whole, and NumPy's archives carry checksums: what is damaged is made again.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import time
import uuid
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import structlog

from afterslip_solver.array_cache import Arrays
from afterslip_solver.ownership import folder_is_ours, ours
from afterslip_workers.machine.array_files import read_arrays, write_arrays

ENV, LIMIT_ENV = "AFTERSLIP_SETUP", "AFTERSLIP_SETUP_BYTES"
LIMIT = 20e9
# one makes what another waits for, but nobody waits for ever for one that hangs
PATIENCE_S = 300.0
_POLL_S = 0.1
_ABANDONED_S = 3600.0
# of a disk's free bytes that one set may take
_SHARE = 0.2
_SUFFIX, _PARTIAL = ".npz", ".partial"

FOREIGN = "another account may have written it: see its owner and mode"

log = structlog.get_logger()


class SetupCache:
    """Sets of arrays in a folder; see `afterslip_solver.array_cache.ArrayCache`.

    Parameters
    ----------
    limit : bytes that may stay; what was used longest ago goes first, and nothing is
        stored where it is 0.
    """

    def __init__(self, folder: Path, limit: float = LIMIT) -> None:
        self.folder, self.limit = folder, limit

    @classmethod
    def here(cls) -> SetupCache:
        """Return this machine's: AFTERSLIP_SETUP, or the user's cache folder."""
        cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
        folder = Path(cache).expanduser() / "afterslip" / "setup"
        return cls(
            Path(os.environ.get(ENV) or folder),
            float(os.environ.get(LIMIT_ENV) or LIMIT),
        )

    def get(self, name: str, make: Callable[[], Arrays]) -> Arrays:
        """Return what is stored under a name, or make it and store it.

        ``make`` takes nothing from the cache itself: it may hold the same lock.
        """
        if not self._usable():
            return make()
        path = self._path(name)
        with self._held(name):
            found = _read(path)
            if found is None:
                found = make()
                self._keep(path, found)
        return found

    def find(self, name: str) -> Arrays | None:
        """Return what is stored under a name; None where it is absent or damaged."""
        return _read(self._path(name)) if self._usable() else None

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}{_SUFFIX}"

    def _usable(self) -> bool:
        """Say whether anything may be read and written here."""
        if not self.limit:
            return False
        if folder_is_ours(self.folder):
            return True
        log.warning("set-up is not stored", folder=str(self.folder), why=FOREIGN)
        return False

    @contextmanager
    def _held(self, name: str) -> Iterator[None]:
        """Wait until nobody else makes this, where that can be known at all."""
        lock = self.folder / f"lock-{hashlib.sha256(name.encode()).hexdigest()[:2]}"
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            stream = lock.open("a")
        except OSError:
            yield
            return
        with stream:
            end = time.monotonic() + PATIENCE_S
            while time.monotonic() < end:
                try:
                    fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    time.sleep(_POLL_S)
                except OSError:
                    # not every file system knows locks
                    break
            yield

    def _keep(self, path: Path, arrays: Arrays) -> None:
        """Write a set; a disk that refuses it is no reason to stop."""
        size = sum(array.nbytes for array in arrays.values())
        partial = self.folder / f"{path.stem}.{uuid.uuid4().hex[:8]}{_PARTIAL}"
        try:
            # others need this disk too, for results that wait for their store
            if size > min(self.limit, _SHARE * shutil.disk_usage(self.folder).free):
                return
            self._trim(self.limit - size)
            with partial.open("wb") as stream:
                os.fchmod(stream.fileno(), os.fstat(stream.fileno()).st_mode & 0o755)
                write_arrays(stream, arrays)
            partial.replace(path)
        except OSError as error:
            log.warning("set-up is not stored", folder=str(self.folder), why=str(error))
            with suppress(OSError):
                partial.unlink(missing_ok=True)

    def _trim(self, limit: float) -> None:
        """Remove what was used longest ago, and what somebody who died has left."""
        facts, now = [], time.time()
        for path in self.folder.iterdir():
            with suppress(FileNotFoundError):
                entry = path.stat()
                if path.suffix == _SUFFIX:
                    facts.append((entry.st_mtime, entry.st_size, path))
                elif path.suffix == _PARTIAL and now - entry.st_mtime > _ABANDONED_S:
                    path.unlink()
        total = sum(size for _, size, _ in facts)
        for _, size, path in sorted(facts):
            if total <= limit:
                return
            path.unlink(missing_ok=True)
            total -= size


def _read(path: Path) -> Arrays | None:
    """Return a file's arrays; None where it is absent or damaged."""
    try:
        if not ours(path.stat()):
            log.warning("stored set-up is not used", file=path.name, why=FOREIGN)
            return None
        found = read_arrays(path)
        os.utime(path)
    except FileNotFoundError:
        return None
    except (OSError, zipfile.BadZipFile) as error:
        log.warning("stored set-up is not used", file=path.name, why=str(error))
        return None
    return found
