"""Structured meshes with graded grid lines, cut by a fault."""

from __future__ import annotations

import numpy as np

from afterslip_solver.mesh import Geometry, PlaneFault, split_nodes
from afterslip_solver.mesh.fault import plane_fault_mesh
from afterslip_solver.mesh.numbering import second_order
from afterslip_solver.mesh.topology import cell_faces, face_keys
from afterslip_solver.model import Bool, FaultMesh, Float, TetMesh
from afterslip_solver.testing.box import box_mesh


def graded(
    start: float, growth: float, uniform: int, end: float, largest: float = np.inf
) -> Float:
    """Grid lines from 0: ``uniform`` equal intervals, then growing ones to the end.

    Parameters
    ----------
    start, end : m. growth : of each interval over the one before.
    largest : m, no interval is longer, so that elements keep their shape.

    Returns
    -------
    (n,) m, the last one exactly ``end``.
    """
    lines = [start * k for k in range(uniform + 1)]
    step = start
    while lines[-1] < end:
        step = min(step * growth, largest)
        lines.append(lines[-1] + step)
    out = np.array(lines)
    near = start * uniform
    out[uniform:] = near + (out[uniform:] - near) * (end - near) / (out[-1] - near)
    return out


def grid_mesh(x: Float, y: Float, z: Float) -> TetMesh:
    """Box of tetrahedra on grid lines.

    Parameters
    ----------
    x, y, z : m, rising; the last z is the free surface, 0.
    """
    lines = (x, y, z)
    counts = (len(x) - 1, len(y) - 1, len(z) - 1)
    base = box_mesh(counts)
    low, high = base.nodes.min(axis=0), base.nodes.max(axis=0)
    place = (base.nodes[: base.n_vertex] - low) / (high - low) * counts
    index = np.rint(place).astype(np.int64)
    vertices = np.column_stack([lines[k][index[:, k]] for k in range(3)])
    return second_order(vertices, base.cells)


def cut(mesh: TetMesh, plane: PlaneFault, inside: Bool) -> Geometry:
    """Split the faces of the mesh whose vertices are all chosen.

    Parameters
    ----------
    plane : names the axes and the fault. inside : (n_vertex,) bool.
    """
    faces = cell_faces(mesh.cells).reshape(-1, 3)
    faces = faces[inside[faces].all(axis=1)]
    triangles = faces[np.unique(face_keys(faces, mesh.n_vertex), return_index=True)[1]]
    fault = plane_fault_mesh(mesh, plane, triangles)
    return Geometry(mesh, {plane.name: fault}, {plane.name: split_nodes(mesh, fault)})


def step_slip(fault: FaultMesh, depth: Float) -> Float:
    """(n_fault_node,) uniform slip down to ``fault.width``, half at its lower edge.

    On second-order elements with a grid line there the potency is exact.
    """
    edge = np.abs(depth - fault.width) < 1e-6 * fault.width
    return np.where(edge, 0.5, np.where(depth < fault.width, 1.0, 0.0))
