"""Macro elements on the device give the CPU's numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from afterslip_solver import backend as backends
from afterslip_solver.backend.base import Tets
from afterslip_solver.backend.cuda import colouring
from afterslip_solver.krylov import pcg
from afterslip_solver.mesh.numbering import second_order
from afterslip_solver.mesh.refine import refine_uniformly
from afterslip_solver.multigrid import build
from afterslip_solver.operators import Elasticity, Space
from afterslip_solver.testing.box import box_mesh

pytestmark = pytest.mark.gpu
DESCENDANTS = 512


@pytest.fixture(scope="module")
def refined():
    """Twelve elements that were halved three times; a vertex in one was moved then."""
    box = box_mesh((1, 2, 1), (1.0, 1.5, 1.0))
    vertices = box.nodes[: box.n_vertex]
    rng = np.random.default_rng(0)
    mesh = second_order(vertices + 0.15 * rng.uniform(-1, 1, vertices.shape), box.cells)
    for _ in range(3):
        mesh, _, _ = refine_uniformly(mesh, {}, {})
    vertices = mesh.nodes[: mesh.n_vertex].copy()
    centre = mesh.nodes[mesh.cells[:DESCENDANTS]].mean(axis=(0, 1))
    vertices[np.linalg.norm(vertices - centre, axis=1).argmin()] += 0.005
    return second_order(vertices, mesh.cells)


@pytest.fixture(scope="module")
def moduli(refined):
    """One material in each of the twelve, but in one."""
    rng = np.random.default_rng(1)
    n = len(refined.elements) // DESCENDANTS
    lam, mu = (np.repeat(v, DESCENDANTS) for v in rng.uniform(1.0, 2.0, (2, n)))
    lam[3 * DESCENDANTS + 7] *= 1.5
    return lam, mu


@pytest.fixture(scope="module")
def space(refined):
    """Numbered by macro element, held below."""
    numbering = backends.get("gpu").numbering(refined.nodes, refined.elements)
    fixed = np.repeat(refined.nodes[:, 2:] < -0.8, 3, axis=1)
    return Space.build(refined, fixed, numbering)


def symmetric(rng, n):
    """Blocks (n, 3, 3) as those of a diagonal are."""
    a = rng.standard_normal((n, 3, 3))
    return a + a.swapaxes(1, 2)


def smoothed_forces(gpu, matrix, u):
    """K u as smoothing and its residuals find it, from FP32."""
    zero, v = gpu.asarray(np.zeros(u.shape), np.float32), gpu.asarray(u, np.float32)
    out = gpu.xp.full(u.shape, np.nan, dtype=np.float32)
    gpu.residual(matrix, zero, v, out)
    return -gpu.to_host(out)


def elasticity(backend, space, moduli):
    parts = (space.elements, space.gradients, space.volume)
    tets = Tets(*(backend.asarray(part) for part in parts))
    return Elasticity(backend, space, tets, *(m[space.element_order] for m in moduli))


# rounding in sums of some ten products
ROUNDING = {np.float16: 2e-3, np.float32: 5e-7, np.float64: 1e-13}


@pytest.mark.parametrize(
    ("real", "smoothing"),
    [
        (np.float32, np.float16),
        (np.float32, np.float32),
        (np.float64, np.float64),
    ],
)
@pytest.mark.parametrize("many", [0, 100], ids=["coloured", "at-once"])
def test_stencils_beside_elements_give_the_product(
    space, moduli, real, smoothing, many, monkeypatch
):
    monkeypatch.setattr(colouring, "MANY", many)
    rounding = ROUNDING[real]
    # where there is a GPU
    kind: Any = type(backends.get("gpu"))
    gpu, cpu = kind(half=smoothing is np.float16), backends.get("cpu")
    lam, mu = (values[space.element_order] for values in moduli)
    matrix = gpu.stiffness(space, lam, mu, real)
    operator = matrix.parts[0]
    # ten lattices; the others are done in blocks of elements
    assert operator.n_sums > 10
    rng = np.random.default_rng(2)
    free = ~space.fixed[:, :, None]
    u = (rng.standard_normal((space.n_node, 3, 4)) * free).astype(real)
    tets = Tets(space.elements, space.gradients, space.volume)
    exact = cpu.elastic_forces(tets, lam, mu, u.astype(np.float64)) * free
    b = rng.standard_normal(u.shape).astype(real)
    inverse = symmetric(rng, space.n_node).astype(real)
    v, f, d = gpu.asarray(u), gpu.asarray(b), gpu.asarray(inverse)
    out = gpu.xp.full(u.shape, np.nan, dtype=real)
    sums = gpu.xp.full((operator.n_sums, 4), np.nan)

    def off(expected):
        found = gpu.to_host(out)
        out[...] = np.nan
        return np.linalg.norm(found - expected) / np.linalg.norm(expected)

    operator.apply(v, out, sums)
    assert off(exact) < rounding
    dots = gpu.to_host(sums).sum(axis=0)
    np.testing.assert_allclose(dots, (u * exact).sum(axis=(0, 1)), rtol=2 * rounding)
    rounding = ROUNDING[smoothing]
    gpu.residual(matrix, f, v, out)
    assert off(b - exact) < rounding
    gpu.relax(matrix, d, f, v, 0.3, out)
    step = np.einsum("nij,njl->nil", inverse, b - exact)
    assert off(u + 0.3 * step) < rounding


@pytest.mark.parametrize(("size", "offset"), [(1e-25, 0.0), (1e25, 0.0), (1.0, 1e3)])
def test_smoothing_in_fp16_rounds_what_varies_in_a_macro_element(
    space, moduli, size, offset, monkeypatch
):
    monkeypatch.setattr(colouring, "MANY", 0)
    gpu, cpu = backends.get("gpu"), backends.get("cpu")
    lam, mu = (values[space.element_order] for values in moduli)
    matrix = gpu.stiffness(space, lam, mu, np.float32)
    rng = np.random.default_rng(4)
    # each lane is scaled by itself
    lanes = size * 1e-3 ** np.arange(4)
    u = lanes * rng.standard_normal((space.n_node, 3, 4)) + offset
    tets = Tets(space.elements, space.gradients, space.volume)
    exact = cpu.elastic_forces(tets, lam, mu, u) * ~space.fixed[:, :, None]
    off = np.linalg.norm(smoothed_forces(gpu, matrix, u) - exact, axis=(0, 1))
    # an offset is rounded in FP32
    allowed = 2e-3 + 1e-6 * offset / lanes
    assert (off < allowed * np.linalg.norm(exact, axis=(0, 1))).all()


@pytest.mark.parametrize("case", ["flat", "incompressible"])
def test_flat_or_incompressible_macro_elements_are_smoothed_in_fp32(
    refined, case, monkeypatch
):
    monkeypatch.setattr(colouring, "MANY", 0)
    gpu, cpu = backends.get("gpu"), backends.get("cpu")
    stretch = np.array([1.0, 1.0, 0.01 if case == "flat" else 1.0])
    mesh = second_order(refined.nodes[: refined.n_vertex] * stretch, refined.cells)
    numbering = gpu.numbering(mesh.nodes, mesh.elements)
    space = Space.build(mesh, np.zeros(mesh.nodes.shape, dtype=bool), numbering)
    mu = np.ones(len(mesh.elements))
    lam = mu if case == "flat" else 1e3 * mu
    matrix = gpu.stiffness(space, lam, mu, np.float32)
    u = np.random.default_rng(5).standard_normal((space.n_node, 3, 4))
    tets = Tets(space.elements, space.gradients, space.volume)
    exact = cpu.elastic_forces(tets, lam, mu, u)
    off = np.linalg.norm(smoothed_forces(gpu, matrix, u) - exact)
    assert off < ROUNDING[np.float32] * np.linalg.norm(exact)


def test_macro_elements_of_far_different_stiffness_are_smoothed_in_fp32(
    space, moduli, monkeypatch
):
    monkeypatch.setattr(colouring, "MANY", 0)
    gpu, cpu = backends.get("gpu"), backends.get("cpu")
    lam, mu = (values[space.element_order] for values in moduli)
    matrix = gpu.stiffness(space, lam, mu, np.float32)
    others = matrix.parts[0]._plan.others
    lam, mu = lam.copy(), mu.copy()
    soft = np.flatnonzero(others)[::2]
    lam[soft] *= 1e-5
    mu[soft] *= 1e-5
    matrix = gpu.stiffness(space, lam, mu, np.float32)
    u = np.random.default_rng(6).standard_normal((space.n_node, 3, 4))
    tets = Tets(space.elements, space.gradients, space.volume)
    exact = cpu.elastic_forces(tets, lam, mu, u) * ~space.fixed[:, :, None]
    alone = np.setdiff1d(space.elements[others], space.elements[~others])
    off = np.linalg.norm((smoothed_forces(gpu, matrix, u) - exact)[alone])
    assert off < ROUNDING[np.float32] * np.linalg.norm(exact[alone])


@pytest.mark.parametrize(
    "options", [{}, {"stencils": False}, {"repeatable": True}], ids=str
)
def test_a_smoothing_step_sums_its_result_times_the_right_side(
    space, moduli, options, monkeypatch
):
    monkeypatch.setattr(colouring, "MANY", 0)
    # where there is a GPU
    gpu = type(backends.get("gpu"))(**options)
    lam, mu = (values[space.element_order] for values in moduli)
    matrix = gpu.stiffness(space, lam, mu, np.float32)
    operator = matrix.parts[0]
    rng = np.random.default_rng(3)
    u = rng.standard_normal((space.n_node, 3, 4)) * ~space.fixed[:, :, None]
    b = rng.standard_normal(u.shape)
    inverse = symmetric(rng, space.n_node)
    v, f, d = (gpu.asarray(a.astype(np.float32)) for a in (u, b, inverse))
    plain, out = (gpu.xp.full(u.shape, np.nan, dtype=np.float32) for _ in range(2))
    sums = gpu.xp.full((operator.n_sums + operator.n_joined, 4), np.nan)
    gpu.relax(matrix, d, f, v, 0.3, plain)
    operator.relax_summed(d, f, v, 0.3, out, sums)
    found, expected = gpu.to_host(out), gpu.to_host(plain)
    assert np.linalg.norm(found - expected) < 1e-6 * np.linalg.norm(expected)
    # a node counts once wherever it is finished; rounding of sums with both signs
    each = found.astype(float) * gpu.to_host(f)
    allowed = 1e-6 * np.abs(each).sum(axis=(0, 1)).max()
    dots = gpu.to_host(sums).sum(axis=0)
    np.testing.assert_allclose(dots, each.sum(axis=(0, 1)), rtol=0, atol=allowed)


@pytest.mark.parametrize("precision", ["mixed", "double"])
def test_solves_by_stencils_take_the_iterations_of_the_cpu(
    space, moduli, precision, monkeypatch
):
    monkeypatch.setattr(colouring, "MANY", 0)
    values, counts = [], []
    for name in ("cpu", "gpu"):
        backend = backends.get(name)
        k = elasticity(backend, space, moduli)
        host = np.random.default_rng(1).standard_normal(k.shape)
        f = backend.asarray(host) * k.free
        result = pcg(k, build(k), f, tolerance=1e-10, precision=precision)
        assert result.outcome == "converged"
        values.append(backend.to_host(result.values))
        counts.append(result.iterations)
    size = np.abs(values[0]).max()
    np.testing.assert_allclose(values[1], values[0], atol=1e-8 * size)
    assert abs(counts[0] - counts[1]) <= 1
