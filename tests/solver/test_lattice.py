"""Descendants of an element are cells of one lattice, whichever diagonal it has."""

from __future__ import annotations

import numpy as np
import pytest

from afterslip_solver.mesh.lattice import (
    inherited_diagonals,
    lattice_of_descendants,
)
from afterslip_solver.mesh.numbering import second_order, signed_volumes
from afterslip_solver.mesh.quality import element_shapes
from afterslip_solver.mesh.refine import refine_uniformly
from afterslip_solver.mesh.topology import cell_faces, face_keys
from afterslip_solver.model import TET_EDGES
from afterslip_solver.testing.box import box_mesh

TIMES = 3


@pytest.fixture(scope="module")
def meshes(small_box):
    """A box whose elements have all three diagonals, and its refinements."""
    made = [small_box]
    for _ in range(TIMES):
        made.append(refine_uniformly(made[-1], {}, {})[0])
    return made


@pytest.fixture(scope="module")
def small_box():
    box = box_mesh((2, 2, 1), (1.0, 1.0, 1.0))
    vertices = box.nodes[: box.n_vertex]
    rng = np.random.default_rng(3)
    return second_order(vertices + 0.1 * rng.uniform(-1, 1, vertices.shape), box.cells)


def diagonals(mesh):
    """Diagonal (n_elem,) along the parents' lattice; they are there."""
    found = inherited_diagonals(mesh.cells)
    assert found is not None
    return found


def edges_of(mesh):
    """Edges (n_elem, 6, 3) of elements."""
    ends = mesh.nodes[mesh.cells[:, TET_EDGES]]
    return ends[:, :, 1] - ends[:, :, 0]


def test_all_three_diagonals_are_cut(meshes):
    assert len(np.unique(diagonals(meshes[1])[::8])) == 3
    assert inherited_diagonals(meshes[0].cells) is None


@pytest.mark.parametrize("level", [1, 2, 3])
def test_refined_meshes_conform_and_keep_their_volume(meshes, level):
    fine, coarse = meshes[level], meshes[0]
    keys = face_keys(cell_faces(fine.cells).reshape(-1, 3), fine.n_vertex)
    counts = np.unique(keys, return_counts=True)[1]
    own = face_keys(cell_faces(coarse.cells).reshape(-1, 3), coarse.n_vertex)
    outside = (np.unique(own, return_counts=True)[1] == 1).sum() * 4**level
    assert counts.max() == 2
    assert (counts == 1).sum() == outside
    volumes = signed_volumes(fine.nodes, fine.cells).reshape(len(coarse.cells), -1)
    whole = signed_volumes(coarse.nodes, coarse.cells)[:, None]
    # equal parts, to the rounding of coordinates of size 1 in elements of 1/16
    np.testing.assert_allclose(volumes, whole / 8**level + 0 * volumes, rtol=1e-10)


def test_descendants_have_seven_directions_and_three_shapes(meshes):
    edges = edges_of(meshes[TIMES]).reshape(len(meshes[0].cells), -1, 3)
    size = np.abs(edges).max()
    for one in edges:
        # the same direction either way
        sign = np.sign(one[np.arange(len(one)), np.abs(one).argmax(axis=1)])
        directions = np.unique(np.round(one * sign[:, None] / size, 7), axis=0)
        assert len(directions) == 7
        lengths = np.sort(np.linalg.norm(one.reshape(-1, 6, 3), axis=2), axis=1)
        assert len(np.unique(np.round(lengths / size, 7), axis=0)) <= 3


def test_shapes_get_no_worse_after_the_second_refinement(meshes):
    worst = [element_shapes(m.nodes, m.cells)[1].min() for m in meshes]
    assert worst[1] > 0.5 * worst[0]
    assert worst[3] == pytest.approx(worst[2], rel=1e-9)


@pytest.mark.parametrize("times", [1, 2, 3])
def test_nodes_lie_where_the_lattice_says(meshes, times):
    lattice = lattice_of_descendants(times)
    coarse, fine = meshes[0], meshes[times]
    first = diagonals(meshes[1]).reshape(-1, 8)[:, 0]
    elements = fine.elements.reshape(len(coarse.cells), -1, 10)
    order = np.array([[0, 2, 1, 3], [0, 1, 3, 2], [0, 1, 2, 3]])[first]
    corners = coarse.nodes[np.take_along_axis(coarse.cells, order, axis=1)]
    for k, nodes in enumerate(elements):
        steps = (corners[k, 1:] - corners[k, 0]) / 2 ** (times + 1)
        expected = corners[k, 0] + lattice[first[k]] @ steps
        np.testing.assert_allclose(fine.nodes[nodes], expected, atol=1e-12)
