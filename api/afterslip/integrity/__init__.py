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

from afterslip.integrity.checksums import (
    Checksums,
    Root,
    damaged,
    read_root,
)
from afterslip.integrity.digests import (
    FileDigests,
    file_digests,
)
from afterslip.integrity.documents import (
    DAMAGED,
    FIXED,
    FOLDER,
    FORMAT_VERSION,
    PROBLEM,
    ROOT,
    VERSION,
    checksum,
    group_key,
    group_of,
    group_of_document,
    is_document,
    json_of,
    read_checksums,
    signed,
    signed_root,
    write_checksums,
)

__all__ = [
    "DAMAGED",
    "FIXED",
    "FOLDER",
    "FORMAT_VERSION",
    "PROBLEM",
    "ROOT",
    "VERSION",
    "Checksums",
    "FileDigests",
    "Root",
    "checksum",
    "damaged",
    "file_digests",
    "group_key",
    "group_of",
    "group_of_document",
    "is_document",
    "json_of",
    "read_checksums",
    "read_root",
    "signed",
    "signed_root",
    "write_checksums",
]
