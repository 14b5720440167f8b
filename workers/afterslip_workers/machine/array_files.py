"""NumPy's archives of gigabytes, read by all cores.

NumPy itself reads one array after the other through `zipfile`, in pieces that it copies
and sums up at once. Here a thread reads each array straight to where it stays.
"""

from __future__ import annotations

import os
import re
import struct
import zipfile
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, BinaryIO, Literal

import numpy as np
from numpy.typing import NDArray

# a member's signature, 22 bytes that the directory repeats, and two lengths
_LOCAL, _SIGNATURE = struct.Struct("<4s22xHH"), b"PK\3\4"
_READERS = 8
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
