"""Meshes of other programs as plain arrays, and their checks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from afterslip_common.errors import MeshError
from afterslip_solver.mesh.numbering import signed_volumes
from afterslip_solver.mesh.topology import cell_faces, face_keys
from afterslip_solver.model import Float, Int

# domains outside these sizes (m) have forgotten their unit
_SMALLEST, _LARGEST = 1e3, 2e7


@dataclass(frozen=True, slots=True)
class External:
    """What a file holds.

    Attributes
    ----------
    points : (n_point, 3) float64, in the file's unit until scaled.
    cells : (n_elem, 4) int64, corners of tetrahedra.
    tags : (n_elem,) int64, index into ``tag_names``.
    surfaces : by name (n_tri, 3) int64 point numbers.
    """

    points: Float
    cells: Int
    tags: Int
    tag_names: tuple[str, ...]
    surfaces: dict[str, Int]


def checked(external: External, scale: float) -> External:
    """Scale to metres, drop unused points, refuse what cannot be solved on."""
    count = len(external.points)
    for name, corners in {"": external.cells, **external.surfaces}.items():
        # a negative number would count from the end
        wrong = ((corners < 0) | (corners >= count)).any(axis=1)
        if wrong.any():
            where = f"of surface {name!r} " if name else ""
            raise MeshError(
                f"{int(wrong.sum())} elements {where}name points that are not there "
                f"(there are {count}); export the mesh again"
            )
    if len(external.tags) != len(external.cells):
        raise MeshError("the mesh does not have one tag for each element")
    used, inverse = np.unique(external.cells, return_inverse=True)
    number = np.full(len(external.points), -1, dtype=np.int64)
    number[used] = np.arange(len(used))
    points = external.points[used] * scale
    cells = inverse.reshape(-1, 4).astype(np.int64)
    _check_size(points)
    _check_distinct(points)
    _check_volumes(points, cells)
    _check_conforming(cells, len(points))
    surfaces = {}
    for name, triangles in external.surfaces.items():
        surfaces[name] = number[triangles]
        if np.any(surfaces[name] < 0):
            raise MeshError(
                f"surface {name!r} has nodes that belong to no tetrahedron; mesh the "
                "volume so that it conforms to the surface"
            )
    return External(points, cells, external.tags, external.tag_names, surfaces)


def _check_size(points: Float) -> None:
    if not np.isfinite(points).all():
        raise MeshError("the mesh has coordinates that are not finite")
    span = np.ptp(points, axis=0)
    if span.max() < _SMALLEST or span.max() > _LARGEST:
        raise MeshError(
            f"the mesh is {span[0]:.4g} x {span[1]:.4g} x {span[2]:.4g} m in x, y, z; "
            "if its unit is not the metre, say how many metres it is (scale: 1000 for "
            "km)"
        )
    top = float(points[:, 2].max())
    if abs(top) > 1e-6 * span.max():
        raise MeshError(
            f"the free surface of the mesh must lie at z = 0 with z pointing up, but "
            f"its highest point is at z = {top / 1e3:.4g} km; shift or flip the mesh"
        )


def _check_distinct(points: Float) -> None:
    grid = np.round(points / (1e-9 * np.ptp(points))).astype(np.int64)
    order = np.lexsort(grid.T)
    same = (np.diff(grid[order], axis=0) == 0).all(axis=1)
    if same.any():
        x, y, z = points[order[int(np.argmax(same))]] / 1e3
        raise MeshError(
            f"{int(same.sum())} nodes lie on top of others, the first at x = {x:.3f}, "
            f"y = {y:.3f}, z = {z:.3f} km; merge them (gmsh: Coherence Mesh): split "
            "nodes are made here, the file must not have them"
        )


def _check_volumes(points: Float, cells: Int) -> None:
    volume = signed_volumes(points, cells)
    # a file may number all its elements the other way round
    volume = volume if np.median(volume) > 0.0 else -volume
    bad = volume <= 0.0
    if bad.any():
        worst = int(np.argmin(volume))
        x, y, z = points[cells[worst]].mean(axis=0) / 1e3
        raise MeshError(
            f"{int(bad.sum())} of {len(cells)} elements are inverted or flat; the "
            f"worst is element {worst + 1} ({volume[worst]:.3g} m3) near x = {x:.1f}, "
            f"y = {y:.1f}, z = {z:.1f} km; optimise the mesh or mesh it again"
        )


def _check_conforming(cells: Int, n_point: int) -> None:
    keys = face_keys(cell_faces(cells).reshape(-1, 3), n_point)
    count = np.unique(keys, return_counts=True)[1]
    if count.max() > 2:
        raise MeshError(
            f"{int((count > 2).sum())} faces belong to more than two elements; "
            "elements overlap or are listed twice"
        )
