"""Reading a campaign's Green's functions: each file is compared with its checksum."""

from __future__ import annotations

import hashlib
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from afterslip import integrity
from afterslip.integrity import Checksums
from afterslip_workers.store import paths
from afterslip_workers.store.backend import StoreBackend, read_json
from afterslip_workers.store.open import open_store

if TYPE_CHECKING:
    from afterslip.archive.verified import VerifiedStore


def greens(backend: StoreBackend, campaign: str) -> VerifiedStore:
    """Return a campaign's store for reading.

    Reads raise :class:`afterslip.errors.DamagedError` for what is missing or
    damaged.
    """
    from afterslip.archive.verified import VerifiedStore

    root = paths.greens(campaign)
    inner = backend.zarr(root)
    if isinstance(inner, Path):
        return VerifiedStore.of_folder(inner, root, campaign)
    # accepted files never change: one look at each is enough
    digest = cache(lambda key: backend.digest(f"{root}/{key}"))
    return VerifiedStore(inner, root, store_id=campaign, digest=digest)


def checksums(backend: StoreBackend, campaign: str) -> Checksums:
    """Return what a campaign's store promises of its files."""
    root = paths.greens(campaign)
    return Checksums(
        root,
        lambda key: backend.read(f"{root}/{key}"),
        lambda key: backend.size(f"{root}/{key}") is not None,
        campaign,
    )


def greens_digest(backend: StoreBackend, campaign: str, key: str) -> str | None:
    """Return the SHA-256 of a file of a campaign's store that is as it was written.

    Parameters
    ----------
    key : below the store.

    Returns
    -------
    Hexadecimal; None where the store holds no such file.

    Raises
    ------
    DamagedError
        The file is missing or damaged.
    """
    root = paths.greens(campaign)
    found = backend.digest(f"{root}/{integrity.ROOT}")
    if found is None:
        if backend.size(f"{root}/{integrity.FIXED}") is None:
            return None
        raise integrity.damaged(root, integrity.ROOT, "is missing")
    known = _known(backend.name, campaign, found)
    if key == integrity.ROOT:
        content = backend.read(f"{root}/{key}") or b""
        known.check_root(content)
        return hashlib.sha256(content).hexdigest()
    if integrity.is_document(key) and known.root.sealed:
        document = backend.read(f"{root}/{key}")
        known.require_document(key, document)
        return None if document is None else hashlib.sha256(document).hexdigest()
    if not known.root.sealed:
        return backend.digest(f"{root}/{key}")
    expected = known.expected(key)
    if expected is None:
        return None
    found = backend.digest(f"{root}/{key}")
    known.require(key, found)
    return found


@lru_cache(maxsize=16)
def _known(store: str, campaign: str, root: str) -> Checksums:  # noqa: ARG001
    """Return a campaign's checksums, read anew when its root has changed."""
    return checksums(open_store(store), campaign)


def result_digest(
    backend: StoreBackend, campaign: str, inversion: str, name: str
) -> str | None:
    """Return the SHA-256 of a file of an inversion that is as it was written.

    Parameters
    ----------
    name : of the file, such as ``result.nc``.

    Returns
    -------
    Hexadecimal; None where the inversion has no such file.

    Raises
    ------
    DamagedError
        The file, or the manifest that has its checksum, is missing or damaged.
    """
    folder = paths.inversion(campaign, inversion)
    files = result_files(backend, campaign, inversion)
    found = backend.digest(f"{folder}/{name}")
    if found is None and name not in files:
        return None
    if found != files.get(name):
        what = "is missing" if found is None else "does not have its checksum"
        raise integrity.damaged(folder, name, what)
    return found


def result_files(
    backend: StoreBackend, campaign: str, inversion: str
) -> dict[str, str]:
    """Return the SHA-256 by name of the files that an inversion was accepted with.

    Raises
    ------
    DamagedError
        The manifest, which has them, is missing or damaged.
    """
    recorded = paths.accepted_manifest(campaign, f"inversion-{inversion}")
    manifest = read_json(backend, recorded)
    files = manifest.get("files") if isinstance(manifest, dict) else None
    if not isinstance(files, dict):
        raise integrity.damaged(recorded, "", "is missing or cannot be read")
    return files
