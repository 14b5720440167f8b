"""Where a mesh was refined, multigrid descends through what it was refined from."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy.sparse import bsr_array, eye_array, kron

from afterslip_solver.krylov import pcg
from afterslip_solver.materials import restoring_force
from afterslip_solver.mesh.refine import refine_uniformly
from afterslip_solver.multigrid import MultigridSettings, build
from afterslip_solver.multigrid.nested import linear_levels
from afterslip_solver.operators import Elasticity, Space, Springs

TET_FACES = [[0, 1, 2], [0, 1, 3], [0, 2, 3], [1, 2, 3]]


def refined(small, n, times, move=None):
    """Coarse box and its refinements; ``move`` takes new vertices of the mid-plane."""
    meshes = [small.box_mesh((n, n, n), (1.0, 1.0, 1.0))]
    surfaces = {"middle": middle_plane(meshes[0])} if move else {}
    for _ in range(times):
        projections = {"middle": move} if move else {}
        mesh, surfaces, _ = refine_uniformly(meshes[-1], surfaces, projections)
        meshes.append(mesh)
    return meshes


def middle_plane(mesh):
    faces = mesh.cells[:, TET_FACES].reshape(-1, 3)
    return faces[(np.abs(mesh.nodes[faces][:, :, 2] + 0.5) < 1e-9).all(axis=1)]


def elasticity(small, mesh, contrast=1.0, springs=False):
    fixed = small.held_sides(mesh.nodes)
    mu = 1.0 + (contrast - 1.0) * np.random.default_rng(3).random(len(mesh.elements))
    k = small.elasticity(mesh, fixed, 2.0 * mu, mu)
    if not springs:
        return k
    restoring, _ = restoring_force(mesh, np.full(len(mesh.elements), 0.1))
    spring = Springs(k.backend, k.space, restoring)
    lam, mu = k.moduli
    return Elasticity(k.backend, k.space, k.tets, lam, mu, spring)


def load(k):
    return np.random.default_rng(0).standard_normal(k.shape) * k.free


def matrix(level):
    m = level.matrix
    return bsr_array((m.data, m.indices, m.indptr)).tocsr()


def test_refined_mesh_shows_what_it_came_from(small):
    coarse, middle, fine = refined(small, 2, 2)
    space = Space.build(fine, small.held_sides(fine.nodes))
    first, second = space.parents
    for level, mesh in ((first, middle), (second, coarse)):
        numbers = space.order[level.vertices]
        np.testing.assert_array_equal(np.sort(numbers), np.arange(mesh.n_vertex))
        np.testing.assert_array_equal(numbers[level.cells], mesh.cells)
    # vertices of the fine level lie where the coarse ones place them
    np.testing.assert_allclose(
        first.embedding @ space.nodes[first.vertices],
        space.nodes[space.vertices],
        atol=1e-15,
    )


@pytest.mark.parametrize("n", [2, 4])
def test_mesh_that_was_not_refined_has_no_parents(small, n):
    mesh = small.box_mesh((n, n, n), (1.0, 1.0, 1.0))
    assert len(mesh.elements) % 8 == 0
    assert Space.build(mesh, small.held_sides(mesh.nodes)).parents == ()


@pytest.mark.parametrize("springs", [False, True])
def test_coarse_matrices_are_galerkin_products(small, springs):
    k = elasticity(small, refined(small, 2, 2)[-1], contrast=50.0, springs=springs)
    levels = linear_levels(k)
    assert len(levels) == 3
    for above, level in pairwise(levels):
        free = ~k.space.fixed[level.vertices].ravel()
        up = kron(level.embedding, eye_array(3)).tocsr()
        product = (up.T @ matrix(above) @ up).toarray()
        found = matrix(level).toarray()
        scale = np.abs(product).max()
        np.testing.assert_allclose(
            found[np.ix_(free, free)], product[np.ix_(free, free)], atol=1e-12 * scale
        )
        assert np.abs(found[np.ix_(free, ~free)]).max() == 0.0


def test_nested_cycle_needs_no_more_iterations_than_aggregates(small):
    k = elasticity(small, refined(small, 2, 3)[-1], contrast=20.0)
    f = load(k)
    found = [
        pcg(k, build(k, MultigridSettings(nested=nested)), f)
        for nested in (True, False)
    ]
    assert all(result.outcome == "converged" for result in found)
    assert found[0].iterations <= found[1].iterations
    np.testing.assert_allclose(
        found[0].values, found[1].values, atol=1e-6 * np.abs(found[1].values).max()
    )


@pytest.mark.parametrize("springs", [False, True])
def test_nested_cycle_is_symmetric_and_positive_where_vertices_moved(small, springs):
    def bulge(points):
        x, y, z = points.T
        return np.stack([x, y, z + 0.02 * np.cos(3 * x) * np.cos(3 * y)], axis=1)

    mesh = refined(small, 2, 2, bulge)[-1]
    straight = refined(small, 2, 2)[-1]
    assert np.abs(mesh.nodes - straight.nodes).max() > 0.01
    k = elasticity(small, mesh, springs=springs)
    cycle = build(k)
    a, b = load(k), load(k)[::-1] * k.free
    ma, mb = np.empty_like(a), np.empty_like(b)
    cycle.apply(a, np.ones(4), ma)
    cycle.apply(b, np.ones(4), mb)
    dot = small.backend.dot
    size = np.sqrt(dot(a, ma) * dot(b, mb))
    assert (np.abs(dot(a, mb) - dot(ma, b)) < 1e-5 * size).all()
    assert (dot(a, ma) > 0).all()
    assert pcg(k, cycle, a).iterations <= 20
