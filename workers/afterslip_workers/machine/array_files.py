"""NumPy's archives of gigabytes, read and written by all cores.

NumPy itself reads one array after the other through `zipfile`, in pieces that it copies
and sums up at once. Here a thread reads each array straight to where it stays. A file's
new pages are cleared by the system as they are written, which several threads share.
"""

from __future__ import annotations

import os
import re
import struct
import zipfile
import zlib
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import IO, Any, BinaryIO, Literal, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

# a member's signature, 22 bytes that the directory repeats, and two lengths
_LOCAL, _SIGNATURE = struct.Struct("<4s22xHH"), b"PK\3\4"
_READERS = _WRITERS = 8
# what a thread writes at once
_PIECE = 1 << 24
_NPY = ".npy"
# As numpy.lib.format writes it, which reads it by `ast.literal_eval`: that fails at
# times while another thread is in it too, in older releases of Python 3.11 and 3.12
# (https://github.com/python/cpython/issues/106905).
_HEADER = re.compile(
    rb"\{'descr': '([<>|]\w\d{0,6})', 'fortran_order': (True|False), "
    rb"'shape': \(([\d, ]*)\), \} *\n"
)
_LENGTHS = {
    b"\x93NUMPY\1\0": struct.Struct("<H"),
    b"\x93NUMPY\2\0": struct.Struct("<L"),
}
_LONGEST_HEADER = 10_000


def read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """Read all arrays that ``numpy.savez`` has written.

    Raises
    ------
    OSError
        If the file cannot be read.
    zipfile.BadZipFile
        If it is damaged, compressed, or has arrays of objects.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
    except (ValueError, NotImplementedError, struct.error) as error:
        raise zipfile.BadZipFile(f"its directory is damaged: {error}") from error
    # those that take longest first
    members.sort(key=lambda member: -member.file_size)
    with ThreadPoolExecutor(_READERS) as pool:
        arrays = list(pool.map(lambda member: _read(path, member), members))
    names = (member.filename.removesuffix(_NPY) for member in members)
    return dict(zip(names, arrays, strict=True))


def write_arrays(stream: BinaryIO, arrays: Mapping[str, ArrayLike]) -> None:
    """Write the file that ``numpy.savez`` writes, byte by byte.

    Parameters
    ----------
    stream : of an empty file; its position plays no part.
    arrays : none of objects.

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    with ThreadPoolExecutor(_WRITERS) as pool:
        shared = _SharedWrites(stream.fileno(), pool)
        with zipfile.ZipFile(cast("IO[bytes]", shared), "w") as archive:
            for name, given in arrays.items():
                array = np.asarray(given)
                head = np.lib.format.header_data_from_array_1_0(array)
                # in the order in which they lie, if they do in one
                rows = array.T if head["fortran_order"] else array
                flat = np.ascontiguousarray(rows).reshape(-1).view(np.uint8)
                with archive.open(f"{name}{_NPY}", "w", force_zip64=True) as member:
                    np.lib.format.write_array_header_1_0(member, head)
                    for first in range(0, len(flat), _PIECE):
                        member.write(flat[first : first + _PIECE].data)
        shared.finish()


class _SharedWrites:
    """What `zipfile` needs of a file of which other threads write large pieces."""

    def __init__(self, handle: int, pool: ThreadPoolExecutor) -> None:
        self._handle, self._pool = handle, pool
        self._at = 0
        self._pieces: list[Future[None]] = []

    def write(self, data: bytes | memoryview) -> int:
        """Write at the position, small pieces at once."""
        piece, at = memoryview(data), self._at
        if len(piece) < _PIECE:
            self._put(piece, at)
        else:
            self._pieces.append(self._pool.submit(self._put, piece, at))
        self._at += len(piece)
        return len(piece)

    def _put(self, piece: memoryview, at: int) -> None:
        while len(piece):
            done = os.pwrite(self._handle, piece, at)
            piece, at = piece[done:], at + done

    def seek(self, at: int) -> int:
        """Set the position."""
        self._at = at
        return at

    def tell(self) -> int:
        """Return the position."""
        return self._at

    def flush(self) -> None:
        """Do nothing: nothing is buffered."""

    def finish(self) -> None:
        """Wait for the other threads, and raise what failed in them."""
        for piece in self._pieces:
            piece.result()


def _read(path: Path, member: zipfile.ZipInfo) -> NDArray[Any]:
    if member.compress_type != zipfile.ZIP_STORED:
        raise zipfile.BadZipFile(f"{member.filename} is compressed")
    with path.open("rb") as stream:
        begin = _begin(stream, member)
        try:
            shape, order, dtype = _header(stream)
        except (ValueError, TypeError, struct.error) as error:
            raise zipfile.BadZipFile(f"{member.filename}: {error}") from error
        head = stream.tell() - begin
        count = int(np.prod(shape, dtype=object))
        if dtype.hasobject or head + count * dtype.itemsize != member.file_size:
            raise zipfile.BadZipFile(f"{member.filename} has another length")
        flat = np.fromfile(stream, dtype, count)
        stream.seek(begin)
        total = zlib.crc32(stream.read(head))
    if len(flat) != count or zlib.crc32(flat.view(np.uint8).data, total) != member.CRC:
        raise zipfile.BadZipFile(f"{member.filename} is damaged")
    return flat.reshape(shape, order=order)


def _begin(stream: BinaryIO, member: zipfile.ZipInfo) -> int:
    """Return where a member's content begins, and go there."""
    stream.seek(member.header_offset)
    head = stream.read(_LOCAL.size)
    if len(head) == _LOCAL.size:
        signature, name, further = _LOCAL.unpack(head)
        own = stream.read(name)
        if signature == _SIGNATURE and own == member.filename.encode():
            return stream.seek(further, os.SEEK_CUR)
    raise zipfile.BadZipFile(f"{member.filename} has another header")


def _header(
    stream: BinaryIO,
) -> tuple[tuple[int, ...], Literal["C", "F"], np.dtype[Any]]:
    length = _LENGTHS.get(stream.read(8))
    if length is None:
        raise ValueError("no array of NumPy's")
    (size,) = length.unpack(stream.read(length.size))
    found = size <= _LONGEST_HEADER and _HEADER.fullmatch(stream.read(size))
    if not found:
        raise ValueError("its header is damaged, or of an array of records")
    descr, by_columns, shape = found.groups()
    lengths = tuple(int(number) for number in shape.split(b",") if number.strip())
    return lengths, "F" if by_columns == b"True" else "C", np.dtype(descr.decode())
