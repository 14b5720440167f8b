"""Refinement cuts the octahedron inside each element along its shortest diagonal."""

from __future__ import annotations

import numpy as np

from afterslip_solver.mesh.numbering import second_order, signed_volumes
from afterslip_solver.mesh.refine import refine_uniformly

# midpoints of opposite edges, in local P2 nodes
OPPOSITE = [[4, 9], [5, 7], [6, 8]]


def cut_along(mesh):
    """The two midpoints that all four inner children of an element share."""
    fine, _, _ = refine_uniformly(mesh, {}, {})
    inner = fine.cells.reshape(-1, 8, 4)[:, 4:]
    shared = [set.intersection(*map(set, children)) for children in inner.tolist()]
    return fine, np.array([sorted(pair) for pair in shared])


def test_refinement_cuts_along_the_shortest_diagonal(small):
    box = small.box_mesh((3, 3, 3), (1.0, 1.0, 1.0))
    rng = np.random.default_rng(5)
    vertices = box.nodes[: box.n_vertex]
    moved = vertices + 0.05 * rng.uniform(-1.0, 1.0, vertices.shape)
    mesh = second_order(moved, box.cells)
    fine, cut = cut_along(mesh)
    ends = mesh.elements[:, OPPOSITE]
    lengths = np.linalg.norm(np.diff(mesh.nodes[ends], axis=2)[:, :, 0], axis=-1)
    choice = np.argmin(lengths, axis=1)
    assert len(np.unique(choice)) == 3
    expected = np.sort(ends[np.arange(len(ends)), choice], axis=1)
    np.testing.assert_array_equal(cut, expected)
    volumes = signed_volumes(fine.nodes, fine.cells).reshape(-1, 8)
    whole = signed_volumes(mesh.nodes, mesh.cells)
    # eight equal parts, whichever diagonal; coordinates are rounded at 1e-16
    np.testing.assert_allclose(volumes, np.stack([whole / 8.0] * 8, 1), rtol=1e-11)


def test_rounding_does_not_decide_between_equal_diagonals():
    """In a regular octahedron, moved far away, the first diagonal is taken."""
    corners = np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]]) / 3.0
    for shift in (0.0, 0.1, 12.7, 1e3 / 7.0):
        mesh = second_order(corners + shift, np.array([[0, 1, 2, 3]]))
        _, cut = cut_along(mesh)
        assert cut[0].tolist() == sorted(mesh.elements[0, OPPOSITE[0]].tolist())
