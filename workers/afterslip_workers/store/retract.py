"""Taking back what was accepted and is damaged, so that nobody reads it."""

from __future__ import annotations

from collections.abc import Callable

from afterslip import integrity
from afterslip_workers.messages import GroupManifest, Manifest
from afterslip_workers.store import paths
from afterslip_workers.store.backend import StoreBackend
from afterslip_workers.store.commit import moves_of, name_of, set_status

Still = Callable[[], bool]


def retract(
    backend: StoreBackend, campaign: str, manifest: Manifest, still: Still
) -> None:
    """Remove the files of an accepted group or inversion; may be repeated.

    First the store is no longer complete, then the group's checksums go, without
    which it is not accepted, then its files.

    Parameters
    ----------
    still : asked before each removal; False once the files may be somebody else's.

    Raises
    ------
    StoreError
        If the campaign's store cannot be read.
    OSError
        If the store is away.
    """
    keys = [paths.accepted_manifest(campaign, name_of(manifest))]
    keys += [key for _, key, _ in moves_of(campaign, manifest)]
    if isinstance(manifest, GroupManifest):
        set_status(backend, campaign, "building")
        document = integrity.group_key(manifest.group.index)
        keys.insert(0, f"{paths.greens(campaign)}/{document}")
    for key in keys:
        if not still():
            return
        backend.remove(key)
