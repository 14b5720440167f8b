"""Compiled loops of the set-up give what NumPy and SciPy give."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import Delaunay

from afterslip_solver.elements.tetrahedron import barycentric_gradients
from afterslip_solver.jit.threads import over
from afterslip_solver.mesh.tables import edges
from afterslip_solver.mesh.tables.bisection import compact_order
from afterslip_solver.mesh.tables.edges import number_edges
from afterslip_solver.mesh.tables.sorting import by_number, pieces
from afterslip_solver.mesh.topology import boundary_faces, cell_faces
from afterslip_solver.model import TET_EDGES
from afterslip_solver.multigrid.smoother import random_vector
from afterslip_solver.operators.pattern import matrix_pattern


@pytest.mark.parametrize("threads", [1, 7])
def test_edges_are_numbered_as_sorting_does(threads, monkeypatch):
    monkeypatch.setattr(edges, "_FEW", 1)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(threads)))
    rng = np.random.default_rng(1)
    cells = np.array([rng.permutation(60)[:4] for _ in range(300)])
    ends = np.sort(cells[:, np.array(TET_EDGES)].reshape(-1, 2), axis=1)
    expected, inverse = np.unique(ends @ [60, 1], return_inverse=True)
    elements, found = number_edges(cells, 60)
    np.testing.assert_array_equal(found @ [60, 1], expected)
    np.testing.assert_array_equal(elements[:, 4:].ravel(), 60 + inverse)
    np.testing.assert_array_equal(elements[:, :4], cells)


def test_faces_that_occur_once_are_found_in_any_mesh():
    rng = np.random.default_rng(3)
    cells = Delaunay(rng.random((60, 3))).simplices.astype(np.int64)
    # holes and touching corners, like those of parts of a mesh
    cells = cells[rng.random(len(cells)) < 0.7]
    faces = np.sort(cell_faces(cells).reshape(-1, 3), axis=1)
    inverse, counts = np.unique(faces, axis=0, return_inverse=True, return_counts=True)[
        1:
    ]
    expected = np.flatnonzero(counts[inverse.ravel()] == 1)
    assert 0 < len(expected) < len(faces)
    element, local = boundary_faces(cells, 60)
    np.testing.assert_array_equal(4 * element + local, expected)


def test_places_of_numbers_are_those_of_a_stable_sort():
    numbers = np.random.default_rng(2).integers(0, 50, 1000)
    starts, places = by_number(numbers, 60)
    np.testing.assert_array_equal(places, np.argsort(numbers, kind="stable"))
    np.testing.assert_array_equal(np.diff(starts), np.bincount(numbers, minlength=60))


def test_pieces_are_the_connected_components():
    rng = np.random.default_rng(3)
    elements = rng.integers(0, 4000, (700, 4))
    rows = np.repeat(elements[:, :1], 3, axis=1).ravel()
    graph = coo_array((np.ones(2100), (rows, elements[:, 1:].ravel())), (4000, 4000))
    count, expected = connected_components(graph, directed=False)
    found, piece = pieces(elements, 4000)
    assert found == count > 1
    # the same sets, whatever their numbers
    assert len(np.unique(piece * count + expected)) == count


@pytest.mark.parametrize("width", [4, 10])
def test_pattern_is_that_of_the_product_with_the_incidence(width):
    rng = np.random.default_rng(5)
    elements = np.array([rng.permutation(90)[:width] for _ in range(200)])
    rows = np.repeat(np.arange(200), width)
    touch = csr_array((np.ones(rows.size), (rows, elements.ravel())), (200, 95))
    expected = (touch.T @ touch).tocsr()
    expected.sort_indices()
    indptr, indices = matrix_pattern(elements, 95)
    np.testing.assert_array_equal(indptr, expected.indptr)
    np.testing.assert_array_equal(indices, expected.indices)


def test_random_vectors_do_not_depend_on_the_number_of_threads(monkeypatch):
    shape = (100_000, 3, 4)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0})
    alone = random_vector(shape)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(7)))
    np.testing.assert_array_equal(random_vector(shape), alone)
    assert abs(alone.mean()) < 0.01
    assert abs(alone.std() - 1.0) < 0.01
    assert np.abs(random_vector(shape, seed=1) - alone).max() > 1.0


def test_blocks_of_elements_do_not_depend_on_the_number_of_threads(monkeypatch):
    points = np.random.default_rng(6).random((5000, 3))
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0})
    alone = compact_order(points, 12)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(5)))
    np.testing.assert_array_equal(compact_order(points, 12), alone)
    np.testing.assert_array_equal(np.sort(alone), np.arange(5000))
    # a run of twelve is much smaller than the whole
    assert np.ptp(points[alone[:4992].reshape(-1, 12)], axis=1).max() < 0.5


def test_gradients_and_volumes_are_those_of_the_inverse_matrix():
    nodes = np.random.default_rng(4).standard_normal((40, 3))
    cells = np.array([[0, 1, 2, 3], [7, 5, 11, 30], [39, 2, 8, 21]])
    gradients, volume = barycentric_gradients(nodes, cells)
    edges = nodes[cells[:, 1:]] - nodes[cells[:, :1]]
    inverse = np.linalg.inv(edges).transpose(0, 2, 1)
    np.testing.assert_allclose(gradients[:, 1:], inverse, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(gradients[:, 0], -inverse.sum(axis=1), atol=1e-11)
    np.testing.assert_allclose(volume, np.linalg.det(edges) / 6.0, rtol=1e-12)


@pytest.mark.parametrize("n", [0, 1, 7, 1000])
def test_ranges_cover_every_step_once(n):
    counts = np.zeros(n, dtype=int)

    def count(start, stop):
        counts[start:stop] += 1

    over(n, count, few=3)
    assert (counts == 1).all()
