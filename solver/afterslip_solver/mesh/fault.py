"""Fault surfaces of a mesh: P2 triangles with local axes and coordinates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from afterslip_common.errors import MeshError
from afterslip_common.geometry import PlaneFault
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
    triangles = _facing(mesh, triangles, normal, plane.name)
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


def _facing(mesh: TetMesh, triangles: Int, direction: Float, name: str) -> Int:
    """(n_tri, 3) triangles turned so that their normals point along a direction."""
    triangles = np.array(triangles[:, :3], dtype=np.int64)
    normals = triangle_normals(mesh.nodes, triangles)
    if not np.all(np.linalg.norm(normals, axis=1) > 0.0):
        raise MeshError(f"fault {name}: a triangle of its mesh has no area")
    behind = normals @ direction < 0.0
    triangles[behind] = triangles[behind][:, [0, 2, 1]]
    return triangles


def node_axes(
    mesh: TetMesh, triangles: Int, nodes: Int, mean_strike: Float
) -> tuple[Float, Float, Float]:
    """Local axes at the nodes of a curved fault.

    Normals are those of the triangles around a node, weighted by area. The strike
    is horizontal; where the surface is flat it is ``mean_strike``.

    Parameters
    ----------
    triangles : (n_tri, 6) node numbers. nodes : (n_fault_node,) sorted numbers.
    mean_strike : (3,) horizontal unit vector.

    Returns
    -------
    strike, updip, normal : (n_fault_node, 3) unit vectors.
    """
    place = np.searchsorted(nodes, triangles)
    normal = np.zeros((len(nodes), 3))
    weighted = triangle_normals(mesh.nodes, triangles)
    for column in place.T:
        np.add.at(normal, column, weighted)
    normal /= np.linalg.norm(normal, axis=1, keepdims=True)
    strike = np.stack([-normal[:, 1], normal[:, 0], np.zeros(len(nodes))], axis=1)
    size = np.linalg.norm(strike, axis=1, keepdims=True)
    strike = np.where(size > 1e-6, strike / np.maximum(size, 1e-300), mean_strike)
    updip = np.cross(normal, strike)
    updip /= np.linalg.norm(updip, axis=1, keepdims=True)
    return strike, updip, normal


@dataclass(frozen=True, slots=True)
class Unrolled:
    """Where a curved fault slips, unrolled to a rectangle.

    Attributes
    ----------
    coordinates : from points (n, 3), m, to (along, down), m.
    length, width : m.
    strike : radians, mean strike; the fault dips to its right.
    """

    name: str
    coordinates: Callable[[Float], tuple[Float, Float]]
    length: float
    width: float
    open_top: bool
    strike: float


def curved_fault_mesh(mesh: TetMesh, shape: Unrolled, triangles: Int) -> FaultMesh:
    """Fault mesh of a curved surface.

    Parameters
    ----------
    triangles : (n_tri, 3) int64 vertex numbers, any orientation.
    """
    sin, cos = np.sin(shape.strike), np.cos(shape.strike)
    hanging = np.array([cos, -sin, 1.0])
    faces = second_order_triangles(mesh, _facing(mesh, triangles, hanging, shape.name))
    nodes = np.unique(faces)
    along, down = shape.coordinates(mesh.nodes[nodes])
    strike, updip, normal = node_axes(mesh, faces, nodes, np.array([sin, cos, 0.0]))
    return FaultMesh(
        name=shape.name,
        triangles=faces,
        nodes=nodes,
        along=along,
        down=down,
        length=shape.length,
        width=shape.width,
        open_top=shape.open_top,
        strike=strike,
        updip=updip,
        normal=normal,
    )
