"""Checksums of ``greens.zarr``: how they are stored, and what they say of a file.

Three kinds of documents, all valid nodes of Zarr version 3::

    zarr.json                  the root: attributes ``store_id`` and ``checksum``
    checksums/zarr.json        of the files that are written with the store
    checksums/<group>/zarr.json    of the files of a group of sources

A document of checksums has the attributes ``version``, ``store`` (the root's
``store_id``), ``group`` (of a group's), ``files`` ({key: SHA-256, hexadecimal}) and
``checksum``. ``checksum`` is, in the root as well, the SHA-256 of the document's
canonical JSON without that attribute. A group is accepted exactly when its document
is there, which is why it is written after the group's files.

Nothing here knows how files are read: a folder, a bucket and a server serve alike.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from afterslip.errors import ArchiveError, DamagedError

# of the store's layout; 1: without checksums, as release 0.1.0 wrote it
FORMAT_VERSION = 2
# of the documents of checksums
VERSION = 1

ROOT = "zarr.json"
FOLDER = "checksums"
FIXED = f"{FOLDER}/{ROOT}"

# header of a server's answer: what was asked for is damaged
PROBLEM, DAMAGED = "X-Problem", "damaged"

# arrays that groups of sources write; all others are written with the store
GROUPED = frozenset(
    {
        "response",
        "recurrence",
        "start_norm",
        "shift",
        "displacement",
        "mode_count",
        "residual",
        "time_error",
        "iterations",
    }
)

_CHUNK = re.compile(r"([a-z_]+)/c/(\d+)(?:/\d+)*")
_OF_GROUP = re.compile(rf"{FOLDER}/(\d+)/{ROOT}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_HINT = "run `afterslip fsck --repair`; a copy, fetch it again"


def group_key(group: int) -> str:
    """Return the key of a group's document of checksums."""
    return f"{FOLDER}/{group}/{ROOT}"


def group_of(key: str) -> int | None:
    """Return the group that writes a chunk file; None for all other files."""
    found = _CHUNK.fullmatch(key)
    return int(found[2]) if found and found[1] in GROUPED else None


def group_of_document(key: str) -> int | None:
    """Return the group whose checksums a key holds; None for all other files."""
    found = _OF_GROUP.fullmatch(key)
    return int(found[1]) if found else None


def is_document(key: str) -> bool:
    """Tell whether a key is a document of checksums."""
    return key == FIXED or group_of_document(key) is not None


def checksum(document: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a node's canonical JSON without its ``checksum``."""
    attributes = dict(document.get("attributes") or {})
    attributes.pop("checksum", None)
    plain = {**document, "attributes": attributes}
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def signed(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a node with the ``checksum`` that it must have."""
    attributes = {**(document.get("attributes") or {}), "checksum": checksum(document)}
    return {**document, "attributes": attributes}


def signed_root(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a root that was changed, with its new checksum if it had one.

    The root of a store of version 1 has none, and gets none.
    """
    if "checksum" not in (document.get("attributes") or {}):
        return dict(document)
    return signed(document)


def write_checksums(
    store: str, files: Mapping[str, str], group: int | None = None
) -> bytes:
    """Return the content of a document of checksums.

    Parameters
    ----------
    store : the root's ``store_id``.
    files : SHA-256, hexadecimal, by key below the store.
    group : whose files they are; None: those that are written with the store.
    """
    attributes: dict[str, Any] = {"version": VERSION, "store": store}
    if group is not None:
        attributes["group"] = group
    attributes["files"] = dict(sorted(files.items()))
    node = {"zarr_format": 3, "node_type": "group", "attributes": attributes}
    return json.dumps(signed(node), indent=1).encode()


def read_checksums(
    content: bytes, store: str, group: int | None = None
) -> dict[str, str]:
    """Return the checksums by key that a document holds.

    Parameters
    ----------
    store, group : as for `write_checksums`; the document must be theirs.

    Raises
    ------
    ValueError
        What is wrong with the document, as the end of a sentence.
    """
    attributes = _attributes(content)
    if attributes.get("version") != VERSION:
        raise ValueError(f"has version {attributes.get('version')!r}, not {VERSION}")
    if attributes.get("store") != store:
        raise ValueError(f"belongs to the store {attributes.get('store')!r}")
    if attributes.get("group") != group:
        raise ValueError(f"belongs to group {attributes.get('group')!r}")
    files = attributes.get("files")
    if not isinstance(files, dict) or not all(
        isinstance(digest, str) and _SHA256.fullmatch(digest)
        for digest in files.values()
    ):
        raise ValueError("does not hold checksums")
    return files


@dataclass(frozen=True, slots=True)
class Root:
    """What a store says of itself.

    Attributes
    ----------
    version : of the layout.
    store : its ``store_id``; empty before version 2.
    status : "building", "complete".
    groups : number of groups that it is made for.
    """

    version: int
    store: str
    status: str
    groups: int = 0

    @property
    def sealed(self) -> bool:
        """Whether the store has checksums."""
        return self.version >= 2


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
    if not isinstance(attributes, dict):
        raise ValueError("has no attributes")
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
    return Root(version, store, str(attributes.get("status")), _groups(document))


def _groups(root: Mapping[str, Any]) -> int:
    """Return the number of groups from the description of one of their arrays."""
    members = (root.get("consolidated_metadata") or {}).get("metadata") or {}
    try:
        node = members["mode_count"]
        chunk = node["chunk_grid"]["configuration"]["chunk_shape"][0]
        return -(-int(node["shape"][0]) // int(chunk))
    except (KeyError, TypeError, IndexError):
        return 0


def json_of(content: bytes) -> dict[str, Any]:
    """Return the JSON object of a content.

    Raises
    ------
    ValueError
        It is none.
    """
    try:
        document = json.loads(content)
    except ValueError:
        raise ValueError("is not JSON") from None
    if not isinstance(document, dict):
        raise ValueError("is not a JSON object")
    return document


def _attributes(content: bytes) -> dict[str, Any]:
    document = json_of(content)
    attributes = document.get("attributes")
    if not isinstance(attributes, dict):
        raise ValueError("has no attributes")
    if attributes.get("checksum") != checksum(document):
        raise ValueError("does not have the content of its checksum")
    return attributes


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
            raise ArchiveError(f"{self.name} has no {ROOT}: it is not a store")
        return self.check_root(content)

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
        self._root = root
        return root

    def expected(self, key: str) -> str | None:
        """Return the SHA-256 that a file of a sealed store must have.

        Returns
        -------
        None where the store holds no such file: it stands for the fill value, or
        its group is not accepted yet.

        Raises
        ------
        DamagedError
            The checksums are damaged or gone, or the file is in their place
            before it is accepted.
        """
        group = group_of(key)
        if group is None:
            files = self._files(None)
            if files is None:
                raise self.damaged(FIXED, "is missing")
            return files.get(key)
        files = self._files(group)
        if files is None:
            if self.root.status != "building":
                raise self.damaged(group_key(group), "is missing", group)
            if not self._exists(key):
                return None
            # it may have been accepted between the two looks
            files = self._files(group)
        if files is None:
            text = "has no checksum yet: its group is being accepted now, or is damaged"
            raise self.damaged(key, text, group)
        if key not in files:
            raise self.damaged(key, "has no checksum", group)
        return files[key]

    def ready(self, key: str) -> bool:
        """Tell whether nothing has to be read to know what a file must be."""
        return self._root is not None and group_of(key) in self._documents

    def forget(self, key: str) -> None:
        """Read the checksums of a file again the next time: they may have changed."""
        self._documents.pop(group_of(key), None)

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
            raise self.damaged(key, text, group_of(key))

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


# a file may change again within one tick of its file system's clock
_YOUNG_NS = 2_000_000_000
_MOST = 100_000
_BLOCK = 1 << 20

_Stamp = tuple[int, int, int, int, int]


class FileDigests:
    """SHA-256 of files, taken again when a file's size, times or inode change."""

    def __init__(self) -> None:
        self._known: dict[Path, tuple[_Stamp, str]] = {}
        # two readers of one file wait for one another, of two files hardly ever
        self._locks = [threading.Lock() for _ in range(64)]

    def clear(self) -> None:
        """Take all of them again."""
        self._known.clear()

    def cached(self, path: Path) -> str | None:
        """Return the SHA-256 of a file that has not changed since it was taken."""
        known = self._known.get(path)
        try:
            same = known is not None and known[0] == _stamp(path)
        except OSError:
            return None
        return known[1] if known is not None and same else None

    def of(self, path: Path) -> str:
        """Return the SHA-256 of a file, hexadecimal.

        Raises
        ------
        OSError
            It cannot be read.
        """
        with self._locks[hash(path) % len(self._locks)]:
            if (known := self.cached(path)) is not None:
                return known
            before = _stamp(path)
            with path.open("rb") as stream:
                digest = hashlib.file_digest(stream, "sha256").hexdigest()
            young = time.time_ns() - max(before[2:4]) < _YOUNG_NS
            if not young and _stamp(path) == before:
                if len(self._known) >= _MOST:
                    self._known.clear()
                self._known[path] = (before, digest)
            return digest

    def of_any(self, path: Path) -> str | None:
        """Return the SHA-256 of a file, None where there is none."""
        try:
            return self.of(path)
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return None


def _stamp(path: Path) -> _Stamp:
    found = path.stat()
    times = found.st_mtime_ns, found.st_ctime_ns
    return found.st_dev, found.st_size, *times, found.st_ino


# of this process
file_digests = FileDigests()
