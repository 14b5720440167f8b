"""Local axes and coordinates of a fault that comes with an imported mesh."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from afterslip_common.errors import MeshError
from afterslip_solver.mesh.fault import Unrolled, curved_fault_mesh, triangle_normals
from afterslip_solver.mesh.geometry import Geometry
from afterslip_solver.mesh.refine import refine_uniformly
from afterslip_solver.mesh.region import band_edges
from afterslip_solver.mesh.split import split_nodes
from afterslip_solver.mesh.topology import edge_keys
from afterslip_solver.model import FaultMesh, Float, Int, TetMesh

_LINES = 81
# lines at the very ends would run along an edge or meet a tip only
_END = 0.01


def imported_geometry(
    mesh: TetMesh, triangles: Mapping[str, Int], refine: int = 0
) -> Geometry:
    """Mesh that may be refined, and its faults without further description.

    Parameters
    ----------
    triangles : by fault (n_tri, 3) int64 vertex numbers.
    refine : number of uniform refinements, with straight edges.
    """
    for _ in range(refine):
        mesh, triangles, _ = refine_uniformly(mesh, triangles, {})
    faults = {name: imported_fault(mesh, name, own) for name, own in triangles.items()}
    splits = {name: split_nodes(mesh, fault) for name, fault in faults.items()}
    return Geometry(mesh, faults, splits)


def imported_fault(mesh: TetMesh, name: str, triangles: Int) -> FaultMesh:
    """Fault mesh of triangles without further description.

    ``along`` is the distance along the strike of the mean plane. ``down`` runs down
    dip on that plane, from the surface's upper to its lower edge at that ``along``,
    stretched to the mean width. The surface has no margin: its buried rim is the
    edge of slip. The hanging wall of a vertical fault is to the right of a strike
    between 0 and 180 degrees.

    Parameters
    ----------
    triangles : (n_tri, 3) int64 vertex numbers.
    """
    corners = np.unique(triangles[:, :3])
    points = mesh.nodes[corners]
    normal = np.linalg.svd(points - points.mean(axis=0), full_matrices=False)[2][2]
    upright = abs(normal[2]) < 1e-6
    if normal[2] < 0.0 or (upright and normal[0] < 0.0):
        normal = -normal
    flat = np.hypot(normal[0], normal[1])
    # a horizontal surface has no strike; north is as good as any
    strike = np.array([-normal[1], normal[0], 0.0]) / flat if flat > 1e-6 else None
    if strike is None:
        strike = np.array([0.0, 1.0, 0.0])
    downdip = -np.cross(normal, strike)
    _check_bent(mesh, name, triangles, normal)

    start, end = _rim(triangles, len(mesh.nodes))
    s, d = mesh.nodes @ strike, mesh.nodes @ downdip
    low, high = float(s[corners].min()), float(s[corners].max())
    lines = np.linspace(low, high, _LINES)
    cut = np.clip(lines, low + _END * (high - low), high - _END * (high - low))
    upper, lower = band_edges(cut[:, None], (s[start], d[start]), (s[end], d[end]))
    width = float(np.mean(lower - upper))

    def coordinates(at: Float) -> tuple[Float, Float]:
        along, across = at @ strike, at @ downdip
        top = np.interp(along, lines, upper)
        share = (across - top) / (np.interp(along, lines, lower) - top)
        return along - low, share * width

    open_top = _breaks_surface(mesh, start, end)
    azimuth = float(np.arctan2(strike[0], strike[1]))
    shape = Unrolled(name, coordinates, high - low, width, open_top, azimuth)
    return curved_fault_mesh(mesh, shape, triangles)


def _check_bent(mesh: TetMesh, name: str, triangles: Int, normal: Float) -> None:
    normals = triangle_normals(mesh.nodes, triangles)
    facing = np.abs(normals @ normal) / np.linalg.norm(normals, axis=1)
    if np.any(facing < 0.1):
        raise MeshError(
            f"fault {name}: {int((facing < 0.1).sum())} of its triangles stand across "
            "its mean plane; split the surface into faults that are less bent"
        )


def _rim(triangles: Int, n: int) -> tuple[Int, Int]:
    """Find the ends of the edges that belong to one triangle only."""
    edges = triangles[:, np.array([[0, 1], [1, 2], [2, 0]])].reshape(-1, 2)
    keys = edge_keys(edges, n)
    _, first, count = np.unique(keys, return_index=True, return_counts=True)
    rim = edges[first[count == 1]]
    return rim[:, 0], rim[:, 1]


def _breaks_surface(mesh: TetMesh, start: Int, end: Int) -> bool:
    z = mesh.nodes[:, 2]
    top = z.max() - 1e-9 * np.ptp(z)
    return bool(np.any((z[start] >= top) & (z[end] >= top)))
