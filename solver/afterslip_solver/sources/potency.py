"""Integrals of slip over a fault: area, position, rigidity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from afterslip_solver.mesh.fault import triangle_normals
from afterslip_solver.mesh.split import elements_beside
from afterslip_solver.model import FaultMesh, Float, Materials, TetMesh
from afterslip_solver.sources.basis import Profiles, UnitSource, shape_values

# integrals of the P2 functions of a triangle times its linear ones, over its area:
# rows 3 vertices, midpoints of (0,1), (1,2), (2,0)
_MOMENTS = (
    np.array(
        [
            [2.0, -1.0, -1.0],
            [-1.0, 2.0, -1.0],
            [-1.0, -1.0, 2.0],
            [8.0, 8.0, 4.0],
            [4.0, 8.0, 8.0],
            [8.0, 4.0, 8.0],
        ]
    )
    / 60.0
)


def potency(values: Float, fault: FaultMesh, mesh: TetMesh) -> Float:
    """Integral over each triangle of a nodal field, exact for P2 values.

    Parameters
    ----------
    values : (n_fault_node,) float64.

    Returns
    -------
    (n_tri,) float64, unit of the values x m2.
    """
    area = 0.5 * np.linalg.norm(triangle_normals(mesh.nodes, fault.triangles), axis=1)
    place = np.searchsorted(fault.nodes, fault.triangles)
    # vertex functions of P2 integrate to zero, midpoints to a third of the area
    return np.asarray(area * values[place[:, 3:]].sum(axis=1) / 3.0)


@dataclass(frozen=True, slots=True)
class SourceIntegrals:
    """Integrals of unit sources over their fault.

    Attributes
    ----------
    area : (n_source,) m2, integral of the basis function.
    position : (n_source, 3) m, centroid of the potency.
    rigidity : (n_source,) Pa, mean over the slip and both sides.
    """

    area: Float
    position: Float
    rigidity: Float


def source_integrals(
    sources: Sequence[UnitSource], fault: FaultMesh, mesh: TetMesh, materials: Materials
) -> SourceIntegrals:
    """Integrate unit sources of a fault; exact for P2 slip and constant rigidity."""
    weights = _nodal_weights(fault, mesh, materials)
    shapes: dict[tuple[int, int], Float] = {}
    known: Profiles = {}
    for source in sources:
        # both components of a patch have the same basis function
        if source.patch not in shapes:
            shapes[source.patch] = shape_values(source, fault, known) @ weights
    sums = np.array([shapes[source.patch] for source in sources])
    area = sums[:, 0]
    return SourceIntegrals(area, sums[:, 2:] / area[:, None], sums[:, 1] / area)


def _nodal_weights(fault: FaultMesh, mesh: TetMesh, materials: Materials) -> Float:
    """(n_fault_node, 5) integrals of the P2 functions, times 1, mu, x, y and z."""
    area = 0.5 * np.linalg.norm(triangle_normals(mesh.nodes, fault.triangles), axis=1)
    mu = materials.mu[elements_beside(mesh, fault)].mean(axis=1)
    corner = mesh.nodes[fault.triangles[:, :3]]
    local = np.zeros((len(area), 6, 5))
    local[:, 3:, 0] = 1.0 / 3.0
    local[:, 3:, 1] = mu[:, None] / 3.0
    local[:, :, 2:] = np.einsum("ij,njk->nik", _MOMENTS, corner)
    local *= area[:, None, None]
    place = np.searchsorted(fault.nodes, fault.triangles).ravel()
    out = np.zeros((len(fault.nodes), 5))
    np.add.at(out, place, local.reshape(-1, 5))
    return out
