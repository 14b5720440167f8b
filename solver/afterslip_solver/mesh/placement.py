"""From the box in which a mesh is made to where it is on the Earth.

The box has the depths, faults and layers that people write. Its vertices are moved: up
by the height of the ground, less with depth, and from the plane onto the sphere.
Elements stay straight-sided, so that the kernels of the solver need not know of it;
what that costs is of the second order in their size, as facets of curved faults do.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from afterslip_common.errors import MeshError
from afterslip_common.sphere import onto_sphere
from afterslip_solver.mesh.fault import triangle_normals
from afterslip_solver.mesh.quality import element_shapes
from afterslip_solver.model import (
    TET_EDGES,
    FaultMesh,
    Float,
    Model,
    Placement,
    TetMesh,
)

# moving an element may make it worse, but not to less than this part of its quality
_LEAST_QUALITY = 0.05


def place(
    mesh: TetMesh, radius: float = np.inf, lift: Float | None = None
) -> Placement:
    """Move the nodes of a mesh to where they are on the Earth.

    Parameters
    ----------
    mesh : in the box, its top at z = 0.
    radius : m, of the Earth; infinite where it is flat.
    lift : (n_vertex,) float64, m, height of the ground above each vertex. Vertices are
        moved up by it at the top, by nothing at the bottom, linearly between.

    Raises
    ------
    MeshError
        Elements would be turned inside out, or nearly flat; with the number, the worst
        and its place.
    """
    vertices = mesh.nodes[: mesh.n_vertex].copy()
    if lift is not None:
        z = vertices[:, 2]
        vertices[:, 2] = z + lift * (1.0 - (z - z.max()) / (z.min() - z.max()))
    if np.isfinite(radius):
        vertices = onto_sphere(vertices, radius)
    _check(mesh, vertices)
    return Placement(straight(mesh, vertices), radius)


def straight(mesh: TetMesh, vertices: Float) -> Float:
    """(n_node, 3) float64, m, nodes of straight-sided elements on given vertices."""
    nodes = np.empty_like(mesh.nodes)
    nodes[: mesh.n_vertex] = vertices
    for k, (a, b) in enumerate(TET_EDGES):
        ends = vertices[mesh.elements[:, a]], vertices[mesh.elements[:, b]]
        nodes[mesh.elements[:, 4 + k]] = 0.5 * (ends[0] + ends[1])
    return nodes


def placed(model: Model) -> Model:
    """Return the model as it is solved: its mesh, springs and faults on the Earth."""
    found = model.placement
    if found is None:
        return model
    mesh = replace(model.mesh, nodes=found.nodes)
    restoring = model.restoring
    if restoring is not None and np.isfinite(found.radius):
        away = found.nodes[restoring.faces] + np.array([0.0, 0.0, found.radius])
        up = away / np.linalg.norm(away, axis=2, keepdims=True)
        restoring = replace(restoring, up=up)
    faults = {name: _turned(f, model.mesh, mesh) for name, f in model.faults.items()}
    return replace(model, mesh=mesh, restoring=restoring, faults=faults, placement=None)


def placed_slip(model: Model, slip: dict[str, Float]) -> dict[str, Float]:
    """Turn slip with the faults from the box to the Earth.

    Parameters
    ----------
    slip : fault name → (n_fault_node, 3, n_lane) float64, m, axes of the box.

    Returns
    -------
    The same along the axes of space: what was along strike or dip stays so.
    """
    found = model.placement
    if found is None:
        return slip
    earth = replace(model.mesh, nodes=found.nodes)
    turned = {}
    for name, values in slip.items():
        fault = model.faults[name]
        axes = _axes(fault), _axes(_turned(fault, model.mesh, earth))
        turned[name] = np.einsum("nac,nak,nkl->ncl", axes[1], axes[0], values)
    return turned


def heights(model: Model) -> Float:
    """(n_node,) float64, m, of the mesh's nodes above the sphere, or above z = 0.

    Midpoints of edges have the mean of the edge's ends, as if the sphere were followed.
    """
    found, mesh = model.placement, model.mesh
    if found is None:
        return np.asarray(mesh.nodes[:, 2])
    at = found.nodes[: mesh.n_vertex]
    above = at[:, 2]
    if np.isfinite(found.radius):
        across = at[:, 0] ** 2 + at[:, 1] ** 2
        from_centre = at[:, 2] + found.radius
        # |(x, y, r)| - radius without the difference of two large numbers
        length = np.sqrt(across + from_centre**2)
        above = (at[:, 2] * (from_centre + found.radius) + across) / (
            length + found.radius
        )
    return straight(mesh, np.repeat(above[:, None], 3, axis=1))[:, 0]


def _axes(fault: FaultMesh) -> Float:
    """(n_fault_node, 3, 3) float64, strike, up dip and normal in rows."""
    return np.stack([fault.strike, fault.updip, fault.normal], axis=1)


def _turned(fault: FaultMesh, box: TetMesh, earth: TetMesh) -> FaultMesh:
    """Carry the axes of a fault with its triangles.

    The strike follows the surface as a line drawn on it does; up dip is at right angles
    to it in the surface.
    """
    place_of = np.searchsorted(fault.nodes, fault.triangles)
    total = np.zeros((len(fault.nodes), 3, 3))
    parts = [_sides(mesh.nodes, fault) for mesh in (box, earth)]
    # the linear map of each triangle and its normal, weighted by area
    maps = parts[1] @ np.linalg.inv(parts[0])
    area = np.linalg.norm(triangle_normals(box.nodes, fault.triangles), axis=1)
    for column in place_of.T:
        np.add.at(total, column, area[:, None, None] * maps)
    strike = np.einsum("nij,nj->ni", total, fault.strike)
    strike /= np.linalg.norm(strike, axis=1, keepdims=True)
    updip = np.einsum("nij,nj->ni", total, fault.updip)
    updip -= np.einsum("ni,ni->n", updip, strike)[:, None] * strike
    updip /= np.linalg.norm(updip, axis=1, keepdims=True)
    return replace(fault, strike=strike, updip=updip, normal=np.cross(strike, updip))


def _sides(nodes: Float, fault: FaultMesh) -> Float:
    """(n_tri, 3, 3) float64, in columns two sides and the unit normal."""
    a, b, c = (nodes[fault.triangles[:, i]] for i in range(3))
    normal = np.cross(b - a, c - a)
    normal /= np.linalg.norm(normal, axis=1, keepdims=True)
    scale = np.linalg.norm(b - a, axis=1, keepdims=True)
    return np.stack([b - a, c - a, normal * scale], axis=2)


def _check(mesh: TetMesh, vertices: Float) -> None:
    """Refuse elements that moving has spoilt."""
    _, before, _ = element_shapes(mesh.nodes, mesh.cells)
    volume, after, _ = element_shapes(vertices, mesh.cells)
    bad = (volume <= 0.0) | (after < _LEAST_QUALITY * before)
    if not bad.any():
        return
    worst = int(np.argmin(np.where(volume > 0.0, after / before, -1.0)))
    corners = mesh.nodes[mesh.cells[worst]]
    x, y, z = corners.mean(axis=0) / 1e3
    size = max(np.linalg.norm(corners[a] - corners[b]) for a, b in TET_EDGES) / 1e3
    raise MeshError(
        f"moving the mesh onto the Earth turns {int((volume <= 0.0).sum())} elements "
        f"inside out and spoils {int((bad & (volume > 0.0)).sum())} more; the worst is "
        f"{size:.3g} km long, near x = {x:.1f}, y = {y:.1f}, z = {z:.1f} km (quality "
        f"{before[worst]:.2g}, then {after[worst]:.2g}): use smaller elements there "
        "(mesh.size), smoother topography, or a smaller model.domain"
    )
