"""Meshes and slips that several items of the suite share."""

from __future__ import annotations

import numpy as np

from afterslip_common.geometry import PlaneFault
from afterslip_solver.mesh.fault import plane_fault_mesh
from afterslip_solver.mesh.geometry import Geometry
from afterslip_solver.mesh.split import split_nodes
from afterslip_solver.mesh.topology import cell_faces, face_keys
from afterslip_solver.model import Bool, FaultMesh, Float, Materials, TetMesh
from afterslip_solver.testing.box import box_mesh

FAULT = "main"


def cut_box(
    n: tuple[int, int, int] = (4, 3, 3),
    lengths: tuple[float, float, float] = (4.0, 3.0, 3.0),
) -> Geometry:
    """Box that the vertical fault x = 0 cuts in two blocks; + is the side x > 0."""
    mesh = box_mesh(n, lengths)
    tolerance = 1e-9 * lengths[0]
    on_plane = np.abs(mesh.nodes[: mesh.n_vertex, 0]) < tolerance
    faces = cell_faces(mesh.cells).reshape(-1, 3)
    faces = faces[on_plane[faces].all(axis=1)]
    triangles = faces[np.unique(face_keys(faces, mesh.n_vertex), return_index=True)[1]]
    plane = PlaneFault(FAULT, 0.0, 0.0, 0.0, 0.0, 90.0, lengths[1], lengths[2])
    fault = plane_fault_mesh(mesh, plane, triangles)
    return Geometry(mesh, {FAULT: fault}, {FAULT: split_nodes(mesh, fault)})


def uniform_materials(
    mesh: TetMesh, lam: float, mu: float, viscosity: float = np.inf
) -> Materials:
    """One material everywhere (Pa, Pa s)."""
    ones = np.ones(len(mesh.elements))
    return Materials(lam * ones, mu * ones, 3000.0 * ones, viscosity * ones)


def varied_materials(mesh: TetMesh, seed: int = 0) -> Materials:
    """Moduli that differ from element to element by up to a factor of ten."""
    rng = np.random.default_rng(seed)
    n = len(mesh.elements)
    lam, mu = 10.0 ** rng.uniform(0.0, 1.0, (2, n))
    return Materials(lam, mu, np.ones(n), np.full(n, np.inf))


def on_sides(mesh: TetMesh) -> tuple[Bool, Bool]:
    """Whether nodes lie on the low and on the high side of the box, per axis.

    Returns
    -------
    low, high : (n_node, 3) bool.
    """
    low, high = mesh.nodes.min(axis=0), mesh.nodes.max(axis=0)
    close = 1e-9 * (high - low)
    return mesh.nodes < low + close, mesh.nodes > high - close


def held_sides_and_bottom(mesh: TetMesh) -> Bool:
    """(n_node, 3) bool: all but the free surface fixed."""
    low, high = on_sides(mesh)
    wall = low.any(axis=1) | high[:, :2].any(axis=1)
    return np.repeat(np.asarray(wall)[:, None], 3, axis=1)


def slip_moment(mesh: TetMesh, fault: FaultMesh, slip: Float) -> Float:
    """Integral of slip_i normal_j over the fault, (3, 3), m3.

    The integral of a P2 function over a triangle is a third of its area times the
    sum over the midpoints.
    """
    place = np.searchsorted(fault.nodes, fault.triangles)
    a, b, c = (mesh.nodes[fault.triangles[:, k]] for k in range(3))
    area = 0.5 * np.cross(b - a, c - a)
    middles = slip[place[:, 3:]].sum(axis=1) / 3.0
    return np.asarray(np.einsum("ti,tj->ij", middles, area))


def smooth_slip(fault: FaultMesh) -> Float:
    """(n_fault_node, 3) m, strike, dip and opening, zero at and beyond the edges.

    At an open top edge it does not fall to zero.
    """
    a = np.clip(fault.along / fault.length, 0.0, 1.0)
    d = np.clip(fault.down / fault.width, 0.0, 1.0)
    down = np.cos(0.5 * np.pi * d) if fault.open_top else np.sin(np.pi * d)
    bump = np.sin(np.pi * a) * down
    vector = 0.6 * fault.strike + 1.0 * fault.updip + 0.2 * fault.normal
    return np.asarray((bump * (1.0 + 0.3 * a))[:, None] * vector)
