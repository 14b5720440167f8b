"""The free surface of a mesh."""

from __future__ import annotations

import numpy as np

from afterslip_common.errors import MeshError
from afterslip_solver.mesh.topology import TET_FACES_P2, any_corner, cell_faces
from afterslip_solver.model import Surface, TetMesh


def surface_trace(mesh: TetMesh) -> Surface:
    """Triangles of the flat top of the mesh.

    Returns
    -------
    Surface: the boundary faces whose vertices all lie at the largest z, with
    upward normals.
    """
    z = mesh.nodes[: mesh.n_vertex, 2]
    tolerance = 1e-9 * (z.max() - z.min())
    at_top = z >= z.max() - tolerance
    candidates = np.flatnonzero(any_corner(mesh.cells, at_top, 3))
    # a face with three vertices in the top plane is a boundary face by itself
    corners = at_top[cell_faces(mesh.cells[candidates])]
    element, local = np.nonzero(corners.all(axis=2))
    faces = mesh.elements[candidates[element][:, None], np.array(TET_FACES_P2)[local]]
    if len(faces) == 0:
        raise MeshError("the mesh has no flat free surface at its top")
    nodes, inverse = np.unique(faces, return_inverse=True)
    return Surface(nodes=nodes, faces=inverse.reshape(-1, 6).astype(np.int64))
