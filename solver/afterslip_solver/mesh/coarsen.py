"""The mesh that a uniformly refined one came from, as a model of its own.

`refine_uniformly` numbers the children of an element behind each other and leaves its
parents' nodes first. So the coarse second-order mesh has the vertices of the fine one
as its nodes, under the same numbers, and nothing needs to be stored with it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace

import numpy as np

from afterslip_solver.mesh.lattice import CHILDREN, corners_of_children
from afterslip_solver.mesh.placement import straight
from afterslip_solver.mesh.split import split_nodes
from afterslip_solver.mesh.topology import TET_FACES_P2, face_keys
from afterslip_solver.mesh.trace import surface_trace
from afterslip_solver.model import (
    TET_EDGES,
    FaultMesh,
    Float,
    Int,
    Materials,
    Model,
    Restoring,
    TetMesh,
)

# the inner child whose material the parent gets: its centre is on this one's side
_INNER = 4


def coarsened(
    model: Model, restoring: Callable[[TetMesh, Float], tuple[Restoring, list[str]]]
) -> Model | None:
    """Undo the last refinement of a model; None where there was none.

    Parameters
    ----------
    restoring : makes the restoring force of a mesh and its densities, kg/m3.
    """
    mesh = _parents(model.mesh)
    if mesh is None:
        return None
    faults = {name: _fault(mesh, fault) for name, fault in model.faults.items()}
    if any(fault is None for fault in faults.values()):
        return None
    known = {name: fault for name, fault in faults.items() if fault is not None}
    materials = _materials(model.materials)
    force = None
    if model.restoring is not None:
        force, _ = restoring(mesh, materials.rho)
    placement = model.placement
    if placement is not None:
        nodes = straight(mesh, placement.nodes[: mesh.n_vertex])
        placement = replace(placement, nodes=nodes)
    return Model(
        mesh=mesh,
        materials=materials,
        fixed=model.fixed[: len(mesh.nodes)],
        surface=surface_trace(mesh),
        faults=known,
        splits={name: split_nodes(mesh, fault) for name, fault in known.items()},
        restoring=force,
        placement=placement,
    )


def _parents(fine: TetMesh) -> TetMesh | None:
    corners = corners_of_children(fine.cells)
    if corners is None:
        return None
    vertices = corners[:, np.arange(4), np.arange(4)]
    middles = [corners[:, a, b] for a, b in TET_EDGES]
    elements = np.column_stack([vertices, *middles])
    n_vertex = int(vertices.max()) + 1
    if any(int(middle.min()) < n_vertex for middle in middles):
        return None
    nodes = fine.nodes[: fine.n_vertex].copy()
    # those on curved faults were moved when the mesh was refined
    for (a, b), middle in zip(TET_EDGES, middles, strict=True):
        nodes[middle] = 0.5 * (nodes[vertices[:, a]] + nodes[vertices[:, b]])
    tags = fine.tags[::CHILDREN]
    return TetMesh(
        nodes, np.ascontiguousarray(elements), n_vertex, tags, fine.tag_names
    )


def _fault(mesh: TetMesh, fine: FaultMesh) -> FaultMesh | None:
    """Find the faces that the fine triangles came from."""
    on_fault = np.zeros(len(mesh.nodes), dtype=np.bool_)
    inside = fine.nodes < len(mesh.nodes)
    on_fault[fine.nodes[inside]] = True
    near = mesh.elements[on_fault[mesh.elements].sum(axis=1) >= len(TET_FACES_P2[0])]
    faces = near[:, np.array(TET_FACES_P2)].reshape(-1, 6)
    faces = faces[on_fault[faces].all(axis=1)]
    keys = face_keys(faces[:, :3], mesh.n_vertex)
    faces = faces[np.unique(keys, return_index=True)[1]]
    if 4 * len(faces) != len(fine.triangles):
        return None
    nodes = np.unique(faces)
    own = np.searchsorted(fine.nodes, nodes)
    values = {
        name: getattr(fine, name)[own]
        for name in ("along", "down", "strike", "updip", "normal")
    }
    triangles = _facing(mesh, faces, fine)
    return replace(fine, triangles=triangles, nodes=nodes, **values)


def _facing(mesh: TetMesh, faces: Int, fine: FaultMesh) -> Int:
    """Turn (n, 6) triangles so that their normals point as the fine fault's do."""
    corners = mesh.nodes[faces[:, :3]]
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    wanted = fine.normal[np.searchsorted(fine.nodes, faces[:, :3])].sum(axis=1)
    behind = np.einsum("ij,ij->i", normal, wanted) < 0.0
    faces[behind] = faces[behind][:, [0, 2, 1, 5, 4, 3]]
    return np.ascontiguousarray(faces)


def _materials(fine: Materials) -> Materials:
    """Give parents the material at their centre."""
    named = ((item.name, getattr(fine, item.name)) for item in fields(fine))
    coarse = {n: value[_INNER::CHILDREN] for n, value in named if value is not None}
    return Materials(**coarse)
