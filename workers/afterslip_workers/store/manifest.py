"""The word of an attempt about what it wrote; its last file."""

from __future__ import annotations

import shutil
from pathlib import Path

from afterslip_workers.messages import Manifest, read_manifest
from afterslip_workers.store import durable
from afterslip_workers.store.paths import MANIFEST


def commit(folder: Path, manifest: Manifest) -> None:
    """Write the manifest; from now on the attempt counts as stored."""
    durable.write_json(folder / MANIFEST, manifest.as_json())


def manifest_in(folder: Path) -> Manifest | None:
    """Return what an attempt stored in a folder here; None if nothing.

    Raises
    ------
    TaskError
        If it cannot be read, see `afterslip_workers.messages.read_manifest`.
    """
    found = durable.read_json(folder / MANIFEST)
    return read_manifest(found) if isinstance(found, dict) else None


def seal(part: Path) -> dict[str, str]:
    """Push a finished directory to the disk and return its files' checksums.

    The checksums are taken from what reads back after the synchronisation.
    """
    durable.sync_tree(part)
    return durable.checksums(part)


def clear(part: Path) -> None:
    """Remove what an earlier try of the same attempt may have left."""
    shutil.rmtree(part, ignore_errors=True)
