"""HDF5 files that are not trusted: what they declare, before anything of it is read.

A file of a few kB may declare arrays of terabytes (chunks that are not there read as
fill values, and zeros compress a thousandfold), and it may point to other files of the
machine that reads it: external links, raw data in external files, virtual datasets.
"""

from __future__ import annotations

import io
import math
import zlib
from typing import Any

import h5py

from afterslip.errors import one_problem, show

MAX_OBJECTS = 10_000
MAX_ATTRIBUTES = 1000  # of one object
DEEPEST = 16
# readers convert numbers to float64
WIDEST = 8
# DEFLATE shrinks a thousandfold at most
BEST_DEFLATE = 1032


def check_hdf(content: bytes, label: str, most: int) -> None:
    """Refuse an HDF5 file that is larger than it looks, or leads out of itself.

    Parameters
    ----------
    most : bytes that all its arrays together may take as float64.

    Raises
    ------
    SpecError
        With the numbers; also for what is no HDF5 file.
    """
    try:
        with h5py.File(io.BytesIO(content), "r") as file:
            size = len(content)
            problem = _attributes(file, size, most) or _walk(file, size, most)
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 whatever the library meets
        reason = type(error).__name__
        raise one_problem(
            label, None, f"cannot be read as NetCDF or HDF5 ({reason})"
        ) from None
    if problem:
        raise one_problem(label, None, problem, "save plain arrays in one file")


def _walk(file: h5py.File, size: int, most: int) -> str:
    """Return what is wrong with a file of ``size`` bytes, empty for nothing."""
    declared = objects = 0
    visited: set[bytes] = set()
    level: list[h5py.Group] = [file]
    for _ in range(DEEPEST):
        below: list[h5py.Group] = []
        for group in level:
            for name in group:
                objects += 1
                if objects > MAX_OBJECTS:
                    return f"holds more than {MAX_OBJECTS} objects"
                if isinstance(group.get(name, getlink=True), h5py.ExternalLink):
                    return f"links to another file ({show(name)})"
                item = group.get(name)
                if problem := _unfit(item, size, most):
                    return problem
                if isinstance(item, h5py.Group):
                    # a group may be linked below itself
                    token = h5py.h5o.get_info(item.id)
                    key = f"{token.fileno}:{token.addr}".encode()
                    if key not in visited:
                        visited.add(key)
                        below.append(item)
                elif isinstance(item, h5py.Dataset):
                    declared += _bytes(item, size)
                    if declared > most:
                        return (
                            f"declares arrays of {declared:,} bytes, and {most:,} may "
                            f"be read ({show(name)} is {item.shape})"
                        )
        if not below:
            return ""
        level = below
    return f"has groups deeper than {DEEPEST} levels"


def _unfit(item: Any, size: int, most: int) -> str:
    """Return what is wrong with one object of a file, empty for nothing."""
    if item is None:  # a link to nothing
        return ""
    problem = _attributes(item, size, most)
    if not problem and isinstance(item, h5py.Dataset):
        problem = _outside(item) or _packed(item, most)
    return problem


def _bytes(item: Any, size: int) -> int:
    """Return what an array or attribute takes as float64, at most."""
    # texts of any length may all point to the same one, as long as the file
    each = size if item.dtype.hasobject else item.dtype.itemsize
    return math.prod(item.shape or ()) * max(each, WIDEST)


def _outside(item: h5py.Dataset) -> str:
    if item.is_virtual:
        return f"takes {show(item.name)} from other files"
    if item.id.get_create_plist().get_external_count():
        return f"takes {show(item.name)} from a file outside"
    return ""


def _attributes(item: Any, size: int, most: int) -> str:
    """Return whether an object has too many or too large attributes."""
    if len(item.attrs) > MAX_ATTRIBUTES:
        return f"has {len(item.attrs)} attributes at {show(item.name)}"
    for name in item.attrs:
        try:
            large = _bytes(item.attrs.get_id(name), size) > most
        except TypeError:  # of a type that no reader here knows
            continue
        if large:
            return f"has a list of texts that is too long as attribute {show(name)}"
    return ""


def _packed(item: h5py.Dataset, most: int) -> str:
    """Return how a chunk of an array unpacks to more than it declares."""
    if item.chunks is None:
        return ""
    # one number of a chunk is enough to unpack all of it
    raw = math.prod(item.chunks) * max(item.dtype.itemsize, 1)
    if raw > most:
        return f"has chunks of {raw:,} bytes in {show(item.name)}, and {most:,} may be"
    filters = item.id.get_create_plist()
    kinds = [filters.get_filter(i)[0] for i in range(filters.get_nfilters())]
    deflated = kinds.count(h5py.h5z.FILTER_DEFLATE)
    if deflated > 1:
        return f"has {show(item.name)} compressed {deflated} times"
    large: list[Any] = []

    def look(chunk: Any) -> None:
        if chunk.size * BEST_DEFLATE > most:
            large.append(chunk)

    if deflated:
        item.id.chunk_iter(look)
    for chunk in large:
        _, data = item.id.read_direct_chunk(chunk.chunk_offset)
        unpacking = zlib.decompressobj()
        # a checksum of four bytes may be inside
        unpacking.decompress(data, raw + 4)
        if unpacking.unconsumed_tail and not unpacking.eof:
            return f"has a chunk of {show(item.name)} that unpacks to more than {raw:,}"
    return ""
