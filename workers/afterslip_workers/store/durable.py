"""Files that are either wholly there or not there at all, also after a power cut.

A rename is atomic, but only a file that was synchronised before its rename, in
a directory that was synchronised after it, is sure to survive.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import uuid
from errno import EISDIR
from pathlib import Path
from typing import Any

_BLOCK = 1 << 20


def sync_file(path: Path) -> None:
    """Push a file's content to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_directory(path: Path) -> None:
    """Push a directory's entries to the disk."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_tree(root: Path) -> None:
    """Push every file and directory below ``root``, and its own entry."""
    for folder, _, names in os.walk(root, topdown=False):
        for name in names:
            sync_file(Path(folder) / name)
        sync_directory(Path(folder))
    sync_directory(root.parent)


def write_bytes(path: Path, content: bytes) -> None:
    """Replace a file by new content, atomically and durably."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.partial")
    try:
        with temporary.open("wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_directory(path.parent)


def write_json(path: Path, content: Any) -> None:
    """Replace a JSON file, atomically and durably."""
    write_bytes(path, json.dumps(content, indent=1, sort_keys=True).encode())


def read_json(path: Path) -> Any | None:
    """Read a JSON file; None where it is absent or not readable as JSON."""
    try:
        return json.loads(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError, json.JSONDecodeError):
        return None


def sha256(path: Path) -> str:
    """Hexadecimal SHA-256 of a file's content."""
    total = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(_BLOCK):
            total.update(block)
    return total.hexdigest()


def checksums(root: Path) -> dict[str, str]:
    """SHA-256 of every file below ``root``, by its path relative to ``root``."""
    return {
        path.relative_to(root).as_posix(): sha256(path)
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


def scratch_beside(path: Path) -> Path:
    """Return a fresh name beside ``path``, on the same file system."""
    if not path.name:
        raise IsADirectoryError(EISDIR, os.strerror(EISDIR), str(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    return path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.partial")


def publish_directory(finished: Path, path: Path) -> bool:
    """Give a finished directory its final name, unless one is there already.

    Two writers of the same content may race: the first rename wins, the loser's
    copy is removed.

    Returns
    -------
    True if ``finished`` became ``path``, False if ``path`` was there before.
    """
    sync_tree(finished)
    try:
        finished.rename(path)
    except OSError:
        if not path.is_dir():
            raise
        shutil.rmtree(finished, ignore_errors=True)
        return False
    sync_directory(path.parent)
    return True


def remove_tree(path: Path) -> None:
    """Remove a directory; it vanishes under its own name at once."""
    if not path.is_dir():
        return
    doomed = scratch_beside(path)
    try:
        path.rename(doomed)
    except FileNotFoundError:
        return
    shutil.rmtree(doomed, ignore_errors=True)
