"""Acceptance: from an attempt's folder into the campaign, by renames alone.

Each step may be repeated, also after a crash between any two of them: a file is
either still in the attempt or already in the campaign, under its checksum.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from afterslip_workers.progress import MANIFEST
from afterslip_workers.store import durable, paths
from afterslip_workers.store.manifest import VERSION, StoreError

GROUP = "group.zarr"
RESULT = "result"


def promote(store: Path, campaign: str, manifest: dict[str, Any]) -> None:
    """Move what an accepted attempt wrote into its campaign.

    Raises
    ------
    StoreError
        For a manifest of another campaign, model or release, and for files that
        are missing or damaged. Nothing is moved before everything is checked.
    """
    _check_owner(store, campaign, manifest)
    if manifest["kind"] == "greens":
        _promote_group(store, campaign, manifest)
    elif manifest["kind"] == "inversion":
        _promote_inversion(store, campaign, manifest)
    elif not paths.greens(store, campaign).is_dir():
        raise StoreError(f"campaign {campaign} has no greens.zarr")


def _check_owner(store: Path, campaign: str, manifest: dict[str, Any]) -> None:
    if manifest.get("version") != VERSION:
        raise StoreError(
            f"the manifest has version {manifest.get('version')!r}, "
            f"this release reads {VERSION}"
        )
    if manifest.get("campaign") != campaign:
        raise StoreError(
            f"the manifest belongs to campaign {manifest.get('campaign')}, "
            f"not to {campaign}"
        )
    facts = durable.read_json(paths.campaign(store, campaign) / "model.json")
    if not isinstance(facts, dict):
        raise StoreError(f"campaign {campaign} has no model.json yet")
    if manifest.get("model_digest") != facts.get("digest"):
        raise StoreError(
            f"the manifest was made with model {manifest.get('model_digest')}, "
            f"campaign {campaign} has {facts.get('digest')}"
        )


def _target(name: str, index: int) -> str:
    """Chunk file of the campaign for one of the group's.

    A group's arrays are four long along ``source``, so their only chunk there is
    number 0; in the campaign it is the group's number.
    """
    array, _, rest = name.partition("/c/")
    first, slash, others = rest.partition("/")
    if first != "0":
        raise StoreError(f"{name} is not a chunk of a group")
    return f"{array}/c/{index}{slash}{others}"


def _promote_group(store: Path, campaign: str, manifest: dict[str, Any]) -> None:
    source = paths.attempt(store, manifest["token"]) / GROUP
    root = paths.greens(store, campaign)
    if not root.is_dir():
        raise StoreError(f"campaign {campaign} has no greens.zarr")
    index = int(manifest["group"]["index"])
    moves = [
        (source / name, root / _target(name, index), digest)
        for name, digest in manifest["files"].items()
    ]
    _move(moves)


def _promote_inversion(store: Path, campaign: str, manifest: dict[str, Any]) -> None:
    source = paths.attempt(store, manifest["token"]) / RESULT
    root = paths.inversion(store, campaign, manifest["inversion"]["id"])
    moves = [
        (source / name, root / name, digest)
        for name, digest in manifest["files"].items()
    ]
    _move(moves)


def _move(moves: list[tuple[Path, Path, str]]) -> None:
    """Rename files that are still to be moved; all are checked first."""
    pending: list[tuple[Path, Path]] = []
    for old, new, digest in moves:
        if old.is_file():
            _require(old, digest)
            pending.append((old, new))
        elif new.is_file():
            _require(new, digest)
        else:
            raise StoreError(f"{old.name} of {old.parent} is missing")
    folders: set[Path] = set()
    for old, new in pending:
        new.parent.mkdir(parents=True, exist_ok=True)
        old.replace(new)
        folders.update((old.parent, new.parent, new.parent.parent))
    for folder in sorted(folders, key=lambda item: -len(item.parts)):
        durable.sync_directory(folder)


def _require(path: Path, digest: str) -> None:
    found = durable.sha256(path)
    if found != digest:
        raise StoreError(
            f"{path} has checksum {found[:12]}…, its manifest says {digest[:12]}…: "
            "the file is damaged, solve the group again"
        )


def discard(store: Path, token: str) -> None:
    """Remove an attempt with everything it wrote; an absent one is no error."""
    durable.remove_tree(paths.attempt(store, token))


def manifest_of(store: Path, token: str) -> dict[str, Any] | None:
    """Manifest of an attempt, for a dispatcher that missed its receipt."""
    found = durable.read_json(paths.attempt(store, token) / MANIFEST)
    return found if isinstance(found, dict) else None


def missing_groups(store: Path, campaign: str) -> list[int]:
    """Numbers of the groups whose Green's functions are not in the campaign."""
    root = paths.greens(store, campaign)
    facts = durable.read_json(paths.campaign(store, campaign) / "model.json")
    if not isinstance(facts, dict):
        raise StoreError(f"campaign {campaign} has no model.json yet")
    count = len(facts["groups"])
    return [
        index
        for index in range(count)
        if not (root / "mode_count" / "c" / str(index)).is_file()
    ]


def finish(store: Path, campaign: str) -> None:
    """Mark a campaign's store as complete.

    Raises
    ------
    StoreError
        If a group is missing.
    """
    missing = missing_groups(store, campaign)
    if missing:
        raise StoreError(f"campaign {campaign} still lacks the groups {missing}")
    path = paths.greens(store, campaign) / "zarr.json"
    content = durable.read_json(path)
    if not isinstance(content, dict):
        raise StoreError(f"campaign {campaign} has no readable greens.zarr")
    if content["attributes"].get("status") != "complete":
        content["attributes"]["status"] = "complete"
        durable.write_json(path, content)
