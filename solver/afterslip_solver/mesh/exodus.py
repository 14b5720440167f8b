"""Tetrahedra, blocks and side sets of an Exodus II file.

Layout: Schoof and Yarberry (1994), EXODUS II: a finite element data model, SAND92-2137.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from scipy.io import netcdf_file

from afterslip_common.errors import MeshError
from afterslip_solver.mesh.external import External
from afterslip_solver.model import Int

# corners of the sides of a tetrahedron, in the order of Exodus
_SIDES = np.array([[0, 1, 3], [1, 2, 3], [0, 3, 2], [0, 2, 1]])

Read = Callable[[str], Any]


def read_exodus(path: Path) -> External:
    """Read an Exodus II file, NetCDF classic or NetCDF-4 (HDF5)."""
    with path.open("rb") as stream:
        is_hdf5 = stream.read(4) == b"\x89HDF"
    if is_hdf5:
        import h5py

        with h5py.File(path, "r") as file:
            return _parse(file.keys(), lambda name: file[name][...])
    with netcdf_file(path, "r", mmap=False) as file:
        variables: Mapping[str, Any] = file.variables
        return _parse(variables.keys(), lambda name: variables[name][...])


def _parse(names: Any, read: Read) -> External:
    names = set(names)
    if {"coordx", "coordy", "coordz"} <= names:
        points = np.stack([read(f"coord{axis}") for axis in "xyz"], axis=1)
    elif "coord" in names:
        points = np.asarray(read("coord")).T
    else:
        raise MeshError("the Exodus file holds no coordinates")
    cells, tags, block_names = _blocks(names, read)
    surfaces = _side_sets(names, read, cells)
    return External(
        np.asarray(points, dtype=np.float64), cells, tags, block_names, surfaces
    )


def _blocks(names: set[str], read: Read) -> tuple[Int, Int, tuple[str, ...]]:
    cells, tags, labels = [], [], []
    given = _labels(names, read, "eb_names")
    numbers = read("eb_prop1") if "eb_prop1" in names else np.arange(1, 10_000)
    block = 0
    while f"connect{block + 1}" in names:
        connect = np.asarray(read(f"connect{block + 1}"), dtype=np.int64) - 1
        if connect.shape[1] not in (4, 10):
            raise MeshError(
                f"block {block + 1} of the Exodus file has elements of "
                f"{connect.shape[1]} nodes; only tetrahedra (4 or 10) can be used"
            )
        label = given[block] if block < len(given) and given[block] else ""
        labels.append(label or f"block_{int(numbers[block])}")
        cells.append(connect[:, :4])
        tags.append(np.full(len(connect), block, dtype=np.int64))
        block += 1
    if not cells:
        raise MeshError("the Exodus file holds no element blocks")
    return np.concatenate(cells), np.concatenate(tags), tuple(labels)


def _side_sets(names: set[str], read: Read, cells: Int) -> dict[str, Int]:
    surfaces: dict[str, Int] = {}
    given = _labels(names, read, "ss_names")
    numbers = read("ss_prop1") if "ss_prop1" in names else np.arange(1, 10_000)
    part = 0
    while f"elem_ss{part + 1}" in names:
        element = np.asarray(read(f"elem_ss{part + 1}"), dtype=np.int64) - 1
        side = np.asarray(read(f"side_ss{part + 1}"), dtype=np.int64) - 1
        label = given[part] if part < len(given) and given[part] else ""
        if not (_within(element, len(cells)) and _within(side, len(_SIDES))):
            raise MeshError(
                f"side set {part + 1} of the Exodus file names elements or sides that "
                "are not there; export the mesh again"
            )
        triangles = cells[element[:, None], _SIDES[side]]
        surfaces[label or f"side_set_{int(numbers[part])}"] = triangles
        part += 1
    return surfaces


def _within(numbers: Int, count: int) -> bool:
    return bool(((numbers >= 0) & (numbers < count)).all())


def _labels(names: set[str], read: Read, key: str) -> list[str]:
    """Names stored as rows of characters."""
    if key not in names:
        return []
    rows = np.asarray(read(key))
    return [
        b"".join(bytes(c) for c in row).split(b"\0")[0].decode().strip() for row in rows
    ]
