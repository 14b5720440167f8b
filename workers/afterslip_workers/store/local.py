"""A store in a folder that the service and all workers see at the same path."""

from __future__ import annotations

import os
import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from afterslip.integrity import file_digests
from afterslip_workers.store import durable, paths
from afterslip_workers.store.errors import StoreLostError

_LEAST_FREE = 1 << 20


class LocalBackend:
    """A folder that the service and all workers see at the same path."""

    remote = False

    def __init__(self, root: Path) -> None:
        self.root = root
        self.name = str(root)

    def prepare(self) -> None:
        """Make the store's folders."""
        for name in paths.FOLDERS:
            (self.root / name).mkdir(parents=True, exist_ok=True)

    def reachable(self) -> bool:
        """Tell whether the store's folders are there and may be written."""
        # an empty mount point is a folder as well, and a library that writes into a
        # store that is away makes its own part anew: two folders show it
        return all(
            os.access(self.root / name, os.W_OK | os.X_OK)
            for name in (paths.CAMPAIGNS, paths.ATTEMPTS)
        )

    def probe(self) -> None:
        """Write a file that has no name."""
        with tempfile.TemporaryFile(dir=self.root / paths.ATTEMPTS) as stream:
            stream.write(b"x")

    def full(self) -> bool:
        """Tell whether there is no space left."""
        with suppress(OSError):
            return shutil.disk_usage(self.root).free < _LEAST_FREE
        return False

    def _writable(self, key: str) -> Path:
        """Return the path of a key, never making the store anew where it is away."""
        if not self.reachable():
            raise StoreLostError(f"the store {self.root} cannot be reached")
        path = self.root / key
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def read(self, key: str) -> bytes | None:
        """Return the content of a file."""
        try:
            return (self.root / key).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None

    def read_range(self, key: str, start: int, stop: int) -> bytes:
        """Return a part of a file."""
        with (self.root / key).open("rb") as stream:
            stream.seek(start)
            return stream.read(stop - start)

    def drop_cached(self, key: str) -> None:
        """Forget what memory holds of a file; what is not written yet stays there."""
        if not hasattr(os, "posix_fadvise"):
            return
        with suppress(OSError), (self.root / key).open("rb") as stream:
            os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)

    def tail(self, key: str, most: int) -> bytes:
        """Return the last bytes of a file."""
        try:
            with (self.root / key).open("rb") as stream:
                stream.seek(max(stream.seek(0, os.SEEK_END) - most, 0))
                return stream.read()
        except (FileNotFoundError, NotADirectoryError):
            return b""

    def size(self, key: str) -> int | None:
        """Return the bytes of a file."""
        path = self.root / key
        with suppress(FileNotFoundError, NotADirectoryError):
            return path.stat().st_size if path.is_file() else None
        return None

    def sha256(self, key: str) -> str:
        """Return the checksum of a file."""
        return durable.sha256(self.root / key)

    def digest(self, key: str) -> str | None:
        """Return the checksum of a file that may have been taken before."""
        return file_digests.of_any(self.root / key)

    def write(self, key: str, content: bytes) -> None:
        """Replace a file, atomically and durably."""
        durable.write_bytes(self._writable(key), content)

    def write_by_way_of(self, folder: str, key: str, content: bytes) -> None:
        """Replace a file, atomically and durably, by one out of another folder."""
        target = self._writable(key)
        scratch = self.root / folder / f".{uuid.uuid4().hex[:8]}.partial"
        try:
            with scratch.open("xb") as stream:
                stream.write(content)
                stream.flush()
                os.fsync(stream.fileno())
            scratch.replace(target)
        finally:
            scratch.unlink(missing_ok=True)
        durable.sync_directory(target.parent)

    def create(self, key: str, content: bytes) -> bool:
        """Write a file unless there is one."""
        target = self._writable(key)
        scratch = durable.scratch_beside(target)
        durable.write_bytes(scratch, content)
        try:
            os.link(scratch, target)
        except FileExistsError:
            return False
        finally:
            scratch.unlink()
        durable.sync_directory(target.parent)
        return True

    def upload(self, path: Path, key: str) -> None:
        """Copy a file into the store, atomically and durably."""
        folder, _, name = key.rpartition("/")
        self.add(folder, partial(shutil.copyfile, path), lambda _: name)

    def add(
        self, folder: str, write: Callable[[Path], Any], name: Callable[[Path], str]
    ) -> None:
        """Add a file, atomically and durably; it is named while it is synchronised."""
        scratch = durable.scratch_beside(self._writable(f"{folder}/new"))
        try:
            write(scratch)
            with ThreadPoolExecutor(1) as beside:
                found = beside.submit(name, scratch)
                durable.sync_file(scratch)
            scratch.replace(scratch.with_name(found.result()))
        finally:
            scratch.unlink(missing_ok=True)
        durable.sync_directory(scratch.parent)

    def move(self, pairs: Sequence[tuple[str, str]]) -> None:
        """Rename files, then push the folders' entries to the disk."""
        folders: set[Path] = set()
        for old, new in pairs:
            source, target = self.root / old, self._writable(new)
            source.replace(target)
            folders.update((source.parent, target.parent, target.parent.parent))
        for folder in sorted(folders, key=lambda item: -len(item.parts)):
            durable.sync_directory(folder)

    def remove(self, key: str) -> None:
        """Remove a file or a folder; a folder vanishes under its name at once."""
        path = self.root / key
        if path.is_dir():
            durable.remove_tree(path)
        elif path.parent.is_dir():
            path.unlink(missing_ok=True)

    def keys(self, folder: str) -> list[str]:
        """Return the keys of all finished files in a folder and below."""
        root = self.root / folder
        return sorted(
            path.relative_to(self.root).as_posix()
            for path in root.rglob("*")
            if path.is_file() and not _passing(path.relative_to(root))
        )

    def names(self, folder: str) -> list[str]:
        """Return the names in a folder."""
        try:
            return sorted(path.name for path in (self.root / folder).iterdir())
        except (FileNotFoundError, NotADirectoryError):
            return []

    @contextmanager
    def local(self, key: str) -> Iterator[Path]:
        """Open the file itself."""
        yield self.root / key

    def zarr(self, key: str) -> Any:
        """Return the path of a Zarr store."""
        return self.root / key


def _passing(path: Path) -> bool:
    """Tell whether a path is one of :func:`durable.scratch_beside`'s."""
    return any(part.startswith(".") for part in path.parts)
