"""K u by the CPU's elements, in chunks and by several threads."""

from __future__ import annotations

import dataclasses
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from afterslip_solver import backend as backends
from afterslip_solver.backend.base import Tets
from afterslip_solver.backend.cpu import matrix_free
from afterslip_solver.operators import Space


@pytest.fixture(params=[16, 2048], ids=["chunks", "one chunk"])
def chunk(request, monkeypatch):
    monkeypatch.setattr(matrix_free, "CHUNK", request.param)


def without_the_last(space):
    """Return the space without its last element, whose nodes stay."""
    names = "elements", "cells", "gradients", "volume"
    return dataclasses.replace(space, **{n: getattr(space, n)[:-1] for n in names})


class Case:
    def __init__(self, box, count=None):
        space = Space.build(box.mesh, box.fixed)
        if count == "odd" and len(space.volume) % 2 == 0:
            space = without_the_last(space)
        n = len(space.volume)
        assert count is None or n % 2 == 1
        self.space = space
        order = space.element_order[:n]
        self.lam, self.mu = box.lam[order], box.mu[order]
        self.free = ~space.fixed[:, :, None]

    def stiffness(self, backend, real):
        return backend.stiffness(self.space, self.lam, self.mu, real)

    def forces(self, u):
        """K u by the kernel that takes one element at a time, in FP64."""
        s = self.space
        tets = Tets(s.elements, s.gradients, s.volume)
        u = u.astype(np.float64)
        found = backends.get("cpu").elastic_forces(tets, self.lam, self.mu, u)
        return self.free * found

    def vector(self, seed, real=np.float64):
        shape = (*self.space.fixed.shape, 4)
        return self.free * np.random.default_rng(seed).standard_normal(shape, real)


@pytest.mark.usefixtures("chunk")
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(
    ("real", "digits"), [(np.float32, 1e-6), (np.float64, 1e-14)], ids=["FP32", "FP64"]
)
def test_products_are_those_of_single_elements(shaken_box, real, digits, threads):
    case, device = Case(shaken_box, "odd"), backends.get("cpu", threads=threads)
    k = case.stiffness(device, real)
    u, b = case.vector(1, real), case.vector(2, real)
    rng = np.random.default_rng(3)
    # nothing that is fixed is coupled, as in the smoother's blocks
    couples = case.free & case.free.swapaxes(1, 2)
    inverse = couples * rng.standard_normal((len(u), 3, 3), real)
    ku = case.forces(u)
    expected = {
        "multiply": ((u,), ku),
        "residual": ((b, u), b - ku),
        "relax": ((inverse, b, u, 0.7), u + 0.7 * inverse @ (b - ku)),
    }
    for name, (arguments, right) in expected.items():
        # what is not written shows
        out = np.full_like(u, np.nan)
        getattr(device, name)(k, *arguments, out)
        size = np.abs(right).max()
        np.testing.assert_allclose(out, right, atol=digits * size, rtol=0)


def test_threads_and_products_side_by_side_do_not_change_a_bit(shaken_box, monkeypatch):
    monkeypatch.setattr(matrix_free, "CHUNK", 16)
    case, found = Case(shaken_box), []
    vectors = [case.vector(seed, np.float32) for seed in range(8)]
    for threads in (1, 2, 5):
        device = backends.get("cpu", threads=threads)
        k = case.stiffness(device, np.float32)

        def product(u, device=device, k=k):
            out = np.empty_like(u)
            for _ in range(20):
                device.multiply(k, u, out)
            return out

        with ThreadPoolExecutor(4) as several:
            found.append(np.array(list(several.map(product, vectors))))
    assert np.abs(found[0]).max() > 0.0
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


def test_a_shift_of_the_whole_body_has_no_forces(shaken_box):
    """Displacements are taken relative to one of an element: nothing is rounded."""
    case, device = Case(shaken_box), backends.get("cpu")
    k = case.stiffness(device, np.float32)
    u = np.full((*case.space.fixed.shape, 4), 1e6 / 3.0, dtype=np.float32)
    out = np.full_like(u, np.nan)
    device.multiply(k, u, out)
    assert not out.any()
