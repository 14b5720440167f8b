"""The V-cycle is a symmetric positive map that keeps iterations bounded."""

from __future__ import annotations

import numpy as np
import pytest

from afterslip_solver.krylov import pcg
from afterslip_solver.multigrid import MultigridSettings, build
from afterslip_solver.multigrid.local_smoothing import (
    concentrated,
    rows_of_stiffness,
    slow_energy,
)
from afterslip_solver.multigrid.settings import LARGE
from afterslip_solver.multigrid.smoother import (
    largest_eigenvalue,
    random_vector,
    relaxations,
)


def cube(small, n, contrast=1.0, stiffness=1.0):
    mesh = small.box_mesh((n, n, n), (1.0, 1.0, 1.0))
    depth = -mesh.nodes[mesh.cells].mean(axis=1)[:, 2]
    mu = stiffness * np.where(depth < 0.4, 1.0, contrast)
    return small.elasticity(mesh, small.held_sides(mesh.nodes), mu, mu)


def load(k, seed=0):
    f = np.random.default_rng(seed).standard_normal(k.shape)
    return f * k.free


def test_cycle_is_symmetric_and_positive(small):
    k = cube(small, 5, contrast=10.0)
    cycle = build(k)
    a, b = load(k, 1), load(k, 2)
    ma, mb = np.empty_like(a), np.empty_like(b)
    one = np.ones(4)
    cycle.apply(a, one, ma)
    cycle.apply(b, one, mb)
    dot = small.backend.dot
    size = np.sqrt(dot(a, ma) * dot(b, mb))
    assert (np.abs(dot(a, mb) - dot(ma, b)) < 1e-5 * size).all()
    assert (dot(a, ma) > 0).all()


def test_cycle_is_linear_over_many_magnitudes(small):
    k = cube(small, 4, stiffness=3e10)
    cycle = build(k)
    a = load(k)
    first, second = np.empty_like(a), np.empty_like(a)
    cycle.apply(a, np.ones(4), first)
    cycle.apply(1e14 * a, np.full(4, 1e14), second)
    np.testing.assert_allclose(
        second, 1e14 * first, rtol=1e-5, atol=1e8 * np.abs(first).max()
    )


def test_cycle_leaves_fixed_components_at_zero(small):
    k = cube(small, 4)
    out = np.empty(k.shape)
    build(k).apply(load(k), np.ones(4), out)
    assert np.abs(out[k.space.fixed]).max() == 0.0


def test_two_builds_are_equal_to_the_last_bit(small):
    k = cube(small, 8, contrast=10.0)
    f, one = load(k), np.ones(4)
    found = []
    for process in range(2):
        np.random.seed(process)  # noqa: NPY002 (every process starts elsewhere)
        z = np.empty_like(f)
        build(k).apply(f, one, z)
        found.append(z)
    np.testing.assert_array_equal(found[0], found[1])


def test_lanes_do_not_mix(small):
    k = cube(small, 4)
    cycle = build(k)
    a = load(k)
    alone = np.zeros_like(a)
    alone[:, :, 2] = a[:, :, 2]
    all_four, one = np.empty_like(a), np.empty_like(a)
    cycle.apply(a, np.ones(4), all_four)
    cycle.apply(alone, np.ones(4), one)
    np.testing.assert_array_equal(one[:, :, 2], all_four[:, :, 2])
    assert np.abs(one[:, :, [0, 1, 3]]).max() == 0.0


def test_largest_eigenvalue_is_close(small):
    from scipy.linalg import eigh
    from scipy.sparse import bsr_array

    k = cube(small, 3)
    inverse = np.linalg.inv(k.host.diagonal)
    found = largest_eigenvalue(
        small.backend,
        small.backend.blocks(
            k.host.indptr,
            k.host.indices,
            k.host.data.astype(np.float32),
            len(inverse),
        ),
        inverse.astype(np.float32),
    )
    matrix = bsr_array((k.host.data, k.host.indices, k.host.indptr)).toarray()
    blocks = np.zeros_like(matrix)
    for i, block in enumerate(k.host.diagonal):
        blocks[3 * i : 3 * i + 3, 3 * i : 3 * i + 3] = block
    true = eigh(matrix, blocks, eigvals_only=True)[-1]
    assert 0.95 * true < found < 1.001 * true


@pytest.mark.parametrize("contrast", [1.0, 100.0])
def test_iterations_stay_bounded_under_refinement(small, contrast):
    counts = []
    for n in (3, 6, 12):
        k = cube(small, n, contrast)
        result = pcg(k, build(k), load(k))
        assert result.outcome == "converged"
        counts.append(result.iterations)
    assert max(counts) <= 20
    assert counts[-1] <= 1.5 * counts[0]


def test_nearly_incompressible_body_still_converges(small):
    mesh = small.box_mesh((6, 6, 6), (1.0, 1.0, 1.0))
    mu = np.ones(len(mesh.elements))
    k = small.elasticity(mesh, small.held_sides(mesh.nodes), 100 * mu, mu)
    result = pcg(k, build(k), load(k), max_iterations=300)
    assert result.outcome == "converged"


def test_hierarchy_tells_its_bytes(small):
    k = cube(small, 4)
    cycle = build(k, MultigridSettings(max_coarse=100))
    # of every node a diagonal block and vectors, and the elements in FP32
    fine = cycle.levels[0]
    own = k.single.bytes + fine.smoother.inverse.nbytes + 4 * fine.b.nbytes
    assert own < cycle.bytes < 2 * own
    # the elements in FP64, and no matrix
    assert k.matrix.bytes < k.bytes < k.host.data.nbytes


@pytest.mark.parametrize("degree", [1, 2, 3, 4])
def test_smoothing_polynomial_has_the_published_bound(degree):
    # Lottes (2023): sup t p^2 / (1 - p^2), which bounds a V-cycle, is 3 / (4 k (k + 1))
    # for the fourth kind and smaller for the optimised polynomials
    t = np.linspace(1e-6, 1.0, 20001)
    p = np.prod([1.0 - f * t for f in relaxations(degree, 1.0)], axis=0)
    bound = (t * p**2 / (1.0 - p**2)).max()
    published = 1.0 / (4.0 / np.pi**2 * (2 * degree + 1) ** 2 - 2.0 / 3.0)
    assert bound < 0.75 / (degree * (degree + 1))
    np.testing.assert_allclose(bound, published, rtol=0.02)


def test_few_elements_that_hold_the_error_are_found():
    energy = np.ones(100)
    energy[[3, 50]] = 200.0
    assert np.flatnonzero(concentrated(energy, 0.02)).tolist() == [3, 50]
    # spread evenly, nothing is worth more smoothing
    assert not concentrated(np.ones(100), 0.1).any()


def test_slow_error_is_found_after_many_cycles(small):
    # at first 1e-30 of what it was after as many cycles
    k = cube(small, 4, contrast=5.0)
    cycle = build(k, MultigridSettings(local_degree=0, max_coarse=100))
    x = random_vector(k.shape)
    x[k.space.fixed] = 0.0
    few, many = (slow_energy(k, cycle, x.copy(), cycles) for cycles in (8, 80))
    assert np.isfinite(many).all()
    assert many.sum() > 0.1 * few.sum()
    gathered = [np.sort(e)[-len(e) // 50 :].sum() / e.sum() for e in (few, many)]
    assert gathered[1] > gathered[0]


def test_large_meshes_are_searched_longer_for_fewer_slow_elements():
    small, large = (MultigridSettings.suiting(n) for n in (LARGE - 1, LARGE))
    assert small == MultigridSettings()
    assert large.local_cycles > small.local_cycles
    assert large.local_share < small.local_share


def test_rows_of_the_stiffness_are_those_of_the_whole_matrix(small):
    k = cube(small, 3, contrast=5.0)
    chosen = np.arange(len(k.space.elements)) % 3 > 0
    outside = np.zeros(k.space.n_node, dtype=bool)
    outside[k.space.elements[~chosen]] = True
    rows = np.flatnonzero(~outside)
    assert len(rows)
    indptr, indices, data = rows_of_stiffness(k, 1.0, chosen, rows)
    whole = k.host
    for i, row in enumerate(rows):
        own = slice(indptr[i], indptr[i + 1])
        there = slice(whole.indptr[row], whole.indptr[row + 1])
        np.testing.assert_array_equal(indices[own], whole.indices[there])
        free = ~k.space.fixed[row]
        np.testing.assert_allclose(
            data[own][:, free], whole.data[there][:, free], atol=1e-12
        )


def test_thin_wedges_are_smoothed_more_and_need_fewer_iterations(small):
    # flat elements in one corner, as between a shallow thrust and the free surface
    mesh = small.box_mesh((8, 8, 8), (1.0, 1.0, 1.0))
    nodes = mesh.nodes.copy()
    near = (nodes[:, 0] < -0.24) & (nodes[:, 1] < -0.24)
    nodes[near, 2] *= 0.15
    nodes[:, 2] = np.where(near & (mesh.nodes[:, 2] < -0.99), -1.0, nodes[:, 2])
    thin = type(mesh)(nodes, mesh.elements, mesh.n_vertex, mesh.tags, mesh.tag_names)
    for a, b, middle in (
        (0, 1, 4),
        (1, 2, 5),
        (2, 0, 6),
        (0, 3, 7),
        (1, 3, 8),
        (2, 3, 9),
    ):
        ends = nodes[mesh.elements[:, [a, b]]]
        nodes[mesh.elements[:, middle]] = ends.mean(axis=1)
    one = np.ones(len(mesh.elements))
    k = small.elasticity(thin, small.held_sides(mesh.nodes), one, one)
    f = load(k)
    counts = [
        pcg(k, build(k, MultigridSettings(local_degree=d)), f).iterations
        for d in (0, 4)
    ]
    assert counts[1] < counts[0]


def test_largest_eigenvalue_of_a_level_of_one_block_is_one(small):
    block = np.array([[[4.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 2.0]]])
    matrix = small.backend.blocks(
        np.array([0, 1]), np.array([0]), block.astype(np.float32), 1
    )
    inverse = np.linalg.inv(block).astype(np.float32)
    assert largest_eigenvalue(small.backend, matrix, inverse) == pytest.approx(
        1.0, rel=1e-5
    )
