"""The word of an attempt about what it wrote; its last file."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from afterslip_workers.store import durable
from afterslip_workers.store.paths import MANIFEST

VERSION = 2
# 1 is of release 0.1.0, whose accepted results stay as they are
READ = (1, VERSION)
# kinds of results by kinds of work: a stored format, which outlives the words for work
_RESULTS = {"group": "greens"}


def kind_of(work: str) -> str:
    """Return the kind of result that a kind of work makes."""
    return _RESULTS.get(work, work)


def new(token: str, kind: str, campaign: str, **facts: Any) -> dict[str, Any]:
    """Return a manifest of an attempt without files; see `kind_of`."""
    return {
        "version": VERSION,
        "token": token,
        "kind": kind,
        "campaign": campaign,
        **facts,
    }


def commit(folder: Path, manifest: dict[str, Any]) -> None:
    """Write the manifest; from now on the attempt counts as stored."""
    durable.write_json(folder / MANIFEST, manifest)


def seal(part: Path) -> dict[str, str]:
    """Push a finished directory to the disk and return its files' checksums.

    The checksums are taken from what reads back after the synchronisation.
    """
    durable.sync_tree(part)
    return durable.checksums(part)


def clear(part: Path) -> None:
    """Remove what an earlier try of the same attempt may have left."""
    shutil.rmtree(part, ignore_errors=True)
