"""Integrals of slip over a fault: area, position, rigidity."""

from __future__ import annotations

import numpy as np

from afterslip_solver.mesh.fault import triangle_normals
from afterslip_solver.mesh.split import elements_beside
from afterslip_solver.model import FaultMesh, Float, Materials, TetMesh
from afterslip_solver.sources.basis import UnitSource, shape_values

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


def source_area(source: UnitSource, fault: FaultMesh, mesh: TetMesh) -> float:
    """Integral of the source's basis function over the fault, m2."""
    return float(potency(shape_values(source, fault), fault, mesh).sum())


def source_position(source: UnitSource, fault: FaultMesh, mesh: TetMesh) -> Float:
    """(3,) float64, m, centroid of the source's potency."""
    area = 0.5 * np.linalg.norm(triangle_normals(mesh.nodes, fault.triangles), axis=1)
    value = shape_values(source, fault)[np.searchsorted(fault.nodes, fault.triangles)]
    weight = (value @ _MOMENTS) * area[:, None]
    corner = mesh.nodes[fault.triangles[:, :3]]
    return np.asarray(np.einsum("ij,ijk->k", weight, corner) / weight.sum())


def source_rigidity(
    source: UnitSource, fault: FaultMesh, mesh: TetMesh, materials: Materials
) -> float:
    """Mean of the rigidity over the source's slip and both sides, Pa."""
    beside = elements_beside(mesh, fault)
    weight = potency(shape_values(source, fault), fault, mesh)
    mean = materials.mu[beside].mean(axis=1)
    return float((weight * mean).sum() / weight.sum())
