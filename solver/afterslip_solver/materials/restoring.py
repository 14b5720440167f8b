"""Where the isostatic restoring force acts, and how strongly."""

from __future__ import annotations

import numpy as np

from afterslip_solver.materials.properties import MaterialError
from afterslip_solver.mesh.topology import TET_FACES_P2, cell_faces, face_keys
from afterslip_solver.model import Float, Int, Restoring, TetMesh

GRAVITY = 9.81
# a smaller relative jump of the density is none
_JUMP = 1e-9
# a horizontal face rises by less than this part of the mesh's depth
_FLAT = 1e-6


def restoring_force(mesh: TetMesh, rho: Float) -> tuple[Restoring, list[str]]:
    """Springs of the free surface and of horizontal density jumps.

    Gravity is 9.81 m/s2 everywhere. Only horizontal faces of the mesh carry a jump:
    boundaries that are inclined, or that the mesh does not follow, have no restoring
    force, and a note says how much of them there is.

    Parameters
    ----------
    rho : (n_elem,) kg/m3.

    Returns
    -------
    The springs, and notes for the user. Raises MaterialError where the density falls
    downwards, which is not stable.
    """
    z = mesh.nodes[: mesh.n_vertex, 2]
    at_top = z >= z.max() - 1e-9 * np.ptp(z)
    # four slots for each element; a face whose vertices are all on top has one element
    top = np.flatnonzero(at_top[cell_faces(mesh.cells)].all(axis=2).ravel())
    slots, jump, notes = top, rho[top // 4], list[str]()
    if np.ptp(rho) > _JUMP * rho.max():
        inner, contrast, inclined = _jumps(mesh, rho)
        slots, jump = np.append(top, inner), np.append(jump, contrast)
        if inclined > 0.0:
            notes.append(
                "the restoring force acts on the free surface and on horizontal "
                f"boundaries of the mesh; {inclined:.0%} of the area where the density "
                "jumps is inclined or not followed by the mesh, and has none"
            )
    owners = slots // 4
    faces = mesh.elements[owners[:, None], np.array(TET_FACES_P2)[slots % 4]]
    return Restoring(faces, GRAVITY * jump, owners), notes


def _jumps(mesh: TetMesh, rho: Float) -> tuple[Int, Float, float]:
    """Horizontal faces between densities.

    Returns
    -------
    The slot of each in the element below it, the jump (kg/m3), and the part of the
    horizontally projected area of all jumps that is not on such faces.
    """
    faces = cell_faces(mesh.cells).reshape(-1, 3)
    keys = face_keys(faces, mesh.n_vertex)
    order = np.argsort(keys, kind="stable")
    same = np.flatnonzero(keys[order[1:]] == keys[order[:-1]])
    one, other = order[same], order[same + 1]
    differ = np.abs(rho[one // 4] - rho[other // 4]) > _JUMP * rho.max()
    one, other = one[differ], other[differ]
    corners = mesh.nodes[faces[one]]
    a, b = corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
    area = 0.5 * np.abs(a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0])
    flat = np.ptp(corners[:, :, 2], axis=1) < _FLAT * np.ptp(mesh.nodes[:, 2])
    inclined = float(area[~flat].sum() / max(float(area.sum()), 1e-300))
    one, other = one[flat], other[flat]
    height = [mesh.nodes[mesh.cells[k // 4], 2].mean(axis=1) for k in (one, other)]
    below = np.where(height[0] < height[1], one, other)
    jump = rho[below // 4] - rho[(one + other - below) // 4]
    if (jump < 0.0).any():
        first = int(np.argmin(jump))
        depth = -float(mesh.nodes[faces[below[first], 0], 2]) / 1e3
        raise MaterialError(
            f"the density falls by {-jump[first]:.0f} kg/m3 downwards at {depth:.4g} "
            "km depth: with the restoring force it must not, because heavy above light "
            "rock is not stable"
        )
    return below, jump, inclined if inclined > 1e-9 else 0.0
