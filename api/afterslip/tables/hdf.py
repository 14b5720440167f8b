"""HDF5 files from strangers: what they declare, before anything of it is read.

A file of a few kB may declare arrays of terabytes (chunks that are not there read as
fill values, and zeros compress a thousandfold), and it may point to other files of the
machine that reads it: external links, raw data in external files, virtual datasets.
"""

from __future__ import annotations

import io
import math

import h5py

from afterslip.errors import one_problem

MAX_DECLARED = 2**30
MAX_OBJECTS = 10_000
DEEPEST = 16


def check_hdf(content: bytes, label: str, most: int = MAX_DECLARED) -> None:
    """Refuse an HDF5 file that is larger than it looks, or leads out of itself.

    Parameters
    ----------
    most : bytes that all its arrays together may declare.

    Raises
    ------
    SpecError
        With the numbers; also for what is no HDF5 file.
    """
    try:
        with h5py.File(io.BytesIO(content), "r") as file:
            problem = _walk(file, most)
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 whatever the library meets
        reason = type(error).__name__
        raise one_problem(
            label, None, f"cannot be read as NetCDF or HDF5 ({reason})"
        ) from None
    if problem:
        raise one_problem(label, None, problem, "save plain arrays in one file")


def _walk(file: h5py.File, most: int) -> str:
    """Return what is wrong with a file, empty for nothing."""
    declared = objects = 0
    seen: set[bytes] = set()
    level: list[h5py.Group] = [file]
    for _ in range(DEEPEST):
        below: list[h5py.Group] = []
        for group in level:
            for name in group:
                objects += 1
                if objects > MAX_OBJECTS:
                    return f"holds more than {MAX_OBJECTS} objects"
                if isinstance(group.get(name, getlink=True), h5py.ExternalLink):
                    return f"links to another file ({name!r})"
                item = group.get(name)
                if isinstance(item, h5py.Group):
                    # a group may be linked below itself
                    token = h5py.h5o.get_info(item.id)
                    key = f"{token.fileno}:{token.addr}".encode()
                    if key not in seen:
                        seen.add(key)
                        below.append(item)
                elif isinstance(item, h5py.Dataset):
                    problem = _outside(item)
                    if problem:
                        return problem
                    declared += math.prod(item.shape or ()) * item.dtype.itemsize
                    if declared > most:
                        return (
                            f"declares arrays of {declared:,} bytes, and {most:,} may "
                            f"be read ({name!r} is {item.shape})"
                        )
        if not below:
            return ""
        level = below
    return f"has groups deeper than {DEEPEST} levels"


def _outside(item: h5py.Dataset) -> str:
    if item.is_virtual:
        return f"takes {item.name!r} from other files"
    if item.id.get_create_plist().get_external_count():
        return f"takes {item.name!r} from a file outside"
    return ""
