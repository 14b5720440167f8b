"""Second-order space on a mesh: numbering, patterns and constraints.

Nodes are renumbered inside the solver (along a space-filling curve, or as a backend
prefers) so that what is used together lies close together in memory; `Space.order`
leads back to the mesh.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from afterslip_solver.array_cache import NO_CACHE, CacheScope
from afterslip_solver.elements.tetrahedron import barycentric_gradients
from afterslip_solver.jit.threads import over, take_rows
from afterslip_solver.mesh.order import morton_codes
from afterslip_solver.mesh.tables import midpoints, sorting
from afterslip_solver.model import Bool, Float, Int, TetMesh
from afterslip_solver.operators.parents import Parents, ancestors
from afterslip_solver.operators.pattern import Pattern, matrix_pattern


@dataclass(frozen=True, eq=False)
class Space:
    """Host arrays that all operators on one mesh share.

    Attributes
    ----------
    order : (n_node,) mesh node of each of the solver's nodes.
    rank : (n_node,) the solver's node of each mesh node.
    element_order : (n_elem,) mesh element of each of the solver's elements.
    elements : (n_elem, 10) int32, the solver's nodes.
    cells : (n_elem, 4) int32, the solver's vertices.
    nodes : (n_node, 3) float64, m.
    vertices : (n_vertex,) the solver's node of each of its vertices.
    gradients : (n_elem, 4, 3) float64, 1/m. volume : (n_elem,) m3.
    fixed : (n_node, 3) bool.
    cache : arrays keyed by these arrays.
    """

    order: Int
    rank: Int
    element_order: Int
    elements: NDArray[np.int32]
    cells: NDArray[np.int32]
    nodes: Float
    vertices: Int
    gradients: Float
    volume: Float
    fixed: Bool
    cache: CacheScope = NO_CACHE

    @classmethod
    def build(
        cls,
        mesh: TetMesh,
        fixed: Bool,
        numbering: tuple[Int, Int] | None = None,
        cache: CacheScope = NO_CACHE,
    ) -> Space:
        """Give a mesh the solver's numbering.

        Parameters
        ----------
        numbering : orders of nodes and elements that a backend prefers; default
            along a space-filling curve, and elements by their first node.
        cache : arrays keyed by the mesh, its numbering and ``fixed``.
        """
        n_node = len(mesh.nodes)
        order, element_order = numbering or along_curve(mesh.nodes, mesh.elements)
        rank = _inverse(order)
        elements = np.empty(mesh.elements.shape, dtype=np.int32)
        tables = (mesh.elements, element_order, rank, elements)
        over(len(elements), partial(sorting.renumber, *tables))
        vertices = np.flatnonzero(order < mesh.n_vertex)
        vertex_rank = np.full(n_node, -1, dtype=np.int64)
        vertex_rank[vertices] = np.arange(len(vertices))
        cells = np.empty((len(elements), 4), dtype=np.int32)
        number = vertex_rank[rank[: mesh.n_vertex]]
        of_cells = (mesh.elements, element_order, number, cells)
        over(len(cells), partial(sorting.renumber, *of_cells))
        nodes = take_rows(mesh.nodes, order)
        gradients, volume = barycentric_gradients(nodes, elements[:, :4])
        return cls(
            order=order,
            rank=rank,
            element_order=element_order,
            elements=elements,
            cells=cells,
            nodes=nodes,
            vertices=vertices,
            gradients=gradients,
            volume=volume,
            fixed=take_rows(fixed, order),
            cache=cache,
        )

    @cached_property
    def element_rank(self) -> Int:
        """(n_elem,) the inverse of ``element_order``."""
        return _inverse(self.element_order)

    @cached_property
    def constrained(self) -> Int:
        """Nodes with fixed components."""
        return np.flatnonzero(in_any_component(self.fixed))

    @cached_property
    def embedding(self) -> csr_array:
        """(n_node, n_vertex) linear fields as quadratic ones (exact)."""
        return _embedding(self.elements, self.cells, self.n_node, len(self.vertices))

    @cached_property
    def pattern(self) -> Pattern:
        """(indptr, indices) of the P2 matrix."""
        return matrix_pattern(self.elements, self.n_node)

    @cached_property
    def vertex_pattern(self) -> Pattern:
        """(indptr, indices) of the P1 matrix."""
        return matrix_pattern(self.cells, len(self.vertices))

    @cached_property
    def parents(self) -> tuple[Parents, ...]:
        """What the mesh was refined from, finest first; vertices stand for nodes."""
        return ancestors(take_rows(self.cells, self.element_rank), self.vertices)

    @property
    def n_node(self) -> int:
        """Number of P2 nodes."""
        return len(self.nodes)


def in_any_component(fixed: Bool) -> Bool:
    """(n,) rows of (n, 3) with one that is true, in a twentieth of ``any``'s time."""
    return fixed[:, 0] | fixed[:, 1] | fixed[:, 2]


def along_curve(nodes: Float, elements: Int) -> tuple[Int, Int]:
    """Orders of nodes (along a space-filling curve) and elements (by first node).

    What a row of a matrix reads of a vector is then mostly in cache: measured, its
    products are up to 15 % faster than in the order of reverse Cuthill-McKee.
    """
    order = np.argsort(morton_codes(nodes), kind="stable")
    first = _inverse(order)[elements].min(axis=1)
    return order, np.argsort(first, kind="stable")


def _inverse(order: Int) -> Int:
    inverse = np.empty_like(order)

    def invert(first: int, last: int) -> None:
        inverse[order[first:last]] = np.arange(first, last)

    over(len(order), invert)
    return inverse


def _embedding(
    elements: NDArray[np.int32], cells: NDArray[np.int32], n_node: int, n_vertex: int
) -> csr_array:
    """Vertices keep their value, midpoints take the mean of their edge's ends."""
    ends = np.empty((n_node, 2), dtype=np.int32)
    # elements with a common edge write the same
    over(len(cells), partial(midpoints.ends_of_edges, elements, cells, ends))
    return midpoints.interpolation(ends, n_vertex)
