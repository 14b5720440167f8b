"""Reading stored files slowly, to find damage before anybody needs them."""

from __future__ import annotations

import errno
import hashlib
from collections.abc import Callable
from pathlib import Path

from afterslip import integrity
from afterslip_workers.messages import GroupManifest, Manifest
from afterslip_workers.store import commit, paths
from afterslip_workers.store.backend import read_json
from afterslip_workers.store.commit import facts_of, moves_of, root_of
from afterslip_workers.store.models import META, file_of
from afterslip_workers.store.open import open_store

# called with the number of bytes after each part of a file; it may wait, or raise
Read = Callable[[int], None]
Promised = dict[str, str]

_LOCAL, _REMOTE = 1 << 20, 8 << 20


class Stored:
    """What a store promises, and whether it holds.

    Parameters
    ----------
    store : folder or address of a bucket.
    """

    def __init__(self, store: str | Path) -> None:
        self._backend = open_store(store)

    def names(self, shelf: str) -> list[str]:
        """Return the names of what is on a shelf, "models" or "files", in order."""
        return sorted(
            name for name in self._backend.names(shelf) if not name.startswith(".")
        )

    def of_shelf(self, shelf: str, name: str) -> Promised:
        """Return the SHA-256 by key of the files of a model or an upload.

        A model that does not say what it should hold promises a file of no content.
        """
        if shelf == "files":
            return {paths.file(name): name}
        described = f"{paths.model(name)}/{META}"
        meta = read_json(self._backend, described)
        if isinstance(meta, dict) and "sha256" in meta:
            return {file_of(name, meta): str(meta["sha256"])}
        # being written, or removed since it was listed
        return {} if self._backend.size(described) is None else {described: ""}

    def of_campaign(self, campaign: str) -> Promised:
        """Return the SHA-256 by key of what was written with a campaign's store.

        Raises
        ------
        StoreError
            The store, or what it was made from, cannot be read.
        """
        root = paths.greens(campaign)
        files = dict(facts_of(self._backend, campaign).get("files", {}))
        if root_of(self._backend, campaign).sealed:
            content = self._backend.read(f"{root}/{integrity.FIXED}") or b""
            try:
                files = integrity.read_checksums(content, campaign)
            except ValueError:
                files[integrity.FIXED] = ""
        return {f"{root}/{name}": digest for name, digest in files.items()}

    def of_result(self, campaign: str, manifest: Manifest) -> Promised:
        """Return the SHA-256 by key of the files of an accepted group or inversion."""
        return {key: digest for _, key, digest in moves_of(campaign, manifest)}

    def damaged(self, files: Promised, read: Read) -> list[str]:
        """Return the keys of the files that are missing or not as promised.

        Raises
        ------
        OSError
            While the store is away.
        """
        return [
            key for key, digest in files.items() if self._sha256(key, read) != digest
        ]

    def _sha256(self, key: str, read: Read) -> str | None:
        """Return the SHA-256 of a file, read part by part; None where there is none.

        Of what the disk holds, not memory, where damage would not show.
        """
        size, total = self._backend.size(key), hashlib.sha256()
        if size is None:
            return None
        part = _REMOTE if self._backend.remote else _LOCAL
        self._backend.drop_cached(key)
        try:
            for start in range(0, size, part):
                content = self._backend.read_range(key, start, min(start + part, size))
                total.update(content)
                read(len(content))
        except OSError as error:
            # a sector that cannot be read is damage as well
            if isinstance(error, FileNotFoundError) or error.errno == errno.EIO:
                return None
            raise
        finally:
            # nobody asked for this file: memory is for those that are read
            self._backend.drop_cached(key)
        return total.hexdigest()

    def checksums_hold(self, campaign: str, manifest: GroupManifest) -> bool:
        """Tell whether a store's checksums of a group are those of its manifest.

        Raises
        ------
        StoreError
            The store cannot be read.
        """
        if not root_of(self._backend, campaign).sealed:
            return True
        group, root = manifest.group.index, paths.greens(campaign)
        content = self._backend.read(f"{root}/{integrity.group_key(group)}") or b""
        try:
            found = integrity.read_checksums(content, campaign, group)
        except ValueError:
            return False
        files = self.of_result(campaign, manifest)
        return found == {key.removeprefix(f"{root}/"): d for key, d in files.items()}

    def write_checksums(self, campaign: str, manifest: GroupManifest) -> None:
        """Write the checksums of a group anew from its manifest."""
        commit.write_checksums(
            self._backend, campaign, manifest, moves_of(campaign, manifest)
        )
