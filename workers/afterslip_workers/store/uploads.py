"""Uploaded files, wherever the store lies."""

from __future__ import annotations

from pathlib import Path

from afterslip.errors import one_problem
from afterslip.files import StoredFiles, content_ref
from afterslip.schemas.values import SHA256
from afterslip_workers.store import durable, paths
from afterslip_workers.store.place import LocalPlace, Place


class BucketFiles(StoredFiles):
    """Uploads in a bucket, and files under a folder of the server.

    Parameters
    ----------
    place : the store.
    base : folder for relative paths; None: relative paths are refused.
    """

    def __init__(self, place: Place, base: str | Path | None = None) -> None:
        super().__init__(place.name, base)
        self._place = place

    def read(self, ref: str) -> bytes:
        """Return the content of an upload or a file."""
        if not SHA256.match(ref):
            return super().read(ref)
        content = self._place.read(paths.file(ref))
        if content is None:
            raise one_problem(ref, None, "was not uploaded", "upload the file first")
        return content

    def exists(self, ref: str) -> bool:
        """Say whether there is such an upload or file."""
        if not SHA256.match(ref):
            return super().exists(ref)
        return self._place.size(paths.file(ref)) is not None


def files_of(place: Place, base: str | Path | None = None) -> StoredFiles:
    """Return the files that specs may name."""
    if isinstance(place, LocalPlace):
        return StoredFiles(place.root, base)
    return BucketFiles(place, base)


def keep(place: Place, content: bytes) -> str:
    """Write a content into the store and return its reference."""
    ref = content_ref(content)
    if not _whole(place, ref):
        place.write(paths.file(ref), content)
    return ref


def keep_file(place: Place, path: Path) -> str:
    """Copy a file into the store and return its reference."""
    ref = f"sha256:{durable.sha256(path)}"
    if not _whole(place, ref):
        place.upload(path, paths.file(ref))
    return ref


def _whole(place: Place, ref: str) -> bool:
    """Tell whether an upload is there; a damaged one is uploaded again."""
    return place.digest(paths.file(ref)) == ref.removeprefix("sha256:")
