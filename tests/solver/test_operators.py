"""The elastic operator against textbook quadrature and exact solutions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import bsr_array
from scipy.sparse.linalg import spsolve

from afterslip_solver.elements.tetrahedron import quadratic_shapes
from afterslip_solver.model import TET_EDGES
from afterslip_solver.operators import Creep, ModelError, check_model
from afterslip_solver.operators.checks import rigid_motions
from afterslip_solver.operators.elasticity import assemble
from afterslip_solver.rheology import burgers


def duffy_points(order=4):
    """Gauss points of the reference tetrahedron: barycentric (n, 4), weights sum 1."""
    x, w = np.polynomial.legendre.leggauss(order)
    x, w = 0.5 * (x + 1), 0.5 * w
    a, b, c = (v.ravel() for v in np.meshgrid(x, x, x, indexing="ij"))
    weight = np.einsum("i,j,k->ijk", w, w, w).ravel() * (1 - a) ** 2 * (1 - b) * 6
    p = np.stack([a, b * (1 - a), c * (1 - a) * (1 - b)], axis=1)
    return np.column_stack([1 - p.sum(axis=1), p]), weight


def shape_gradients(barycentric, g):
    """(n_point, 10, 3) gradients of the quadratic shapes in one element."""
    out = np.empty((len(barycentric), 10, 3))
    for a in range(4):
        out[:, a] = (4 * barycentric[:, a, None] - 1) * g[a]
    for k, (a, b) in enumerate(TET_EDGES):
        out[:, 4 + k] = 4 * (
            barycentric[:, a, None] * g[b] + barycentric[:, b, None] * g[a]
        )
    return out


def element_matrix(nodes, lam, mu):
    """Stiffness of one element by Gauss quadrature and Voigt matrices."""
    edges = np.column_stack([np.ones(4), nodes[:4]])
    g = np.linalg.inv(edges)[1:].T
    volume = abs(np.linalg.det(edges)) / 6
    d = np.diag([2 * mu] * 3 + [mu] * 3)
    d[:3, :3] += lam
    barycentric, weights = duffy_points()
    k = np.zeros((30, 30))
    for h, w in zip(shape_gradients(barycentric, g), weights, strict=True):
        b = np.zeros((6, 30))
        for n in range(10):
            x, y, z = h[n]
            b[:, 3 * n : 3 * n + 3] = [
                [x, 0, 0], [0, y, 0], [0, 0, z], [y, x, 0], [0, z, y], [z, 0, x],
            ]  # fmt: skip
        k += w * volume * b.T @ d @ b
    return k


def dense(matrix):
    return bsr_array((matrix.data, matrix.indices, matrix.indptr)).toarray()


def test_stiffness_equals_gauss_quadrature(small, shaken_box):
    s = shaken_box
    k = small.elasticity(s.mesh, np.zeros_like(s.fixed), s.lam, s.mu)
    n = len(s.mesh.nodes)
    expected = np.zeros((n, 3, n, 3))
    for e, nodes in enumerate(s.mesh.elements):
        block = element_matrix(s.mesh.nodes[nodes], s.lam[e], s.mu[e])
        block = block.reshape(10, 3, 10, 3).transpose(0, 2, 1, 3)
        for i in range(10):
            for j in range(10):
                expected[nodes[i], :, nodes[j], :] += block[i, j]
    order = k.space.order
    expected = expected[order][:, :, order].reshape(3 * n, 3 * n)
    found = dense(k.host)
    assert np.abs(found - expected).max() < 1e-12 * np.abs(expected).max()
    assert np.abs(found - found.T).max() < 1e-13 * np.abs(found).max()


def test_rigid_motions_cost_no_energy(small, shaken_box):
    s = shaken_box
    k = small.elasticity(s.mesh, np.zeros_like(s.fixed), s.lam, s.mu)
    modes = rigid_motions(k.space.nodes)
    for lanes in (modes[:, :, :4], modes[:, :, 2:]):
        u = np.ascontiguousarray(lanes)
        out = np.empty_like(u)
        k.apply(u, out)
        assert np.abs(out).max() < 1e-12


def test_patch_test_linear_displacement_is_in_equilibrium(small, shaken_box):
    s = shaken_box
    one = np.ones(len(s.mu))
    k = small.elasticity(s.mesh, np.zeros_like(s.fixed), 1.3 * one, one)
    gradient = np.random.default_rng(2).standard_normal((3, 3, 4))
    u = np.ascontiguousarray(np.einsum("nj,ijl->nil", k.space.nodes, gradient))
    f = np.empty_like(u)
    k.apply(u, f)
    x = k.space.nodes
    inside = (np.abs(x[:, :2]) < 0.5 - 1e-9).all(axis=1) & (
        np.abs(x[:, 2] + 0.5) < 0.5 - 1e-9
    )
    assert inside.sum() > 50
    assert np.abs(f[inside]).max() < 1e-12


def test_element_by_element_apply_equals_matrix(small, shaken_box):
    s = shaken_box
    k = small.elasticity(s.mesh, s.fixed, s.lam, s.mu)
    rng = np.random.default_rng(3)
    u = rng.standard_normal(k.shape) * k.free
    f = np.empty_like(u)
    k.apply(u, f)
    assert np.abs(k.check(u, f)).max() < 1e-12


def test_threads_do_not_change_products(small, shaken_box):
    from afterslip_solver import backend as backends

    s = shaken_box
    out = []
    for threads in (1, 2):
        backend = backends.get("cpu", threads)
        k = small.elasticity(s.mesh, s.fixed, s.lam, s.mu, backend)
        u = np.random.default_rng(3).standard_normal(k.shape) * k.free
        f = np.empty_like(u)
        k.apply(u, f)
        out.append(f)
    np.testing.assert_array_equal(*out)


def test_fixed_components_are_uncoupled(small, shaken_box):
    s = shaken_box
    k = small.elasticity(s.mesh, s.fixed, s.lam, s.mu)
    matrix = dense(k.host)
    held = k.space.fixed.ravel()
    off = matrix[held] - np.diag(np.diag(matrix))[held]
    assert np.abs(off).max() == 0.0
    assert np.abs(matrix[:, held] - np.diag(np.diag(matrix))[:, held]).max() == 0.0
    assert (np.diag(matrix) > 0).all()


def test_linear_elements_are_the_galerkin_coarse_matrix(small, shaken_box):
    s = shaken_box
    k = small.elasticity(s.mesh, np.zeros_like(s.fixed), s.lam, s.mu)
    lam, mu = np.asarray(k.lam), np.asarray(k.mu)
    coarse = dense(assemble(k.space, lam, mu, order=1))
    p = np.kron(k.space.embedding.toarray(), np.eye(3))
    expected = p.T @ dense(k.host) @ p
    assert np.abs(coarse - expected).max() < 1e-12 * np.abs(expected).max()


def _manufactured(small, n):
    """Errors in L2 and in the gradient for a smooth field, all sides held."""
    mesh = small.box_mesh((n, n, n), (1.0, 1.0, 1.0))
    fixed = np.zeros(mesh.nodes.shape, dtype=bool)
    low, high = mesh.nodes.min(axis=0), mesh.nodes.max(axis=0)
    edge = ((mesh.nodes < low + 1e-9) | (mesh.nodes > high - 1e-9)).any(axis=1)
    fixed[edge] = True
    one = np.ones(len(mesh.elements))
    lam, mu = 1.5, 1.0
    k = small.elasticity(mesh, fixed, lam * one, mu * one)

    def bump(x):
        return np.prod(np.sin(np.pi * (x - low)), axis=-1)

    direction = np.array([1.0, -0.5, 0.7])

    def body_force(x):
        s, c = np.sin(np.pi * (x - low)), np.cos(np.pi * (x - low))
        u = np.prod(s, axis=-1)
        hessian = np.empty((*x.shape[:-1], 3, 3))
        for i in range(3):
            for j in range(3):
                t = [s[..., m] for m in range(3)]
                if i == j:
                    hessian[..., i, j] = -(np.pi**2) * u
                else:
                    t[i], t[j] = c[..., i], c[..., j]
                    hessian[..., i, j] = np.pi**2 * t[0] * t[1] * t[2]
        laplace = -3 * np.pi**2 * u
        return -((lam + mu) * hessian @ direction + mu * laplace[..., None] * direction)

    space = k.space
    barycentric, weights = duffy_points()
    shapes = quadratic_shapes(barycentric)
    corners = space.nodes[space.elements[:, :4]]
    points = np.einsum("qa,ead->eqd", barycentric, corners)
    load = np.einsum(
        "q,e,qn,eqd->end", weights, space.volume, shapes, body_force(points)
    )
    f = np.zeros((space.n_node, 3))
    np.add.at(f, space.elements, load)
    f[space.fixed] = 0.0
    matrix = bsr_array((k.host.data, k.host.indices, k.host.indptr)).tocsc()
    u = spsolve(matrix, f.ravel()).reshape(-1, 3)
    local = u[space.elements]
    error = (
        np.einsum("qn,end->eqd", shapes, local) - bump(points)[..., None] * direction
    )
    l2 = np.sqrt(np.einsum("q,e,eqd->", weights, space.volume, error**2))
    s, c = np.sin(np.pi * (points - low)), np.cos(np.pi * (points - low))
    slope = np.stack(
        [
            np.pi * c[..., i] * s[..., (i + 1) % 3] * s[..., (i + 2) % 3]
            for i in range(3)
        ],
        axis=-1,
    )
    energy = 0.0
    for e in range(len(local)):
        h = shape_gradients(barycentric, space.gradients[e])
        miss = np.einsum("nd,qnk->qdk", local[e], h)
        miss -= direction[None, :, None] * slope[e][:, None, :]
        energy += space.volume[e] * np.einsum("q,qdk->", weights, miss**2)
    return l2, np.sqrt(energy)


def test_manufactured_solution_converges_at_third_and_second_order(small):
    coarse, fine = _manufactured(small, 3), _manufactured(small, 6)
    assert np.log2(coarse[0] / fine[0]) > 2.7
    assert np.log2(coarse[1] / fine[1]) > 1.8


def test_divergence_is_the_adjoint_of_strain(small, shaken_box):
    s = shaken_box
    k = small.elasticity(s.mesh, s.fixed, s.lam, s.mu)
    eta = np.where(np.arange(len(s.mu)) % 3 == 0, np.inf, 2.0 + s.mu)
    creep = Creep(small.backend, k.space, np.asarray(k.mu), burgers(eta))
    rng = np.random.default_rng(4)
    u = rng.standard_normal(k.shape)
    state = rng.standard_normal(creep.shape)
    factor = 2.0 * eta[creep.which]
    left = small.backend.dot(u, creep.divergence(factor, state))
    right = small.backend.dot(creep.strain(u), creep.weighted(state))
    np.testing.assert_allclose(left, right, rtol=1e-12)


def test_deviatoric_components_keep_the_double_contraction(small, shaken_box):
    s = shaken_box
    k = small.elasticity(s.mesh, s.fixed, s.lam, s.mu)
    creep = Creep(small.backend, k.space, np.asarray(k.mu), burgers(np.ones(len(s.mu))))
    gradient = np.random.default_rng(5).standard_normal((3, 3, 4))
    u = np.ascontiguousarray(np.einsum("nj,ijl->nil", k.space.nodes, gradient))
    strain = 0.5 * (gradient + gradient.transpose(1, 0, 2))
    trace = np.trace(strain)
    deviator = strain - np.eye(3)[:, :, None] * trace / 3
    expected = (deviator**2).sum(axis=(0, 1))
    found = (creep.strain(u) ** 2).sum(axis=2)
    np.testing.assert_allclose(
        found, np.broadcast_to(expected, found.shape), rtol=1e-10
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mu": -1.0}, "shear modulus"),
        ({"lam": -1e12}, "bulk modulus"),
        ({"viscosity": 0.0}, "viscosity"),
        ({"viscosity": np.nan}, "viscosity"),
        ({"lam": np.nan}, "not finite"),
    ],
)
def test_impossible_materials_are_named(small, change, message):
    model = small.box_model()
    ((name, value),) = change.items()
    field = getattr(model.materials, name).copy()
    field[7] = value
    bad = replace(model, materials=replace(model.materials, **{name: field}))
    with pytest.raises(ModelError, match=message) as error:
        check_model(bad)
    assert "element 7" in str(error.value)


def test_loose_rigid_motions_are_named(small):
    model = small.box_model()
    free = replace(model, fixed=np.zeros_like(model.fixed))
    with pytest.raises(ModelError, match="translation in x"):
        check_model(free)
    fixed = np.zeros_like(model.fixed)
    fixed[:, :2] = True
    with pytest.raises(ModelError, match="against translation in z"):
        check_model(replace(model, fixed=fixed))
    check_model(model)
