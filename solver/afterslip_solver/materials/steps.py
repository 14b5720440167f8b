"""How far a boundary is from the faces of the mesh that stand for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
from scipy.spatial import cKDTree

from afterslip_solver.materials.assign import inside_of
from afterslip_solver.materials.properties import Body, Layer
from afterslip_solver.mesh.topology import any_corner, cell_faces, face_keys
from afterslip_solver.model import Bool, Float, Int, TetMesh

# m; a boundary that the mesh follows is off by rounding only
_FOLLOWED = 1.0


def describe_steps(
    mesh: TetMesh,
    layers: Sequence[Layer],
    bodies: Sequence[Body],
    faults: Float | None = None,
) -> Iterator[str]:
    """Say of every boundary that the mesh does not follow how far its steps are off.

    Parameters
    ----------
    faults : (n, 3) m, points on the faults. Far from them elements, and with them
        steps, are so large that they would hide those that matter: steps within half
        the faults' extent are given too.
    """
    vertices = mesh.nodes[: mesh.n_vertex]
    for layer in layers:
        depth = layer.bottom
        if depth >= -float(vertices[:, 2].min()):
            break
        above = partial(_above, depth)
        some = _beside(mesh, above(vertices), (0.0,))
        inside = above(_centres(mesh, some)) < 0.0
        off = _off(mesh, some, inside, above, faults)
        if off:
            yield (
                f"layer {layer.name}: the mesh does not follow its bottom at "
                f"{depth / 1e3:g} km but steps around it, by {off}"
            )
    for body in bodies:
        some = _beside(mesh, body.across(vertices), (0.0, body.thickness))
        inside = inside_of(body, _centres(mesh, some))
        off = _off(mesh, some, inside, partial(_from, body), faults)
        if off:
            yield (
                f"body {body.name}: the mesh does not follow all of its boundary but "
                f"steps around it, by {off}"
            )


def _centres(mesh: TetMesh, elements: Int) -> Float:
    return np.asarray(mesh.nodes[mesh.cells[elements]].mean(axis=1))


def _beside(mesh: TetMesh, value: Float, levels: Sequence[float]) -> Int:
    """Elements with a corner of one in which a function takes one of the levels.

    All faces between the two sides of a boundary are theirs; a large mesh has many
    more elements.

    Parameters
    ----------
    value : (n_vertex,) of the function, m.
    """
    cut = np.zeros(len(mesh.cells), bool)
    for level in levels:
        below, above = value <= level + _FOLLOWED, value >= level - _FOLLOWED
        cut |= any_corner(mesh.cells, below) & any_corner(mesh.cells, above)
    touched = np.zeros(mesh.n_vertex, bool)
    touched[mesh.cells[cut]] = True
    return np.flatnonzero(any_corner(mesh.cells, touched))


def _near(faults: Float, centres: Float) -> Bool:
    """(n,) whether points are within half the faults' extent of them."""
    reach = 0.5 * float(np.linalg.norm(np.ptp(faults, axis=0)))
    distance, _ = cKDTree(faults).query(centres, distance_upper_bound=reach, workers=-1)
    return np.asarray(np.isfinite(distance))


def _off(
    mesh: TetMesh,
    elements: Int,
    inside: Bool,
    distance: Callable[[Float], Float],
    faults: Float | None,
) -> str:
    """Say how far off steps are; nothing where the mesh follows the boundary."""
    corners, area = steps(mesh, elements, inside)
    if not len(corners):
        return ""
    # midpoints of edges integrate a square exactly where the boundary is a plane
    middles = 0.5 * (corners + np.roll(corners, 1, axis=1))
    square = (distance(middles.reshape(-1, 3)).reshape(-1, 3) ** 2).mean(axis=1)
    whole = np.sqrt(np.average(square, weights=area))
    if whole <= _FOLLOWED:
        return ""
    beside = ""
    if faults is not None and len(faults):
        near = _near(faults, corners.mean(axis=1))
        close = (
            np.sqrt(np.average(square[near], weights=area[near])) if near.any() else 0.0
        )
        beside = f"{_km(close)} RMS near the faults, " if close > _FOLLOWED else ""
    return f"{beside}{_km(whole)} RMS{' everywhere' if beside else ''}"


def _above(depth: float, points: Float) -> Float:
    """Height of points above a depth, m."""
    return np.asarray(points[:, 2] + depth)


def _from(body: Body, points: Float) -> Float:
    """Distance of points from the nearer side of a body, m."""
    across = body.across(points)
    # seaward of the trench the top is the free surface, which the mesh follows
    return np.asarray(np.minimum(np.abs(across), np.abs(body.thickness - across)))


def _km(metres: float) -> str:
    return f"{metres / 1e3:.2g} km"


def steps(mesh: TetMesh, elements: Int, inside: Bool) -> tuple[Float, Float]:
    """Faces between the elements on the two sides of a boundary.

    Elements take the material at their centre: where a mesh does not follow the
    boundary, that makes steps about half an element high.

    Parameters
    ----------
    elements : (n,) all elements near the boundary. inside : (n,) those on one side.

    Returns
    -------
    corners : (n_face, 3, 3) m. area : (n_face,) m2.
    """
    faces = cell_faces(mesh.cells[elements]).reshape(-1, 3)
    keys = face_keys(faces, mesh.n_vertex)
    order = np.argsort(keys, kind="stable")
    same = np.flatnonzero(keys[order[1:]] == keys[order[:-1]])
    one, other = order[same], order[same + 1]
    between = inside[one // 4] != inside[other // 4]
    corners = mesh.nodes[faces[one[between]]]
    sides = corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
    return corners, 0.5 * np.linalg.norm(np.cross(*sides), axis=1)
