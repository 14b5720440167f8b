"""Results that wait on a worker's own disk until the store takes them.

::

    <spool>/<store>/store                  name of the store
    <spool>/<store>/<token>/               as the attempt's folder in the store
    <spool>/<store>/<token>.lock           locked while a process works on it

Where the store is a bucket, every attempt works here; where it is a folder, only
what it refused comes here. A receipt is an entry's last file: an entry without one,
whose lock is free, was left by a worker that died.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from afterslip_workers.messages import (
    Envelope,
    Manifest,
    checked,
    of_manifest,
    read_receipt,
)
from afterslip_workers.store import durable, paths
from afterslip_workers.store.backend import StoreBackend, write_json
from afterslip_workers.store.local import LocalBackend
from afterslip_workers.store.manifest import manifest_in
from afterslip_workers.store.open import open_store
from afterslip_workers.store.paths import LOG, MANIFEST, RECEIPT
from afterslip_workers.store.result_folders import RESULT_FOLDERS

ENV = "AFTERSLIP_SPOOL"
_STORE = "store"


def root() -> Path:
    """Folder of the spool: AFTERSLIP_SPOOL, or one in the user's state folder."""
    given = os.environ.get(ENV)
    if given:
        return Path(given)
    state = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(state).expanduser() / "afterslip" / "spool"


def made_root() -> Path:
    """Return the folder of the spool; a new one is closed to other accounts."""
    folder = root()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def room() -> tuple[Path, int]:
    """Return the root of the spool and the free bytes of its disk; see `root`.

    Raises
    ------
    OSError
        If nothing can be written there.
    """
    folder = root()
    there = next(path for path in (folder, *folder.parents) if path.exists())
    with tempfile.TemporaryFile(dir=there):
        return folder, shutil.disk_usage(there).free


def _home(backend: StoreBackend) -> Path:
    return root() / hashlib.sha256(backend.name.encode()).hexdigest()[:16]


def entry(backend: StoreBackend, token: str) -> Path:
    """Folder of an attempt in the spool."""
    return _home(backend) / checked(token)


def folder_of(envelope: Envelope) -> Path:
    """Folder on this machine in which an attempt works."""
    backend, token = open_store(envelope.store), envelope.token
    if isinstance(backend, LocalBackend):
        return backend.root / paths.attempt(token)
    return entry(backend, token)


def make(backend: StoreBackend, token: str) -> Path:
    """Make an attempt's folder in the spool."""
    made_root()
    folder = entry(backend, token)
    folder.mkdir(parents=True, exist_ok=True)
    note = folder.parent / _STORE
    if not note.exists():
        durable.write_bytes(note, backend.name.encode())
    return folder


@contextmanager
def locked(backend: StoreBackend, token: str) -> Iterator[bool]:
    """Hold an attempt's place in the spool; the kernel frees it when we die.

    Yields
    ------
    False if another process or thread holds it, or the spool cannot be written.
    """
    path = entry(backend, f"{token}.lock")
    try:
        handle = _opened(path)
    except OSError:
        yield False
        return
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True
        path.unlink(missing_ok=True)
    finally:
        os.close(handle)
        with suppress(OSError):  # not empty
            path.parent.rmdir()


def _opened(path: Path) -> int:
    """Open a lock, also where another worker just removes the empty folder."""
    made_root()
    while True:
        path.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileNotFoundError):
            return os.open(path, os.O_RDWR | os.O_CREAT, 0o600)


def waiting() -> list[tuple[StoreBackend, str]]:
    """List what waits, by store and attempt, the oldest first."""
    found = []
    for home in root().glob("*"):
        with suppress(OSError, ValueError):
            backend = open_store((home / _STORE).read_text())
            found += [
                (folder.stat().st_mtime_ns, backend, folder.name)
                for folder in home.iterdir()
                if folder.is_dir()
            ]
    return [(backend, token) for _, backend, token in sorted(found, key=lambda f: f[0])]


def deliver(backend: StoreBackend, token: str) -> None:
    """Send what an attempt left in the spool, and remove it here; may be repeated.

    The receipt goes last: where it is, all is there. What the service does not
    want any more it refuses by the attempt's token, and sweeps.

    Raises
    ------
    OSError
            If the store does not take it; what has arrived is not sent again.
    TaskError
        If a worker of a later release left it, which has to deliver it.
    """
    folder, there = entry(backend, token), paths.attempt(token)
    manifest = manifest_in(folder)
    left = durable.read_json(folder / RECEIPT)
    receipt = read_receipt(left) if isinstance(left, dict) else None
    if receipt is None and manifest is not None:
        # its worker died between the result and the receipt
        receipt = of_manifest(manifest)
    if receipt is not None and backend.size(f"{there}/{RECEIPT}") is None:
        if manifest is not None:
            _send_files(backend, folder, there, manifest)
            write_json(backend, f"{there}/{MANIFEST}", manifest.as_json())
        if (folder / LOG).exists() and backend.size(f"{there}/{LOG}") is None:
            backend.upload(folder / LOG, f"{there}/{LOG}")
        write_json(backend, f"{there}/{RECEIPT}", receipt.as_json())
    shutil.rmtree(folder)
    if not any(item.is_dir() for item in folder.parent.iterdir()):
        (folder.parent / _STORE).unlink(missing_ok=True)


def _send_files(
    backend: StoreBackend, folder: Path, there: str, manifest: Manifest
) -> None:
    part = RESULT_FOLDERS.get(manifest.kind)
    if part is None:
        return
    for name, digest in manifest.files.items():
        key = f"{there}/{part}/{name}"
        if backend.size(key) is not None and backend.sha256(key) == digest:
            continue
        backend.upload(folder / part / name, key)
        if backend.sha256(key) != digest:
            raise OSError(f"{key} reads back differently from the store")
