"""Keys of ``greens.zarr``, and its documents of checksums: read, written, signed."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Mapping
from typing import Any

# of the store's layout; 1: without checksums, as release 0.1.0 wrote it
FORMAT_VERSION = 2
# of the documents of checksums
VERSION = 1

ROOT = "zarr.json"
FOLDER = "checksums"
FIXED = f"{FOLDER}/{ROOT}"

# header of a server's answer: what was asked for is damaged
PROBLEM, DAMAGED = "X-Problem", "damaged"

# as Zarr writes it; no array has a thousand million chunks along a dimension
_NUMBER = r"(?:0|[1-9][0-9]{0,8})"
_CHUNK = re.compile(rf"([a-z_]+)/c/({_NUMBER})(?:/{_NUMBER})*")
_OF_GROUP = re.compile(rf"{FOLDER}/({_NUMBER})/{ROOT}")
_SHA256 = re.compile(r"[0-9a-f]{64}")


def group_key(group: int) -> str:
    """Return the key of a group's document of checksums."""
    return f"{FOLDER}/{group}/{ROOT}"


def group_of(key: str, grouped: Collection[str]) -> int | None:
    """Return the group that writes a chunk file; None for all other files.

    Parameters
    ----------
    grouped : names of the arrays that groups write, as the root has them.
    """
    found = _CHUNK.fullmatch(key)
    return int(found[2]) if found and found[1] in grouped else None


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
