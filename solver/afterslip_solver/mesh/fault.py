"""Fault surfaces of a mesh: P2 triangles with local axes and coordinates."""

from __future__ import annotations

import numpy as np

from afterslip_solver.mesh.errors import MeshError
from afterslip_solver.mesh.geometry import PlaneFault
from afterslip_solver.mesh.numbering import edge_midpoints
from afterslip_solver.model import FaultMesh, Float, Int, TetMesh


def triangle_normals(vertices: Float, triangles: Int) -> Float:
    """(n_tri, 3) float64, m2, right-hand normals as long as twice the area."""
    a, b, c = (vertices[triangles[:, i]] for i in range(3))
    return np.asarray(np.cross(b - a, c - a))


def second_order_triangles(mesh: TetMesh, triangles: Int) -> Int:
    """(n_tri, 6) node numbers of triangles given by their (n_tri, 3+) vertices."""
    corners = np.asarray(triangles[:, :3], dtype=np.int64)
    edges = corners[:, np.array([[0, 1], [1, 2], [2, 0]])]
    middle = edge_midpoints(mesh, edges.reshape(-1, 2)).reshape(-1, 3)
    return np.ascontiguousarray(np.concatenate([corners, middle], axis=1))


def plane_fault_mesh(mesh: TetMesh, plane: PlaneFault, triangles: Int) -> FaultMesh:
    """Fault mesh of a rectangle.

    Parameters
    ----------
    triangles : (n_tri, 3) int64 vertex numbers, any orientation, of the
        rectangle and its margin.
    """
    strike, updip, normal = plane.axes
    triangles = np.array(triangles[:, :3], dtype=np.int64)
    facing = triangle_normals(mesh.nodes, triangles) @ normal
    if not np.all(np.abs(facing) > 0.0):
        raise MeshError(f"fault {plane.name}: a triangle of its mesh has no area")
    triangles[facing < 0.0] = triangles[facing < 0.0][:, [0, 2, 1]]
    triangles = second_order_triangles(mesh, triangles)
    nodes = np.unique(triangles)
    offset = mesh.nodes[nodes] - plane.origin
    ones = np.ones((len(nodes), 1))
    return FaultMesh(
        name=plane.name,
        triangles=triangles,
        nodes=nodes,
        along=offset @ strike,
        down=-(offset @ updip),
        length=plane.length,
        width=plane.width,
        open_top=plane.top == 0.0,
        strike=ones * strike,
        updip=ones * updip,
        normal=ones * normal,
    )
