"""Which displacement components are fixed at the walls of the domain."""

from __future__ import annotations

from typing import Literal

import numpy as np

from afterslip_common.errors import MeshError
from afterslip_solver.mesh.topology import TET_FACES_P2, boundary_faces
from afterslip_solver.model import Bool, Float, Int, TetMesh

Support = Literal["roller", "fixed", "free"]

# cosine of the angle by which a wall may lean and still have rollers
_UPRIGHT = 1e-6


def boundary_conditions(
    mesh: TetMesh, sides: Support = "roller", bottom: Support = "fixed"
) -> Bool:
    """Components fixed at zero.

    The top, where all vertices lie at the largest z, is always free.

    Parameters
    ----------
    sides, bottom : "fixed" holds all components, "roller" the one across the wall,
        "free" none.

    Returns
    -------
    (n_node, 3) bool. Raises MeshError where the body could still move rigidly, or
    where rollers stand on a wall that is not parallel to an axis.
    """
    for place, support in (("sides", sides), ("bottom", bottom)):
        if support not in ("roller", "fixed", "free"):
            raise MeshError(
                f"boundary.{place}: {support!r} is not one of roller, fixed, free"
            )
    at_bottom, at_sides = _walls(mesh)
    fixed = np.zeros((len(mesh.nodes), 3), dtype=np.bool_)
    down = np.full(len(at_bottom), 2)
    if bottom != "free":
        _hold(fixed, at_bottom, down, (0, 1, 2) if bottom == "fixed" else (0,))
    if sides == "fixed":
        fixed[at_sides.ravel()] = True
    elif sides == "roller":
        _hold(fixed, at_sides, _wall_axes(mesh, at_sides), (0,))
    # a wall's midpoints are held as its vertices are
    vertices = slice(mesh.n_vertex)
    loose = _loose_motions(mesh.nodes[vertices], fixed[vertices])
    if loose:
        raise MeshError(
            f"boundary: sides {sides} with bottom {bottom} leave the body free to move "
            f"rigidly ({loose} of 6 motions); use bottom: fixed, or sides: roller with "
            "bottom: roller"
        )
    return fixed


def opposite_conditions(
    mesh: TetMesh, sides: Support = "roller", bottom: Support = "fixed"
) -> Bool:
    """Components fixed at zero by walls that send back the opposite of other walls.

    A wall with rollers adds what an image of the source behind it does, as both sides
    of a plane of symmetry move alike; a wall that is held along itself, but not across,
    subtracts the same. So half the difference of two solutions is what the walls
    change, up to images of images. Fixed and free walls are opposite to first order.

    Parameters
    ----------
    sides, bottom : "fixed" or "roller", of the walls that are to be compared with.
        Beside fixed sides, whose opposite holds nothing, the bottom is fixed.

    Returns
    -------
    (n_node, 3) bool.
    """
    at_bottom, at_sides = _walls(mesh)
    fixed = np.zeros((len(mesh.nodes), 3), dtype=np.bool_)
    if sides == "fixed":
        fixed[at_bottom.ravel()] = True
        return fixed
    _hold(fixed, at_sides, _wall_axes(mesh, at_sides), (1, 2))
    if bottom == "roller":
        _hold(fixed, at_bottom, np.full(len(at_bottom), 2), (1, 2))
    return fixed


def _hold(fixed: Bool, faces: Int, axis: Int, directions: tuple[int, ...]) -> None:
    """Hold nodes of faces across (0) their walls, or along them (1, 2)."""
    for direction in directions:
        fixed[faces.ravel(), np.repeat((axis + direction) % 3, 6)] = True


def _walls(mesh: TetMesh) -> tuple[Int, Int]:
    """P2 faces (n, 6) at the bottom and at the sides."""
    element, local = boundary_faces(mesh.cells, mesh.n_vertex)
    faces = mesh.elements[element[:, None], np.array(TET_FACES_P2)[local]]
    z = mesh.nodes[:, 2]
    close = 1e-9 * (z.max() - z.min())
    top = (z[faces[:, :3]] >= z.max() - close).all(axis=1)
    bottom = (z[faces[:, :3]] <= z.min() + close).all(axis=1)
    return faces[bottom], faces[~top & ~bottom]


def _wall_axes(mesh: TetMesh, faces: Int) -> Int:
    """(n_face,) axis across each side face."""
    a, b, c = (mesh.nodes[faces[:, i]] for i in range(3))
    normal = np.cross(b - a, c - a)
    normal /= np.linalg.norm(normal, axis=1, keepdims=True)
    axis = np.argmax(np.abs(normal), axis=1)
    leaning = np.abs(normal[np.arange(len(axis)), axis]) < 1.0 - _UPRIGHT
    if leaning.any():
        raise MeshError(
            f"boundary.sides: rollers need walls parallel to x or y, but "
            f"{int(leaning.sum())} of {len(axis)} side faces are not; use sides: fixed"
        )
    return np.asarray(axis, dtype=np.int64)


def _loose_motions(nodes: Float, fixed: Bool) -> int:
    """Count the rigid-body motions that the fixed components allow."""
    held = fixed.any(axis=1)
    size = np.ptp(nodes, axis=0).max()
    x, y, z = ((nodes[held] - nodes.mean(axis=0)) / size).T
    fixed = fixed[held]
    one, nil = np.ones(len(x)), np.zeros(len(x))
    modes = np.array(
        [
            [one, nil, nil],
            [nil, one, nil],
            [nil, nil, one],
            [nil, -z, y],
            [z, nil, -x],
            [-y, x, nil],
        ]
    )
    constraints = modes[:, fixed.T]
    gram = constraints @ constraints.T / max(int(fixed.sum()), 1)
    return int((np.linalg.eigvalsh(gram) < 1e-9).sum())
