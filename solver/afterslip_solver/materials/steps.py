"""How far a boundary is from the faces of the mesh that stand for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
from scipy.spatial import cKDTree

from afterslip_solver.materials.assign import inside_of
from afterslip_solver.materials.properties import Body, Layer
from afterslip_solver.mesh.topology import cell_faces, face_keys
from afterslip_solver.model import Bool, Float, TetMesh

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
    centres = mesh.nodes[mesh.cells].mean(axis=1)
    near = None if faults is None or not len(faults) else _near(faults, centres)
    bottom = float(mesh.nodes[:, 2].min())
    for layer in layers:
        depth = layer.bottom
        if depth >= -bottom:
            break
        off = _off(mesh, centres[:, 2] < -depth, partial(_above, depth), near)
        if off:
            yield (
                f"layer {layer.name}: the mesh does not follow its bottom at "
                f"{depth / 1e3:g} km but steps around it, by {off}"
            )
    for body in bodies:
        off = _off(mesh, inside_of(body, centres), partial(_from, body), near)
        if off:
            yield (
                f"body {body.name}: the mesh does not follow all of its boundary but "
                f"steps around it, by {off}"
            )


def _near(faults: Float, centres: Float) -> Bool:
    """(n_elem,) whether elements are within half the faults' extent of them."""
    reach = 0.5 * float(np.linalg.norm(np.ptp(faults, axis=0)))
    distance, _ = cKDTree(faults).query(centres, distance_upper_bound=reach)
    return np.asarray(np.isfinite(distance))


def _off(
    mesh: TetMesh,
    inside: Bool,
    distance: Callable[[Float], Float],
    near: Bool | None,
) -> str:
    """Say how far off steps are; nothing where the mesh follows the boundary."""
    whole = boundary_steps(mesh, inside, distance)
    if whole <= _FOLLOWED:
        return ""
    close = 0.0 if near is None else boundary_steps(mesh, inside, distance, near)
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


def boundary_steps(
    mesh: TetMesh,
    inside: Bool,
    distance: Callable[[Float], Float],
    counted: Bool | None = None,
) -> float:
    """RMS distance of a boundary from the faces between the elements on its sides.

    Elements take the material at their centre: where a mesh does not follow the
    boundary, that makes steps about half an element high.

    Parameters
    ----------
    inside : (n_elem,) elements on one side.
    distance : of (n, 3) points from the boundary, m, of any sign.
    counted : (n_elem,) elements whose faces count; None for all.

    Returns
    -------
    m, over the area of the faces; 0 where there are none.
    """
    faces = cell_faces(mesh.cells).reshape(-1, 3)
    keys = face_keys(faces, mesh.n_vertex)
    order = np.argsort(keys, kind="stable")
    same = np.flatnonzero(keys[order[1:]] == keys[order[:-1]])
    one, other = order[same], order[same + 1]
    between = inside[one // 4] != inside[other // 4]
    if counted is not None:
        between &= counted[one // 4] | counted[other // 4]
    corners = mesh.nodes[faces[one[between]]]
    if not len(corners):
        return 0.0
    sides = corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
    area = np.linalg.norm(np.cross(*sides), axis=1)
    # midpoints of edges integrate a square exactly where the boundary is a plane
    middles = 0.5 * (corners + np.roll(corners, 1, axis=1))
    square = distance(middles.reshape(-1, 3)).reshape(-1, 3) ** 2
    return float(np.sqrt((area * square.mean(axis=1)).sum() / area.sum()))
