"""Uploaded files, wherever the store lies."""

from __future__ import annotations

from pathlib import Path

from afterslip.errors import one_problem
from afterslip.schemas.values import SHA256
from afterslip.spec.files import StoredFiles, checked_upload, content_ref
from afterslip_workers.store import durable, paths
from afterslip_workers.store.backend import StoreBackend
from afterslip_workers.store.local import LocalBackend


class BucketFiles(StoredFiles):
    """Uploads in a bucket, and files under a folder of the server.

    Parameters
    ----------
    backend : the store.
    base : folder for relative paths; None: relative paths are refused.
    """

    def __init__(self, backend: StoreBackend, base: str | Path | None = None) -> None:
        super().__init__(backend.name, base)
        self._backend = backend

    def read(self, ref: str) -> bytes:
        """Return the content of an upload or a file."""
        if not SHA256.match(ref):
            return super().read(ref)
        content = self._backend.read(paths.file(ref))
        if content is None:
            raise one_problem(ref, None, "was not uploaded", "upload the file first")
        return checked_upload(ref, content)

    def exists(self, ref: str) -> bool:
        """Say whether there is such an upload or file."""
        if not SHA256.match(ref):
            return super().exists(ref)
        return self._backend.size(paths.file(ref)) is not None


def files_of(backend: StoreBackend, base: str | Path | None = None) -> StoredFiles:
    """Return the files that specs may name."""
    if isinstance(backend, LocalBackend):
        return StoredFiles(backend.root, base)
    return BucketFiles(backend, base)


def keep(backend: StoreBackend, content: bytes) -> str:
    """Write a content into the store and return its reference."""
    ref = content_ref(content)
    if not _whole(backend, ref):
        backend.write(paths.file(ref), content)
    return ref


def keep_file(backend: StoreBackend, path: Path) -> str:
    """Copy a file into the store and return its reference."""
    ref = f"sha256:{durable.sha256(path)}"
    if not _whole(backend, ref):
        backend.upload(path, paths.file(ref))
    return ref


def _whole(backend: StoreBackend, ref: str) -> bool:
    """Tell whether an upload is there; a damaged one is uploaded again."""
    return backend.digest(paths.file(ref)) == ref.removeprefix("sha256:")
