"""Second-order node numbering from the vertices."""

from __future__ import annotations

from functools import partial

import numpy as np

from afterslip_common.errors import MeshError
from afterslip_solver.jit.threads import over
from afterslip_solver.mesh.tables import tetrahedra
from afterslip_solver.mesh.tables.edges import number_edges, put_middles
from afterslip_solver.mesh.topology import any_corner, cell_edges, edge_keys
from afterslip_solver.model import Bool, Float, Int, TetMesh


def signed_volumes(vertices: Float, cells: Int) -> Float:
    """(n_elem,) float64, m3, positive where the vertex order is right-handed."""
    out = np.empty(len(cells))
    over(len(cells), partial(tetrahedra.six_volumes, vertices, cells, out))
    out /= 6.0
    return out


def flat_elements(vertices: Float, cells: Int, least: float) -> Bool:
    """(n_elem,) whether volumes are not above ``least``, see `tetrahedra.mark_flat`."""
    out = np.empty(len(cells), dtype=np.bool_)
    over(len(cells), partial(tetrahedra.mark_flat, vertices, cells, least, out))
    return out


def triple_product(a: Float, b: Float, c: Float) -> Float:
    """(n,) a . (b x c) of rows of three vectors (n, 3)."""
    return np.asarray(
        a[:, 0] * (b[:, 1] * c[:, 2] - b[:, 2] * c[:, 1])
        + a[:, 1] * (b[:, 2] * c[:, 0] - b[:, 0] * c[:, 2])
        + a[:, 2] * (b[:, 0] * c[:, 1] - b[:, 1] * c[:, 0])
    )


def oriented(vertices: Float, cells: Int) -> Int:
    """Cells, with two vertices swapped in a copy where a volume is negative."""
    cells = np.asarray(cells, dtype=np.int64)
    wrong = signed_volumes(vertices, cells) < 0.0
    if not wrong.any():
        return cells
    cells = cells.copy()
    cells[wrong] = cells[wrong][:, [0, 2, 1, 3]]
    return cells


def second_order(
    vertices: Float,
    cells: Int,
    tags: Int | None = None,
    tag_names: tuple[str, ...] = ("box",),
) -> TetMesh:
    """Straight-sided P2 mesh of a vertex mesh.

    Parameters
    ----------
    vertices : (n_vertex, 3) float64, m.
    cells : (n_elem, 4) int64, any orientation.
    tags : (n_elem,) int64, index into ``tag_names``; zeros where left out.

    Returns
    -------
    TetMesh, elements positively oriented, midpoints numbered after the vertices
    in the order of their edges' vertex numbers.
    """
    vertices = np.ascontiguousarray(vertices, dtype=np.float64)
    cells = oriented(vertices, cells)
    n_vertex = len(vertices)
    used = np.zeros(n_vertex, dtype=np.bool_)
    used[cells] = True
    if not used.all():
        raise MeshError(
            f"{int((~used).sum())} vertices belong to no tetrahedron; "
            "remove them from the mesh"
        )
    elements, ends = number_edges(cells, n_vertex)
    nodes = np.empty((n_vertex + len(ends), 3))
    nodes[:n_vertex] = vertices
    over(len(ends), partial(put_middles, vertices, ends, nodes))
    if tags is None:
        tags = np.zeros(len(cells), dtype=np.int64)
    return TetMesh(
        nodes=nodes,
        elements=elements,
        n_vertex=n_vertex,
        tags=np.asarray(tags, dtype=np.int64),
        tag_names=tag_names,
    )


def edge_midpoints(mesh: TetMesh, edges: Int) -> Int:
    """Node numbers of the midpoints of edges of the mesh.

    Parameters
    ----------
    edges : (n, 2) int64 vertex numbers.

    Returns
    -------
    (n,) int64 node numbers. Raises MeshError where an edge is not in the mesh.
    """
    wanted = np.zeros(mesh.n_vertex, dtype=np.bool_)
    wanted[edges] = True
    near = mesh.elements[any_corner(mesh.cells, wanted, 2)]
    keys, first = np.unique(
        edge_keys(cell_edges(near), mesh.n_vertex).ravel(), return_index=True
    )
    sought = edge_keys(edges, mesh.n_vertex)
    place = np.minimum(np.searchsorted(keys, sought), max(len(keys) - 1, 0))
    if len(keys) == 0 or not np.array_equal(keys[place], sought):
        raise MeshError(
            "an edge of a surface is not an edge of a tetrahedron: "
            "the mesh does not conform to the surface"
        )
    return np.asarray(near[:, 4:].ravel()[first[place]], dtype=np.int64)
