"""How good a mesh is, in figures."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from afterslip_solver.mesh.errors import MeshError
from afterslip_solver.mesh.numbering import signed_volumes
from afterslip_solver.mesh.topology import cell_edges, cell_faces
from afterslip_solver.model import Float, Int, TetMesh

# under this quality an element is flat to rounding
_DEGENERATE = 1e-6


@dataclass(frozen=True, slots=True)
class QualityReport:
    """Figures of a mesh.

    ``gamma`` is 3 x radius of the inscribed / radius of the circumscribed sphere
    (1 for a regular tetrahedron). ``aspect`` is the longest edge / (2 sqrt(6) x
    radius of the inscribed sphere), also 1 for a regular one.

    Attributes
    ----------
    n_element, n_vertex, n_node, n_unknowns : counts; three unknowns a node.
    gamma_min, gamma_1pct, gamma_mean : smallest, 1 % quantile, mean.
    aspect_median, aspect_99pct, aspect_max : dimensionless.
    edge_min, edge_max : m.
    volume : m3.
    """

    n_element: int
    n_vertex: int
    n_node: int
    n_unknowns: int
    gamma_min: float
    gamma_1pct: float
    gamma_mean: float
    aspect_median: float
    aspect_99pct: float
    aspect_max: float
    edge_min: float
    edge_max: float
    volume: float


def element_shapes(vertices: Float, cells: Int) -> tuple[Float, Float, Float]:
    """Volume, gamma and aspect ratio of each element.

    Returns
    -------
    volume, gamma, aspect : (n_elem,) float64, m3 and dimensionless; gamma is 0
        and aspect infinite where the volume is not positive.
    """
    volume = signed_volumes(vertices, cells)
    corners = vertices[cell_faces(cells)]
    area = 0.5 * np.linalg.norm(
        np.cross(
            corners[:, :, 1] - corners[:, :, 0], corners[:, :, 2] - corners[:, :, 0]
        ),
        axis=-1,
    ).sum(axis=1)
    ends = vertices[cell_edges(cells)]
    length = np.linalg.norm(ends[:, :, 1] - ends[:, :, 0], axis=-1)
    # edges 01 23, 12 03, 20 13 are opposite; Crelle's formula
    p, q, r = (length[:, i] * length[:, j] for i, j in ((0, 5), (1, 3), (2, 4)))
    product = (p + q + r) * (p + q - r) * (p - q + r) * (-p + q + r)
    positive = np.maximum(volume, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        inner = 3.0 * positive / area
        outer = np.sqrt(np.maximum(product, 0.0)) / (24.0 * positive)
        gamma = np.where(positive > 0.0, 3.0 * inner / outer, 0.0)
        aspect = length.max(axis=1) / (2.0 * np.sqrt(6.0) * inner)
    return volume, np.nan_to_num(gamma, nan=0.0), np.nan_to_num(aspect, nan=np.inf)


def quality_report(mesh: TetMesh) -> QualityReport:
    """Measure every element of a mesh."""
    volume, gamma, aspect = element_shapes(mesh.nodes, mesh.cells)
    ends = mesh.nodes[cell_edges(mesh.cells)]
    length = np.linalg.norm(ends[:, :, 1] - ends[:, :, 0], axis=-1)
    return QualityReport(
        n_element=len(mesh.elements),
        n_vertex=mesh.n_vertex,
        n_node=len(mesh.nodes),
        n_unknowns=3 * len(mesh.nodes),
        gamma_min=float(gamma.min()),
        gamma_1pct=float(np.quantile(gamma, 0.01)),
        gamma_mean=float(gamma.mean()),
        aspect_median=float(np.median(aspect)),
        aspect_99pct=float(np.quantile(aspect, 0.99)),
        aspect_max=float(aspect.max()),
        edge_min=float(length.min()),
        edge_max=float(length.max()),
        volume=float(volume.sum()),
    )


def check_quality(mesh: TetMesh) -> None:
    """Refuse inverted and degenerate elements.

    Raises MeshError with their number, the worst and its place.
    """
    volume, gamma, _ = element_shapes(mesh.nodes, mesh.cells)
    bad = (volume <= 0.0) | (gamma < _DEGENERATE)
    if not bad.any():
        return
    worst = int(np.argmin(np.where(volume <= 0.0, -1.0, gamma)))
    x, y, z = mesh.nodes[mesh.cells[worst]].mean(axis=0) / 1e3
    raise MeshError(
        f"{int((volume <= 0.0).sum())} elements are inverted and "
        f"{int((bad & (volume > 0.0)).sum())} are flat; the worst is element {worst} "
        f"(volume {volume[worst]:.3g} m3, quality {gamma[worst]:.1e}) near "
        f"x = {x:.1f}, y = {y:.1f}, z = {z:.1f} km; remove slivers there, or mesh "
        "with a smaller size"
    )
