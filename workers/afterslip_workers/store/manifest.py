"""The word of an attempt about what it wrote; its last file."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from afterslip_workers.envelope import Envelope
from afterslip_workers.errors import AWAY, TaskError, classify
from afterslip_workers.progress import MANIFEST
from afterslip_workers.store import durable, spool
from afterslip_workers.store.backend import StoreLostError
from afterslip_workers.store.result_folders import RESULT_FOLDERS

VERSION = 1


class StoreError(Exception):
    """The store does not hold what it should; nothing was changed."""


class NotDeliveredError(StoreError):
    """The result is on its worker's disk still, and comes when the store is back."""


def new(envelope: Envelope, **facts: Any) -> dict[str, Any]:
    """Return a manifest of an attempt without files."""
    return {
        "version": VERSION,
        "token": envelope.token,
        "kind": envelope.kind,
        "campaign": envelope.campaign,
        **facts,
    }


def commit(folder: Path, manifest: dict[str, Any]) -> None:
    """Write the manifest; from now on the attempt counts as stored."""
    durable.write_json(folder / MANIFEST, manifest)


def keep(
    envelope: Envelope, write: Callable[[Path], dict[str, Any]]
) -> tuple[dict[str, Any], dict[str, str] | None]:
    """Write a result and its manifest into the store or, if it is away, here.

    Parameters
    ----------
    write : writes all into a folder and returns the manifest; called again for
        another folder where the store has refused.

    Returns
    -------
    The manifest, and {"class", "message"} of what kept it from the store.

    Raises
    ------
    TaskError
        If neither the store nor the spool takes it.
    """
    backend = envelope.store_backend
    try:
        if not backend.remote and not backend.reachable():
            raise StoreLostError(f"the store {backend.name} is not there any more")
        return write(envelope.folder), None
    except (OSError, TaskError) as error:
        refused = classify(error, backend)
        if refused.error_class not in AWAY or backend.remote:
            raise refused from error
    part = RESULT_FOLDERS.get(envelope.kind)
    if part is not None:
        # what little the store took would only be in the way
        clear(envelope.folder / part)
    try:
        manifest = write(spool.make(backend, envelope.token))
    except OSError as error:
        text = f"{refused.message}; nor can the spool take it: {error}"
        raise TaskError(refused.error_class, text) from error
    return manifest, {"class": refused.error_class, "message": refused.message}


def seal(part: Path) -> dict[str, str]:
    """Push a finished directory to the disk and return its files' checksums.

    The checksums are taken from what reads back after the synchronisation.
    """
    durable.sync_tree(part)
    return durable.checksums(part)


def clear(part: Path) -> None:
    """Remove what an earlier try of the same attempt may have left."""
    shutil.rmtree(part, ignore_errors=True)
