"""Structured boxes of tetrahedra, with or without a planar fault."""

from __future__ import annotations

from itertools import permutations

import numpy as np

from afterslip_common.geometry import PlaneFault
from afterslip_solver.mesh.fault import plane_fault_mesh
from afterslip_solver.mesh.geometry import Geometry
from afterslip_solver.mesh.numbering import second_order
from afterslip_solver.mesh.split import split_nodes
from afterslip_solver.mesh.topology import cell_faces, face_keys
from afterslip_solver.model import Float, TetMesh


def box_mesh(
    n: tuple[int, int, int] = (4, 4, 4),
    lengths: tuple[float, float, float] = (1.0, 1.0, 1.0),
) -> TetMesh:
    """Box of n cubes, each cut in six tetrahedra (Kuhn).

    The box spans -lengths/2..lengths/2 in x and y, -lengths..0 in z. Planes of
    constant x, y, z and planes x + z = const through grid lines are conforming.

    Parameters
    ----------
    n : number of cubes in x, y, z.
    lengths : m.
    """
    vertices = _grid(n, lengths)
    shape = np.array(n) + 1
    corner = np.stack(np.meshgrid(*(np.arange(k) for k in n), indexing="ij"), -1)
    corner = corner.reshape(-1, 3)
    cells = []
    for order in permutations(range(3)):
        path = [np.zeros(3, dtype=np.int64)]
        for axis in order:
            path.append(path[-1] + np.eye(3, dtype=np.int64)[axis])
        steps = np.array(path)
        # mirrored in x, so that 45-degree planes dip towards +x
        steps[:, 0] = 1 - steps[:, 0]
        ijk = corner[:, None, :] + steps[None]
        cells.append((ijk[..., 0] * shape[1] + ijk[..., 1]) * shape[2] + ijk[..., 2])
    return second_order(vertices, np.stack(cells, axis=1).reshape(-1, 4))


def box_with_fault(
    n: tuple[int, int, int] = (6, 6, 4),
    lengths: tuple[float, float, float] = (6.0, 6.0, 4.0),
    dip: float = 90.0,
    length: float = 2.0,
    top: float = 1.0,
    width: float = 1.0,
    name: str = "main",
) -> Geometry:
    """Structured box with a fault of strike 0 (along y), dipping towards +x.

    Parameters
    ----------
    n, lengths : as in ``box_mesh``; the top edge must lie on grid lines, at
        x = 0 for a vertical fault.
    dip : 90 or 45 degrees; 45 needs cubes of equal size in x and z.
    length, top, width : m; ``width`` is measured down dip. All edges must lie on
        grid lines. One further cube all round is the margin (none at top = 0).

    Returns
    -------
    Geometry with the fault ``name``.
    """
    step = np.array(lengths) / np.array(n)
    slope = {90.0: 1.0, 45.0: np.sqrt(0.5)}[float(dip)]
    if dip == 45.0 and not np.isclose(step[0], step[2]):
        raise ValueError("a 45-degree fault needs cubes of equal size in x and z")
    plane = PlaneFault(name, 0.0, 0.0, top, 0.0, dip, length, width)
    depths = np.array([top, top + width * slope]) / step[2]
    ends = (0.5 * np.array([lengths[1] - length, lengths[0]])) / step[1::-1]
    if not np.allclose([*depths, *ends], np.round([*depths, *ends]), atol=1e-6):
        raise ValueError("the fault's edges must lie on grid lines")
    mesh = box_mesh(n, lengths)
    _, updip, normal = plane.axes
    offset = mesh.nodes[: mesh.n_vertex] - plane.origin
    tolerance = 1e-6 * step.min()
    along, down = offset[:, 1], -(offset @ updip)
    margin = step[2] / slope
    inside = (
        (np.abs(offset @ normal) < tolerance)
        & (along > -step[1] - tolerance)
        & (along < length + step[1] + tolerance)
        & (down > -margin - tolerance)
        & (down < width + margin + tolerance)
    )
    faces = cell_faces(mesh.cells).reshape(-1, 3)
    faces = faces[inside[faces].all(axis=1)]
    triangles = faces[np.unique(face_keys(faces, mesh.n_vertex), return_index=True)[1]]
    fault = plane_fault_mesh(mesh, plane, triangles)
    return Geometry(mesh, {name: fault}, {name: split_nodes(mesh, fault)})


def _grid(n: tuple[int, int, int], lengths: tuple[float, float, float]) -> Float:
    """(n_vertex, 3) grid points, z fastest."""
    start = (-0.5 * lengths[0], -0.5 * lengths[1], -lengths[2])
    axes = [
        a + w * np.arange(k + 1) / k for a, w, k in zip(start, lengths, n, strict=True)
    ]
    axes[2][-1] = 0.0
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
