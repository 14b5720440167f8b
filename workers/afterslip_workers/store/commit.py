"""Acceptance: from an attempt's folder into the campaign.

In a folder this takes renames alone, in a bucket copies on the server. Each step may
be repeated, also after a crash between any two of them: a file is either still in
the attempt or already in the campaign, under its checksum.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from afterslip import integrity
from afterslip.errors import ArchiveError
from afterslip_workers.messages import (
    GroupManifest,
    InversionManifest,
    Manifest,
    ModelManifest,
    TaskError,
    read_manifest,
    read_model_facts,
)
from afterslip_workers.store import checkpoint, paths
from afterslip_workers.store.backend import StoreBackend, read_json
from afterslip_workers.store.errors import NotDeliveredError, StoreError, StoreLostError
from afterslip_workers.store.paths import MANIFEST
from afterslip_workers.store.result_folders import RESULT_FOLDERS

Moves = list[tuple[str, str, str]]


@contextmanager
def _there(backend: StoreBackend) -> Iterator[None]:
    """Say of a store that is away that it is; all files in it seem to be missing."""
    try:
        yield
    except StoreError as error:
        if backend.reachable():
            raise
        raise StoreLostError(f"the store {backend.name} is away") from error


def promote(backend: StoreBackend, campaign: str, manifest: Manifest) -> None:
    """Move what an accepted attempt wrote into its campaign.

    Raises
    ------
    NotDeliveredError
        While the result waits on its worker's disk.
    StoreError
        For a manifest of another campaign or model, and for files that are missing
        or damaged. Nothing is moved before everything is checked.
    StoreLostError
        While the store is away.
    """
    with _there(backend):
        _check_owner(backend, campaign, manifest)
        if backend.size(f"{paths.greens(campaign)}/zarr.json") is None:
            raise StoreError(f"campaign {campaign} has no greens.zarr")
        moves = moves_of(campaign, manifest)
        _move(backend, manifest.token, moves)
        if isinstance(manifest, GroupManifest):
            write_checksums(backend, campaign, manifest, moves, fenced=True)
    recorded = paths.accepted_manifest(campaign, name_of(manifest))
    # without indents, whose encoder is many times slower: there is one a group
    content = json.dumps(manifest.as_json(), sort_keys=True).encode()
    if not isinstance(manifest, GroupManifest):
        backend.write(recorded, content)
        return
    _write_fenced(backend, manifest.token, recorded, content)
    if manifest.stats.checkpoint:
        checkpoint.discard(backend, manifest.stats.checkpoint)


def write_checksums(
    backend: StoreBackend,
    campaign: str,
    manifest: GroupManifest,
    moves: Moves,
    *,
    fenced: bool = False,
) -> None:
    """Write the checksums of a group into the store: from now on it is accepted.

    Parameters
    ----------
    fenced : only while the attempt's folder is there, as it is until the group is
        accepted; repairs write them later.
    """
    index = manifest.group.index
    root = paths.greens(campaign)
    files = {new.removeprefix(f"{root}/"): digest for _, new, digest in moves}
    content = integrity.write_checksums(campaign, files, index)
    key = f"{root}/{integrity.group_key(index)}"
    if fenced:
        _write_fenced(backend, manifest.token, key, content)
    else:
        backend.write(key, content)


def _write_fenced(backend: StoreBackend, token: str, key: str, content: bytes) -> None:
    """Write in the name of an attempt, unless it was discarded.

    A dispatcher that was suspended here must not overwrite what a later attempt has
    brought, see docs/decisions/0005-fenced-promotion.md.
    """
    try:
        backend.write_by_way_of(paths.attempt(token), key, content)
    except FileNotFoundError:
        if backend.read(key) != content:
            raise StoreError(
                f"attempt {token} was discarded while it was promoted"
            ) from None


def name_of(manifest: Manifest) -> str:
    """Name under which a campaign stores a manifest, for later checks."""
    if isinstance(manifest, GroupManifest):
        return str(manifest.group.index)
    if isinstance(manifest, InversionManifest):
        return f"inversion-{manifest.inversion.id}"
    return "model"


def moves_of(campaign: str, manifest: Manifest) -> Moves:
    """Return for each file of a manifest its keys before and after, and checksum."""
    if isinstance(manifest, ModelManifest):
        return []
    old = f"{paths.attempt(manifest.token)}/{RESULT_FOLDERS[manifest.kind]}"
    if isinstance(manifest, GroupManifest):
        index = manifest.group.index
        new = paths.greens(campaign)
        names = {name: chunk_key(name, index) for name in manifest.files}
    else:
        new = paths.inversion(campaign, manifest.inversion.id)
        names = {name: name for name in manifest.files}
    return [
        (f"{old}/{name}", f"{new}/{names[name]}", digest)
        for name, digest in manifest.files.items()
    ]


def _check_owner(backend: StoreBackend, campaign: str, manifest: Manifest) -> None:
    if manifest.campaign != campaign:
        raise StoreError(
            f"the manifest belongs to campaign {manifest.campaign}, not to {campaign}"
        )
    facts = facts_of(backend, campaign)
    if manifest.model_digest != facts.get("digest"):
        raise StoreError(
            f"the manifest was made with model {manifest.model_digest}, "
            f"campaign {campaign} has {facts.get('digest')}"
        )


def facts_of(backend: StoreBackend, campaign: str) -> dict[str, Any]:
    """Return what a campaign was built from.

    Raises
    ------
    StoreError
        If the campaign's model is not built, or another release has described it.
    """
    facts = read_json(backend, paths.model_facts(campaign))
    if not isinstance(facts, dict):
        raise StoreError(f"campaign {campaign} has no model.json yet")
    try:
        return read_model_facts(facts).as_json()
    except TaskError as error:
        raise StoreError(f"campaign {campaign}: {error}") from error


def places(backend: StoreBackend, campaign: str) -> dict[str, list[Any]] | None:
    """Where each unit source of a campaign lies, in the order of its store.

    Returns
    -------
    {"fault": number in the spec of each, "patch": (along strike, down dip) of each};
    None where the store says nothing of them.
    """
    try:
        facts = facts_of(backend, campaign)
        table = facts["table"]
        order = facts.get("order") or range(len(table["fault"]))
        return {name: [table[name][k] for k in order] for name in ("fault", "patch")}
    except (StoreError, KeyError, TypeError, IndexError):
        return None


def chunk_key(name: str, index: int) -> str:
    """Chunk file of the campaign for one of the group's.

    A group's arrays are four long along ``source``, so their only chunk there is
    number 0; in the campaign it is the group's number.
    """
    array, _, rest = name.partition("/c/")
    first, slash, others = rest.partition("/")
    if first != "0":
        raise StoreError(f"{name} is not a chunk of a group")
    return f"{array}/c/{index}{slash}{others}"


def _move(backend: StoreBackend, token: str, moves: Moves) -> None:
    """Move files that are still to be moved; all are checked first.

    A dispatcher that was suspended may move the same files when it wakes: what has
    gone between a look and a rename is then in the campaign.
    """
    # a file can only go once
    for _ in moves:
        try:
            _move_left(backend, token, moves)
        except FileNotFoundError:
            continue
        return
    _move_left(backend, token, moves)


def _move_left(backend: StoreBackend, token: str, moves: Moves) -> None:
    pending: list[tuple[str, str]] = []
    for old, new, digest in moves:
        if backend.size(old) is not None:
            _require(backend, old, digest)
            pending.append((old, new))
        elif backend.size(new) is not None:
            _require(backend, new, digest)
        elif backend.size(f"{paths.attempt(token)}/{MANIFEST}") is None:
            raise NotDeliveredError(f"the result of attempt {token} is not here yet")
        else:
            raise StoreError(f"{old} is missing")
    backend.move(pending)


def _require(backend: StoreBackend, key: str, digest: str) -> None:
    found = backend.sha256(key)
    if found != digest:
        raise StoreError(
            f"{key} has checksum {found[:12]}…, its manifest says {digest[:12]}…: "
            "the file is damaged, solve the group again"
        )


def discard(backend: StoreBackend, token: str) -> None:
    """Remove an attempt with everything it wrote; an absent one is no error."""
    backend.remove(paths.attempt(token))


def manifest_of(backend: StoreBackend, token: str) -> Manifest | None:
    """Manifest of an attempt, for a dispatcher that missed its receipt.

    Raises
    ------
    TaskError
        If it cannot be read, see `afterslip_workers.messages.read_manifest`.
    """
    found = manifest_json(backend, token)
    return None if found is None else read_manifest(found)


def manifest_json(backend: StoreBackend, token: str) -> dict[str, Any] | None:
    """Return a manifest as an attempt wrote it."""
    found = read_json(backend, f"{paths.attempt(token)}/{MANIFEST}")
    return found if isinstance(found, dict) else None


def missing_groups(backend: StoreBackend, campaign: str) -> list[int]:
    """Numbers of the groups whose Green's functions are not in the campaign."""
    count = len(facts_of(backend, campaign)["groups"])
    root = paths.greens(campaign)
    known = root_of(backend, campaign)
    if known.sealed:
        folder = f"{root}/{integrity.FOLDER}"
        keys = [key.removeprefix(f"{root}/") for key in backend.keys(folder)]
        there = {integrity.group_of_document(key) for key in keys}
    else:
        # every group has a file in each of their arrays
        names = backend.names(f"{root}/{min(known.grouped, default='')}/c")
        there = {int(name) for name in names if name.isdecimal()}
    return [index for index in range(count) if index not in there]


def root_of(backend: StoreBackend, campaign: str) -> integrity.Root:
    """Return what a campaign's store says of itself.

    Raises
    ------
    StoreError
        It is not readable.
    """
    content = backend.read(f"{paths.greens(campaign)}/{integrity.ROOT}")
    if content is None:
        raise StoreError(f"campaign {campaign} has no greens.zarr")
    try:
        return integrity.read_root(content)
    except (ValueError, ArchiveError) as error:
        raise StoreError(
            f"campaign {campaign} has no readable greens.zarr: its root {error}"
        ) from None


def finish(backend: StoreBackend, campaign: str) -> None:
    """Mark a campaign's store as complete.

    Raises
    ------
    StoreError
        If a group is missing.
    StoreLostError
        While the store is away.
    """
    with _there(backend):
        missing = missing_groups(backend, campaign)
        if missing:
            raise StoreError(f"campaign {campaign} still lacks the groups {missing}")
        set_status(backend, campaign, "complete")


def set_status(backend: StoreBackend, campaign: str, status: str) -> None:
    """Write a campaign's status into its store, unless it is there already.

    Raises
    ------
    StoreError
        The store's root is damaged or gone.
    """
    if root_of(backend, campaign).status == status:
        return
    key = f"{paths.greens(campaign)}/{integrity.ROOT}"
    content = json.loads(backend.read(key) or b"{}")
    content["attributes"]["status"] = status
    content = integrity.signed_root(content)
    backend.write(key, json.dumps(content, indent=1, sort_keys=True).encode())
