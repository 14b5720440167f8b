"""Creep strain, its transpose, energies and bases of vectors, on every backend."""

from __future__ import annotations

import numpy as np
import pytest

from afterslip_solver import backend as backends
from afterslip_solver.backend.base import Tets
from afterslip_solver.model import TET_EDGES
from afterslip_solver.operators import Space


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


class CreepKernels:
    """What every backend must do; arrays are compared with einsum."""

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

    def strain_of(self, local, which=slice(None)):
        h = np.einsum("evax,eacl->evcxl", self.shapes[which], local)
        return np.einsum("kcx,evcxl->evkl", deviatoric_basis(), h)

    def device(self, *arrays):
        return [self.backend.asarray(a) for a in arrays]

    def random(self, *shape):
        return self.rng.standard_normal(shape)

    def close(self, found, expected, digits=1e-13):
        size = np.abs(expected).max()
        np.testing.assert_allclose(
            self.backend.to_host(found), expected, atol=digits * size, rtol=0
        )

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


class TestOnTheCpu(CreepKernels):
    @pytest.fixture
    def backend(self):
        return backends.get("cpu")


@pytest.mark.gpu
class TestOnTheGpu(CreepKernels):
    @pytest.fixture
    def backend(self):
        return backends.get("gpu")
