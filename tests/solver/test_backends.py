"""What every backend must do, part by part, beside plain NumPy and SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import bsr_array, csr_array, random_array

from afterslip_solver import backend as backends
from afterslip_solver.backend.base import Tets
from afterslip_solver.model import TET_EDGES, Materials, Model, Surface
from afterslip_solver.operators import Elasticity, Space
from afterslip_solver.parallel.communicator import Meeting, ThreadCommunicator
from afterslip_solver.parallel.partition import split
from afterslip_solver.parallel.rank_backend import RankBackend

N, M = 300, 290


def vertex_shapes(gradients):
    """(n, 4 vertices, 10 shapes, 3) gradients, from the formulas of the shapes."""
    out = np.zeros((len(gradients), 4, 10, 3))
    for v in range(4):
        one = np.eye(4)[v]
        for a in range(4):
            out[:, v, a] = (4 * one[a] - 1) * gradients[:, a]
        for k, (a, b) in enumerate(TET_EDGES):
            out[:, v, 4 + k] = 4 * (one[a] * gradients[:, b] + one[b] * gradients[:, a])
    return out


def deviatoric_basis():
    """(5, 3, 3) orthonormal deviatoric tensors."""
    e = np.zeros((5, 3, 3))
    e[0] = np.diag([1, -1, 0]) / np.sqrt(2)
    e[1] = np.diag([-1, -1, 2]) / np.sqrt(6)
    for k, (i, j) in enumerate(((0, 1), (1, 2), (0, 2))):
        e[2 + k, i, j] = e[2 + k, j, i] = np.sqrt(0.5)
    return e


def case(backend, rng, rows, columns, real, shape=(N, M)):
    """A random matrix with empty rows, on the host in FP64 and on the backend."""
    graph = random_array(shape, density=0.03, rng=rng, format="csr")
    graph = (graph * (rng.random((shape[0], 1)) > 0.1)).tocsr()
    data = rng.standard_normal((graph.nnz, rows, columns)).astype(real)
    sizes = shape[0] * rows, shape[1] * columns
    arrays = data.astype(np.float64), graph.indices, graph.indptr
    host = bsr_array(arrays, shape=sizes)
    return host, backend.blocks(graph.indptr, graph.indices, data, shape[1])


def vector(rng, n, size, real):
    return rng.standard_normal((n, size, 4)).astype(real)


def dense(a, x):
    return (a @ x.astype(np.float64).reshape(-1, 4)).reshape(-1, 4)


class Suite:
    """A distorted box on a backend, and how arrays are compared."""

    @pytest.fixture(autouse=True)
    def _case(self, shaken_box, backend):
        s = shaken_box
        self.backend = backend
        self.space = space = Space.build(s.mesh, s.fixed)
        order = space.element_order
        self.lam, self.mu = s.lam[order], s.mu[order]
        arrays = (space.elements, space.gradients, space.volume)
        self.tets = Tets(*(backend.asarray(a) for a in arrays))
        self.rng = np.random.default_rng()
        self.n, self.n_node = len(space.volume), space.n_node
        self.shapes = vertex_shapes(space.gradients)
        self.mass = (np.ones((4, 4)) + np.eye(4)) / 20.0
        self.box = shaken_box

    def device(self, *arrays):
        return [self.backend.asarray(a) for a in arrays]

    def random(self, *shape):
        return self.rng.standard_normal(shape)

    def close(self, found, expected, digits=1e-13):
        size = np.abs(expected).max()
        np.testing.assert_allclose(
            self.backend.to_host(found), expected, atol=digits * size, rtol=0
        )


class VectorOpsSuite(Suite):
    def vectors(self, count, real=np.float64):
        return [self.random(self.n_node, 3, 4).astype(real) for _ in range(count)]

    @pytest.mark.parametrize("real", [np.float32, np.float64])
    def test_inner_products_are_summed_in_double(self, real):
        a, b = self.vectors(2, real)
        wide = a.astype(np.float64) * b
        scale = np.abs(wide).sum(axis=(0, 1))
        on_device = self.device(a, b)
        found = self.backend.dot(*on_device)
        assert found.dtype == np.float64
        assert (np.abs(found - wide.sum(axis=(0, 1))) < 1e-14 * scale).all()
        parts = self.backend.to_host(self.backend.partial_dot(*on_device))
        assert (np.abs(parts.sum(axis=0) - found) < 1e-14 * scale).all()

    def test_updates_are_lane_by_lane(self):
        x, y = self.vectors(2)
        factor = np.array([1.0, 2.0, -3.0, 0.5])
        for name, expected in (("axpy", y + factor * x), ("xpay", x + factor * y)):
            xd, yd = self.device(x, y.copy())
            both = (yd, factor, xd) if name == "axpy" else (xd, factor, yd)
            getattr(self.backend, name)(*both)
            self.close(yd, expected)
        (xd,) = self.device(x)
        single = self.backend.asarray(np.empty(x.shape, np.float32))
        self.backend.scale_into(xd, factor, single)
        found = self.backend.to_host(single)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, factor * x, rtol=1e-6)

    def test_a_blend_has_weights_by_part_and_lane(self):
        past = np.stack(self.vectors(3))
        part = self.rng.integers(0, 5, self.n_node).astype(np.int32)
        weights, start = self.random(3, 5, 4), self.random(self.n_node, 3, 4)
        arrays = self.device(past, part, weights, start.copy())
        self.backend.blend(*arrays)
        each = weights[:, part][:, :, None, :]
        self.close(arrays[3], start + (each * past).sum(axis=0))


class BlockOpsSuite(Suite):
    @pytest.mark.parametrize(
        ("real", "error"), [(np.float32, 3e-6), (np.float64, 1e-14)]
    )
    @pytest.mark.parametrize("sizes", [(3, 3), (3, 6), (6, 3), (6, 6)])
    def test_products_are_those_of_scipy(self, sizes, real, error):
        rows, columns = sizes
        a, matrix = case(self.backend, self.rng, rows, columns, real)
        x, b = vector(self.rng, M, columns, real), vector(self.rng, N, rows, real)
        exact = dense(a, x)
        products = {"multiply": exact, "residual": b.reshape(-1, 4) - exact}
        products["add_product"] = b.reshape(-1, 4) + exact
        for name, expected in products.items():
            start = b.copy() if name == "add_product" else np.full_like(b, np.nan)
            xd, bd, out = self.device(x, b, start)
            first = (bd,) if name == "residual" else ()
            getattr(self.backend, name)(matrix, *first, xd, out)
            found = self.backend.to_host(out).reshape(-1, 4)
            assert np.abs(found - expected).max() < error * np.abs(exact).max()

    @pytest.mark.parametrize("size", [3, 6])
    def test_a_smoothing_step_is_its_formula(self, size):
        a, matrix = case(self.backend, self.rng, size, size, np.float32, (N, N))
        inverse = self.random(N, size, size).astype(np.float32)
        x, b = (vector(self.rng, N, size, np.float32) for _ in range(2))
        di, db, dx, out = self.device(inverse, b, x, np.full_like(x, np.nan))
        self.backend.relax(matrix, di, db, dx, 0.3, out)
        residual = b - dense(a, x).reshape(b.shape)
        expected = x + 0.3 * np.einsum("nij,njl->nil", inverse, residual)
        found = self.backend.to_host(out)
        assert np.abs(found - expected).max() < 3e-6 * np.abs(expected).max()
        self.backend.scale_blocks(di, db, 0.3, out)
        scaled = 0.3 * np.einsum("nij,njl->nil", inverse, b)
        found = self.backend.to_host(out)
        assert np.abs(found - scaled).max() < 3e-6 * np.abs(scaled).max()

    @pytest.mark.parametrize(("add", "entries"), [(0, 9), (1, 9), (0, 2), (1, 2)])
    def test_a_transfer_weighs_nodes_and_masks_components(self, add, entries):
        # rows of one entry up to so many
        rows = np.repeat(np.arange(N), 1 + np.arange(N) % entries)
        places = rows, (7 * np.arange(len(rows))) % M
        graph = csr_array((self.rng.random(len(rows)), places), (N, M))
        real = np.float32
        arrays = graph.indptr, graph.indices, graph.data.astype(real)
        matrix = self.backend.weights(*arrays, M)
        mask = (self.rng.random((N, 3)) < 0.8).astype(real)
        x, start = vector(self.rng, M, 3, real), vector(self.rng, N, 3, real)
        md, xd, out = self.device(mask, x, start.copy())
        self.backend.transfer(matrix, md, xd, out, bool(add))
        moved = (graph @ x.reshape(M, 12)).reshape(N, 3, 4)
        expected = mask[:, :, None] * moved + add * start
        np.testing.assert_allclose(self.backend.to_host(out), expected, atol=1e-5)

    def test_a_descent_moves_by_the_ratio_and_a_broken_lane_not_at_all(self):
        n, real = self.n_node, np.float32
        p, q, x, e = (self.random(n, 3, 4).astype(real) for _ in range(4))
        q[..., 2] = -p[..., 2]
        inverse = self.random(n, 3, 3).astype(real)
        q[..., 0] = p[..., 0] + 0.1 * q[..., 0]
        rho = np.array([1.0, 2.0, 3.0, 4.0])
        curvature = (p.astype(np.float64) * q).sum(axis=(0, 1))
        arrays = self.device(p, q, x.copy(), e.copy(), np.empty_like(x))
        partial = self.backend.partial_dot(arrays[0], arrays[1])
        (di,) = self.device(inverse)
        found = self.backend.descend(di, rho, partial, *arrays)
        ok = curvature > 0.0
        assert not ok[2]
        a = np.where(ok, rho / np.where(ok, curvature, 1.0), 0.0)
        z = np.einsum("nij,njl->nil", inverse, e - a * q)
        moved = [self.backend.to_host(v) for v in arrays[2:]]
        left = e - a * q
        for one, expected in zip(moved, (x + a * p, left, z), strict=True):
            scale = np.abs(expected).max()
            np.testing.assert_allclose(one, expected, atol=1e-4 * scale)
        for one, product in zip(found, (left * z, left * left), strict=True):
            scale = np.abs(product).sum(axis=(0, 1))
            assert (np.abs(one - product.sum(axis=(0, 1))) < 1e-4 * scale).all()


class ElasticOpsSuite(Suite):
    def test_numbering_is_a_permutation_where_there_is_one(self):
        mesh = self.box.mesh
        found = self.backend.numbering(mesh.nodes, mesh.elements)
        if found is not None:
            for order, values in zip(found, (mesh.nodes, mesh.elements), strict=True):
                assert np.array_equal(np.sort(order), np.arange(len(values)))

    def test_stiffness_acts_as_the_elements_do(self):
        real = np.float64
        k = Elasticity(self.backend, self.space, self.tets, self.lam, self.mu)
        free = self.backend.to_host(k.free).reshape(self.n_node, 3, 1)
        u = free * self.random(self.n_node, 3, 4)
        lam, mu, ud = self.device(self.lam, self.mu, u)
        out = self.backend.asarray(np.empty(u.shape, real))
        k.apply(ud, out)
        forces = self.backend.elastic_forces(self.tets, lam, mu, ud)
        self.close(out, free * self.backend.to_host(forces))
        # by the gradients of the shapes, with no kernel
        h = np.einsum("evax,eacl->evcxl", self.shapes, u[self.space.elements])
        stress = self.mu[:, None, None, None, None] * (h + h.swapaxes(2, 3))
        spur = np.einsum("evccl->evl", h)
        stress += np.einsum("e,evl,cx->evcxl", self.lam, spur, np.eye(3))
        sums = ("e,vw,ewcxl,evax->eacl", self.space.volume, self.mass, stress)
        local = np.einsum(*sums, self.shapes, optimize=True)
        expected = np.zeros_like(u)
        np.add.at(expected, self.space.elements, local)
        self.close(forces, expected)


class CreepOpsSuite(Suite):
    def strain_of(self, local, which=slice(None)):
        h = np.einsum("evax,eacl->evcxl", self.shapes[which], local)
        return np.einsum("kcx,evcxl->evkl", deviatoric_basis(), h)

    def test_strain_is_that_of_the_shapes(self):
        u = self.random(self.n_node, 3, 4)
        out = self.backend.asarray(np.full((self.n, 4, 5, 4), np.nan))
        self.backend.strain(self.tets, self.backend.asarray(u), out)
        self.close(out, self.strain_of(u[self.space.elements]))

    @pytest.mark.parametrize("real", [np.float32, np.float64])
    def test_blended_strain(self, real):
        u, state = self.random(self.n_node, 3, 4), self.random(self.n, 4, 5, 4)
        state = state.astype(real)
        keep, gain = self.random(2, self.n)
        expected = keep[:, None, None, None] * state.astype(np.float64)
        strain = self.strain_of(u[self.space.elements])
        expected += gain[:, None, None, None] * strain
        arrays = self.device(u, keep, state, gain)
        out = self.backend.asarray(np.full((self.n, 4, 5, 4), np.nan))
        self.backend.blend_strain(self.tets, *arrays, out)
        self.close(out, expected)
        if real == np.float64:
            self.backend.blend_strain(self.tets, *arrays, arrays[2])
            self.close(arrays[2], expected)

    @pytest.mark.parametrize("real", [np.float32, np.float64])
    def test_divergence_is_the_weighted_transpose(self, real):
        stress = self.random(self.n, 4, 5, 4).astype(real)
        factor = self.rng.random(self.n)
        weight = factor * self.space.volume
        local = np.einsum(
            "e,vw,kcx,ewkl,evax->eacl",
            weight,
            self.mass,
            deviatoric_basis(),
            stress.astype(np.float64),
            self.shapes,
            optimize=True,
        )
        expected = np.zeros((self.n_node, 3, 4))
        np.add.at(expected, self.space.elements, local)
        arrays = self.device(factor, stress)
        found = self.backend.divergence(self.tets, *arrays, self.n_node)
        self.close(found, expected)
        again = self.backend.divergence(self.tets, *arrays, self.n_node)
        np.testing.assert_array_equal(*map(self.backend.to_host, (found, again)))

    def test_offsets_load_and_strain_their_elements_only(self):
        which = np.arange(1, self.n, 3)
        offsets = self.random(len(which), 10, 3, 4)
        h = np.einsum("evax,eacl->evcxl", self.shapes[which], offsets)
        stress = self.mu[which, None, None, None, None] * (h + h.swapaxes(2, 3))
        spur = np.einsum("evccl->evl", h)
        stress += np.einsum("e,evl,cx->evcxl", self.lam[which], spur, np.eye(3))
        local = np.einsum(
            "e,vw,ewcxl,evax->eacl",
            self.space.volume[which],
            self.mass,
            stress,
            self.shapes[which],
            optimize=True,
        )
        expected = np.zeros((self.n_node, 3, 4))
        np.add.at(expected, self.space.elements[which], -local)
        at, values, lam, mu = self.device(which, offsets, self.lam, self.mu)
        found = self.backend.offset_forces(self.tets, at, lam, mu, values, self.n_node)
        self.close(found, expected)
        start = self.random(self.n, 4, 5, 4)
        out = self.backend.asarray(start.copy())
        self.backend.add_offset_strain(self.tets, at, values, out)
        start[which] += self.strain_of(offsets, which)
        self.close(out, start)

    @pytest.mark.parametrize("real", [np.float32, np.float64])
    def test_energies_and_sums_over_a_basis(self, real):
        # more vectors than one pass of a device takes
        count, shape = 11, (self.n, 4, 5, 4)
        basis = [self.random(*shape).astype(real) for _ in range(count)]
        r, energy = self.random(*shape), self.rng.random(self.n)
        wide = np.array(basis, dtype=np.float64)
        weighted = np.einsum("e,vw,ewkl->evkl", energy, np.ones((4, 4)) + np.eye(4), r)
        on_device = self.device(*basis)
        rd, ed = self.device(r.copy(), energy)
        found = self.backend.energy_dots(ed, on_device, rd)
        self.close(found, np.einsum("jevkl,evkl->jl", wide, weighted))
        found = self.backend.dots(on_device, rd)
        self.close(found, np.einsum("jevkl,evkl->jl", wide, r))
        factors = self.random(count, 4)
        self.backend.combine(rd, factors, on_device)
        self.close(rd, r + np.einsum("jl,jevkl->evkl", factors, wide))


class BackendSuite(VectorOpsSuite, BlockOpsSuite, ElasticOpsSuite, CreepOpsSuite):
    """All of it."""


class TestOnOneThread(BackendSuite):
    @pytest.fixture
    def backend(self):
        return backends.get("cpu", threads=1)


class TestOnTwoThreads(BackendSuite):
    @pytest.fixture
    def backend(self):
        return backends.get("cpu", threads=2)


def rank_of(inner, shaken_box):
    """The backend of a rank that has the whole box to itself."""
    s = shaken_box
    none = np.empty(0, dtype=np.int64)
    materials = Materials(s.lam, s.mu, np.ones_like(s.mu), np.full_like(s.mu, np.inf))
    trace = Surface(none, none.reshape(0, 6))
    model = Model(s.mesh, materials, s.fixed, trace, {}, {})
    (part,) = split(model, np.zeros(len(s.mesh.elements), dtype=np.int64))
    made = RankBackend(inner, ThreadCommunicator(Meeting(1), 0), part)
    made.share(made.numbering(s.mesh.nodes, s.mesh.elements)[0])
    return made


class TestOnARank(BackendSuite):
    @pytest.fixture
    def backend(self, shaken_box):
        return rank_of(backends.get("cpu", threads=1), shaken_box)


@pytest.mark.gpu
class TestOnTheGpu(BackendSuite):
    @pytest.fixture(params=[0, N])
    def backend(self, request, monkeypatch):
        at = "afterslip_solver.backend.cuda.sliced_matrix._SHARED"
        monkeypatch.setattr(at, request.param)
        return backends.get("gpu")


@pytest.mark.gpu
class TestOnARankOfTheGpu(BackendSuite):
    @pytest.fixture
    def backend(self, shaken_box):
        return rank_of(backends.get("gpu"), shaken_box)


@pytest.mark.parametrize("name", ["cpu", pytest.param("gpu", marks=pytest.mark.gpu)])
def test_a_backend_has_what_its_capabilities_say(name, shaken_box):
    one = backends.get(name)
    methods = {
        "local_rows": ("stiffness_rows", "relax_rows"),
        "device_iteration": ("iteration",),
    }
    for backend in (one, rank_of(one, shaken_box)):
        for capability, names in methods.items():
            if getattr(backend.capabilities, capability):
                assert all(callable(getattr(backend, n, None)) for n in names)
    assert one.capabilities.local_rows
    assert callable(one.add_product)
    assert rank_of(one, shaken_box).capabilities.device_iteration == (name == "gpu")
