"""Interpolation on the free surface."""

import numpy as np
import pytest
from scipy.spatial import Delaunay

from afterslip.archive import SurfaceInterpolator
from afterslip.errors import SpecError


def surface(n: int = 300, seed: int = 0, graded: bool = False):
    """Return nodes and polygon-ordered P2 faces of a square of 100 km."""
    rng = np.random.default_rng(seed)
    edge = np.linspace(0, 1, 12)
    inner = rng.random((n, 2))
    if graded:
        inner = np.vstack([inner, 0.5 + 0.01 * rng.normal(size=(n, 2))])
    ring = [np.column_stack([edge, edge * 0 + k]) for k in (0, 1)]
    ring += [np.column_stack([edge * 0 + k, edge]) for k in (0, 1)]
    vertices = np.unique(np.vstack([inner, *ring]), axis=0)
    triangles = Delaunay(vertices).simplices
    vertices = (vertices - 0.5) * 1e5
    edges = np.sort(triangles[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2), axis=1)
    unique, number = np.unique(edges, axis=0, return_inverse=True)
    nodes = np.vstack([vertices, vertices[unique].mean(axis=1)])
    middle = number.reshape(-1, 3) + len(vertices)
    faces = np.empty((len(triangles), 6), dtype=np.int64)
    faces[:, ::2], faces[:, 1::2] = triangles, middle
    return nodes, faces


def quadratic(x, y):
    x, y = x / 1e5, y / 1e5
    return 1 + 2 * x - 3 * y + 4 * x * y - 5 * x**2 + 6 * y**2


@pytest.mark.parametrize("graded", [False, True])
def test_quadratics_are_exact_everywhere(graded: bool) -> None:
    nodes, faces = surface(graded=graded)
    x, y = np.random.default_rng(1).uniform(-5e4, 5e4, (2, 3000))
    where, weights = SurfaceInterpolator(nodes, faces).weights(x, y)
    values = quadratic(*nodes.T)
    found = (weights * values[where]).sum(axis=1)
    np.testing.assert_allclose(found, quadratic(x, y), atol=1e-9)


def test_nodes_edges_and_corners_of_the_domain_are_inside() -> None:
    nodes, faces = surface(60)
    where, weights = SurfaceInterpolator(nodes, faces).weights(*nodes.T)
    values = quadratic(*nodes.T)
    np.testing.assert_allclose((weights * values[where]).sum(axis=1), values)


@pytest.mark.parametrize("far", [1e9, 1e30, 1e154, 1e300, np.inf, np.nan])
def test_place_too_far_to_compute_with_is_outside(far: float) -> None:
    face, _ = SurfaceInterpolator(*surface(60)).locate(np.array([[far, 0.0]]))
    assert face.tolist() == [-1]


def test_every_place_outside_is_named() -> None:
    nodes, faces = surface(60)
    with pytest.raises(SpecError) as caught:
        SurfaceInterpolator(nodes, faces).weights(
            [0.0, 6e4, np.nan], [0.0, 0.0, 0.0], ["IN", "FAR", "LOST"]
        )
    assert [p.value for p in caught.value.problems] == ["FAR", "LOST"]
    assert "x 60.0 km" in caught.value.problems[0].message


def test_sides_of_a_surface_break_keep_their_own_values() -> None:
    # two triangles of a square; nodes on the diagonal are there once for each side
    corners = np.array([[0, 0], [1e4, 0], [1e4, 1e4], [0, 1e4]])
    lower = np.array([corners[0], corners[1], corners[2]])
    upper = np.array([corners[0], corners[2], corners[3]])

    def p2(v):
        return np.array(
            [v[0], (v[0] + v[1]) / 2, v[1], (v[1] + v[2]) / 2, v[2], (v[2] + v[0]) / 2]
        )

    nodes = np.vstack([p2(lower), p2(upper)])
    faces = np.arange(12).reshape(2, 6)
    values = np.repeat([1.0, -1.0], 6)
    where, weights = SurfaceInterpolator(nodes, faces).weights(
        [8e3, 2e3, 5001.0, 4999.0], [2e3, 8e3, 5e3, 5e3]
    )
    np.testing.assert_allclose(
        (weights * values[where]).sum(axis=1), [1.0, -1.0, 1.0, -1.0]
    )
