"""What a store's root and its checksums say of its files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from afterslip.errors import ArchiveError, DamagedError
from afterslip.integrity.documents import (
    FIXED,
    FORMAT_VERSION,
    ROOT,
    checksum,
    group_key,
    group_of,
    group_of_document,
    json_of,
    read_checksums,
)

_HINT = "run `afterslip fsck --repair`; a copy, fetch it again"


@dataclass(frozen=True, slots=True)
class Root:
    """What a store says of itself.

    Attributes
    ----------
    version : of the layout.
    store : its ``store_id``; empty before version 2.
    status : "building", "complete".
    grids : number of files along each dimension, by array that groups write; all
        others are the store's coordinates, which are written with it.
    """

    version: int
    store: str
    status: str
    grids: Mapping[str, tuple[int, ...]] = field(default_factory=dict, hash=False)

    @property
    def sealed(self) -> bool:
        """Whether the store has checksums."""
        return self.version >= 2

    @property
    def groups(self) -> int:
        """Number of groups that the store is made for; 0 where it does not say."""
        return max((grid[0] for grid in self.grids.values() if grid), default=0)

    @property
    def grouped(self) -> frozenset[str]:
        """Names of the arrays that groups write."""
        return frozenset(self.grids)

    def has_chunk(self, key: str) -> bool:
        """Tell whether the key of a group's chunk is inside its array's grid."""
        name, _, place = key.partition("/c/")
        grid, numbers = self.grids.get(name, ()), place.split("/")
        return len(numbers) == len(grid) and all(
            int(number) < count for number, count in zip(numbers, grid, strict=True)
        )


def read_root(content: bytes) -> Root:
    """Read and check the root's document.

    Raises
    ------
    ValueError
        What is wrong with the document, as the end of a sentence.
    ArchiveError
        A later release wrote it.
    """
    document = json_of(content)
    attributes = document.get("attributes")
    if document.get("node_type") != "group" or not isinstance(attributes, dict):
        raise ValueError("does not describe a store")
    # a sealed store never passes for one without checksums
    sealed = bool({"checksum", "store_id"} & set(attributes))
    if sealed and attributes.get("checksum") != checksum(document):
        raise ValueError("does not have the content of its checksum")
    version = attributes.get("format_version", 1)
    if isinstance(version, int) and version > FORMAT_VERSION:
        raise ArchiveError(
            f"the store has format_version {version}, this release reads up to "
            f"{FORMAT_VERSION}: install a newer afterslip"
        )
    if version not in ((2,) if sealed else (1,)):
        raise ValueError(f"has format_version {version!r} and no valid checksum")
    store = str(attributes.get("store_id", ""))
    return Root(version, store, str(attributes.get("status")), _grids(document))


def _grids(root: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    """Return the number of files along each dimension, by array of the groups."""
    coordinates = str((root.get("attributes") or {}).get("coordinates", "")).split()
    members = (root.get("consolidated_metadata") or {}).get("metadata") or {}
    grids = {}
    for name, node in members.items():
        if name in coordinates:
            continue
        try:
            chunk = node["chunk_grid"]["configuration"]["chunk_shape"]
            pairs = zip(node["shape"], chunk, strict=True)
            grids[name] = tuple(-(-int(n) // int(part)) for n, part in pairs)
        except (KeyError, TypeError, ValueError, ZeroDivisionError):
            # a group, or an array of another kind
            continue
    return grids


class Checksums:
    """What a store's checksums say of its files; documents are read when needed.

    Parameters
    ----------
    name : of the store, for messages.
    read : returns the content of a small file, None where there is none.
    exists : tells whether there is a file.
    store : the ``store_id`` that it must have; None: any.
    """

    def __init__(
        self,
        name: str,
        read: Callable[[str], bytes | None],
        exists: Callable[[str], bool],
        store: str | None = None,
    ) -> None:
        self.name = name
        self._read, self._exists, self._store = read, exists, store
        self._root: Root | None = None
        self._documents: dict[int | None, dict[str, str]] = {}

    @property
    def root(self) -> Root:
        """The root's document, read once.

        Raises
        ------
        DamagedError, ArchiveError
        """
        return self._root if self._root is not None else self.read_root()

    def read_root(self) -> Root:
        """Read the root's document again.

        Raises
        ------
        DamagedError, ArchiveError
        """
        content = self._read(ROOT)
        if content is None:
            self.require_root()
            raise ArchiveError(f"{self.name} has no {ROOT}: it is not a store")
        return self.check_root(content)

    def require_root(self) -> None:
        """Say that a root which is not there is missing, where there must be one.

        Raises
        ------
        DamagedError
            The store is known by its ``store_id``, or its checksums are there.
        """
        if self._store is not None or self._exists(FIXED):
            raise self.damaged(ROOT, "is missing")

    @property
    def root_read(self) -> Root | None:
        """The root's document, None before it was read."""
        return self._root

    def check_root(self, content: bytes) -> Root:
        """Check a content of the root's document.

        Raises
        ------
        DamagedError, ArchiveError
        """
        try:
            root = read_root(content)
        except ValueError as error:
            raise self.damaged(ROOT, str(error)) from None
        if self._store is not None and root.sealed and root.store != self._store:
            raise self.damaged(ROOT, f"belongs to the store {root.store!r}")
        if not root.sealed and self._exists(FIXED):
            raise self.damaged(ROOT, "is not the one that the checksums are of")
        self._root = root
        return root

    def expected(self, key: str) -> str | None:
        """Return the SHA-256 that a file of a sealed store must have.

        Returns
        -------
        None where the store holds no such file: it stands for the fill value, its
        group is not accepted yet, or no array has such a chunk.

        Raises
        ------
        DamagedError
            The checksums are damaged or gone, or the file is in their place
            before it is accepted.
        """
        group = self._group(key)
        if group is None:
            files = self._files(None)
            if files is None:
                raise self.damaged(FIXED, "is missing")
            return files.get(key)
        files = self._files(group)
        if files is None:
            if self.root.status != "building" and group in range(self.root.groups):
                raise self.damaged(group_key(group), "is missing", group)
            if not self._exists(key):
                return None
            # it may have been accepted between the two looks
            files = self._files(group)
        if files is None:
            text = "has no checksum yet: its group is being accepted now, or is damaged"
            raise self.damaged(key, text, group)
        if key not in files and self.root.has_chunk(key):
            raise self.damaged(key, "has no checksum", group)
        return files.get(key)

    def ready(self, key: str) -> bool:
        """Tell whether nothing has to be read to know what a file must be."""
        return self._root is not None and self._group(key) in self._documents

    def forget(self, key: str) -> None:
        """Read the checksums of a file again the next time: they may have changed."""
        self._documents.pop(self._group(key), None)

    def require(self, key: str, found: str | None) -> None:
        """Compare a file's checksum with what it must be.

        Parameters
        ----------
        found : SHA-256, hexadecimal; None: there is no file.

        Raises
        ------
        DamagedError
        """
        if found == self.expected(key):
            return
        self.forget(key)
        if found == (digest := self.expected(key)):
            return
        text = "is missing" if found is None else "does not have its checksum"
        if digest is not None:
            raise self.damaged(key, text, self._group(key))

    def _group(self, key: str) -> int | None:
        return group_of(key, self.root.grouped)

    def groups(self) -> dict[int, dict[str, str]]:
        """Return the files of every accepted group.

        Raises
        ------
        DamagedError
            Also where a complete store lacks one.
        """
        found = {}
        for group in range(self.root.groups):
            files = self._files(group)
            if files is not None:
                found[group] = files
            elif self.root.status != "building":
                raise self.damaged(group_key(group), "is missing", group)
        return found

    def fixed(self) -> dict[str, str]:
        """Return the files that are written with the store.

        Raises
        ------
        DamagedError
        """
        files = self._files(None)
        if files is None:
            raise self.damaged(FIXED, "is missing")
        return files

    def _files(self, group: int | None) -> dict[str, str] | None:
        known = self._documents.get(group)
        if known is not None:
            return known
        key = FIXED if group is None else group_key(group)
        content = self._read(key)
        if content is None:
            return None
        self._documents[group] = self.check_document(key, content)
        return self._documents[group]

    def require_document(self, key: str, content: bytes | None) -> None:
        """Compare a document of checksums with what it must be.

        Parameters
        ----------
        content : None: there is none.

        Raises
        ------
        DamagedError
            Also where there must be one.
        """
        if content is not None:
            self.check_document(key, content)
            return
        group = group_of_document(key)
        accepted = self.root.status != "building" and group in range(self.root.groups)
        if group is None or accepted:
            raise self.damaged(key, "is missing", group)

    def check_document(self, key: str, content: bytes) -> dict[str, str]:
        """Return the checksums by key that a document of this store holds.

        Raises
        ------
        DamagedError
        """
        group = group_of_document(key)
        try:
            return read_checksums(content, self.root.store, group)
        except ValueError as error:
            raise self.damaged(key, str(error), group) from None

    def damaged(self, key: str, what: str, group: int | None = None) -> DamagedError:
        """Return the error of a file."""
        return damaged(self.name, key, what, group)


def damaged(store: str, key: str, what: str, group: int | None = None) -> DamagedError:
    """Return the error of a file, with what to do about it."""
    return DamagedError(store, key, what, _HINT, group=group)
