"""How good a mesh is, in figures."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from afterslip_common.errors import MeshError
from afterslip_solver.jit.threads import over
from afterslip_solver.mesh.numbering import flat_elements, triple_product
from afterslip_solver.mesh.topology import any_corner
from afterslip_solver.model import TET_EDGES, Float, Int, TetMesh

# under this quality an element is flat to rounding
_DEGENERATE = 1e-6
# volume over the cube of the longest component of an edge from a vertex, V / c**3: with
# the longest edge L a quality is 72 (V / L**3)**2 or more, and L is at most 2 sqrt(3) c
_SUSPECT = 0.01
# elements measured at a time: fits in cache
_CHUNK = 20_000


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
    volume, gamma, aspect, _, _ = _measured(vertices, cells)
    return volume, gamma, aspect


def _measured(vertices: Float, cells: Int) -> NDArray[np.float64]:
    """(5, n_elem): `element_shapes`, and the shortest and longest edge, m."""
    out = np.empty((5, len(cells)))

    def measure(first: int, last: int) -> None:
        for k in range(first, last):
            own = slice(k * _CHUNK, (k + 1) * _CHUNK)
            _measure(vertices[cells[own]], out[:, own])

    over(-(-len(cells) // _CHUNK), measure, few=1)
    return out


def _measure(corners: Float, out: NDArray[np.float64]) -> None:
    """Measure tetrahedra (n, 4, 3); see `_measured`."""
    edges = [corners[:, b] - corners[:, a] for a, b in TET_EDGES]
    square = np.stack([np.einsum("ij,ij->i", e, e) for e in edges])
    # two edges of each face, by number in TET_EDGES
    faces = ((0, 2), (0, 3), (2, 3), (1, 4))
    area = sum(
        0.5
        * np.sqrt(
            np.maximum(
                square[i] * square[j] - np.einsum("ij,ij->i", edges[i], edges[j]) ** 2,
                0.0,
            )
        )
        for i, j in faces
    )
    a, b, c = edges[0], -edges[2], edges[3]
    volume = triple_product(a, b, c) / 6.0
    # edges 01 23, 12 03, 20 13 are opposite; Crelle's formula
    p, q, r = (np.sqrt(square[i] * square[j]) for i, j in ((0, 5), (1, 3), (2, 4)))
    product = (p + q + r) * (p + q - r) * (p - q + r) * (-p + q + r)
    positive = np.maximum(volume, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        inner = 3.0 * positive / area
        outer = np.sqrt(np.maximum(product, 0.0)) / (24.0 * positive)
        gamma = np.where(positive > 0.0, 3.0 * inner / outer, 0.0)
        longest = np.sqrt(np.max(square, axis=0))
        aspect = longest / (2.0 * np.sqrt(6.0) * inner)
    out[:] = (
        volume,
        np.nan_to_num(gamma, nan=0.0),
        np.nan_to_num(aspect, nan=np.inf),
        np.sqrt(np.min(square, axis=0)),
        longest,
    )


def quality_report(mesh: TetMesh) -> QualityReport:
    """Measure every element of a mesh."""
    volume, gamma, aspect, shortest, longest = _measured(mesh.nodes, mesh.cells)
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
        edge_min=float(shortest.min()),
        edge_max=float(longest.max()),
        volume=float(volume.sum()),
    )


def check_quality(mesh: TetMesh) -> None:
    """Refuse inverted and degenerate elements.

    Raises MeshError with their number, the worst and its place.
    """
    some = np.flatnonzero(flat_elements(mesh.nodes, mesh.cells, _SUSPECT))
    volume, gamma, _ = element_shapes(mesh.nodes, mesh.cells[some])
    bad = (volume <= 0.0) | (gamma < _DEGENERATE)
    if not bad.any():
        return
    worst = int(np.argmin(np.where(volume <= 0.0, -1.0, gamma)))
    number = int(some[worst])
    x, y, z = mesh.nodes[mesh.cells[number]].mean(axis=0) / 1e3
    raise MeshError(
        f"{int((volume <= 0.0).sum())} elements are inverted and "
        f"{int((bad & (volume > 0.0)).sum())} are flat; the worst is element {number} "
        f"(volume {volume[worst]:.3g} m3, quality {gamma[worst]:.1e}) near "
        f"x = {x:.1f}, y = {y:.1f}, z = {z:.1f} km; remove slivers there, or mesh "
        "with a smaller size"
    )


def describe_spanning(mesh: TetMesh) -> list[str]:
    """Say how many elements reach from one side of the domain to the opposite one.

    There the field has one parabola from a fixed or rolling side to the other.

    Returns
    -------
    A note for each axis along which there are such elements.
    """
    names = ("from west to east", "from south to north", "from top to bottom")
    notes = []
    for axis, name in enumerate(names):
        at = mesh.nodes[:, axis]
        low, high = float(at.min()), float(at.max())
        margin = 1e-6 * (high - low)
        both = any_corner(mesh.cells, at < low + margin)
        both &= any_corner(mesh.cells, at > high - margin)
        if both.any():
            notes.append(
                f"{int(both.sum()):,} of {len(mesh.cells):,} elements reach "
                f"{name} through the whole domain ({(high - low) / 1e3:g} km), which "
                "is too few to resolve motion: reduce mesh.size.far"
            )
    return notes
