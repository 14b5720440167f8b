"""The CUDA backend gives the CPU's numbers."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest
from scipy import sparse

from afterslip_common.terms import YEAR
from afterslip_solver import backend as backends
from afterslip_solver.greens import evaluate_curve, prepare
from afterslip_solver.krylov import pcg
from afterslip_solver.mesh.refine import refine_uniformly
from afterslip_solver.model import SolverSettings
from afterslip_solver.multigrid import build

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def gpu():
    return backends.get("gpu")


def test_kernels_agree(small, shaken_box, gpu):
    s = shaken_box
    cpu = small.elasticity(s.mesh, s.fixed, s.lam, s.mu)
    device = small.elasticity(s.mesh, s.fixed, s.lam, s.mu, gpu)
    rng = np.random.default_rng(0)
    u = rng.standard_normal(cpu.shape) * cpu.free
    f = np.empty_like(u)
    cpu.apply(u, f)
    v, g = gpu.asarray(u), gpu.xp.empty(u.shape)
    device.apply(v, g)
    np.testing.assert_allclose(gpu.to_host(g), f, atol=1e-12)
    remainder = device.check(v, gpu.asarray(f))
    assert np.abs(gpu.to_host(remainder)).max() < 1e-11
    np.testing.assert_allclose(gpu.dot(v, g), small.backend.dot(u, f), rtol=1e-12)
    factor = np.array([1.0, 2.0, -3.0, 0.5])
    for name in ("axpy", "xpay"):
        a, b = f.copy(), gpu.asarray(f.copy())
        if name == "axpy":
            small.backend.axpy(a, factor, u)
            gpu.axpy(b, factor, v)
        else:
            small.backend.xpay(u, factor, a)
            gpu.xpay(v, factor, b)
        np.testing.assert_allclose(gpu.to_host(b), a, atol=1e-12)


@pytest.mark.parametrize("precision", ["mixed", "double"])
@pytest.mark.parametrize("refined", [0, 2])
def test_cycle_and_solve_agree(small, shaken_box, gpu, refined, precision):
    s = shaken_box
    mesh, fixed = s.mesh, s.fixed
    for _ in range(refined):
        mesh, _, _ = refine_uniformly(mesh, {}, {})
        fixed = small.held_sides(mesh.nodes)
    lam, mu = (np.repeat(values, 8**refined) for values in (s.lam, s.mu))
    values, counts = [], []
    for backend in (small.backend, gpu):
        k = small.elasticity(mesh, fixed, lam, mu, backend)
        assert len(k.space.parents) == refined
        host = np.random.default_rng(1).standard_normal(k.shape)
        f = backend.asarray(host) * k.free
        result = pcg(k, build(k), f, tolerance=1e-10, precision=precision)
        assert result.outcome == "converged"
        assert (result.relative <= 1e-10).all()
        values.append(backend.to_host(result.values))
        counts.append(result.iterations)
    size = np.abs(values[0]).max()
    np.testing.assert_allclose(values[1], values[0], atol=1e-8 * size)
    assert abs(counts[0] - counts[1]) <= 1


@pytest.mark.parametrize(
    "changes",
    [
        {"scheme": "polynomial"},
        {"scheme": "shift_invert"},
        {"integrator": "stepping", "step": YEAR / 10},
        {"integrator": "stepping", "step": YEAR / 10, "predictor": "adams_bashforth"},
    ],
)
def test_curves_agree(small, changes):
    model = small.box_model()
    slip = small.patch_slip(model.faults["main"])
    times = (0.0, 0.5 * YEAR, YEAR)
    settings = SolverSettings(times=times, until=YEAR, tolerance=1e-10, **changes)
    curves = []
    for name in ("cpu", "gpu"):
        result = prepare(model, settings, name).solve(slip, model.surface.nodes)
        assert result.outcome == "converged"
        curves.append(evaluate_curve(result, np.array(times)))
    size = np.abs(curves[0]).max()
    np.testing.assert_allclose(curves[1], curves[0], atol=1e-8 * size)


def test_deterministic_products_repeat_to_the_last_bit(small, shaken_box):
    s = shaken_box
    device = backends.get("gpu", deterministic=True)
    k = small.elasticity(s.mesh, s.fixed, s.lam, s.mu, device)
    u = np.random.default_rng(0).standard_normal(k.shape) * device.to_host(k.free)
    cpu = small.elasticity(s.mesh, s.fixed, s.lam, s.mu)
    expected = np.empty_like(u)
    cpu.apply(u, expected)
    v = device.asarray(u)
    results = []
    for _ in range(3):
        out = device.xp.full(u.shape, np.nan)
        k.apply(v, out)
        results.append(device.to_host(out))
    np.testing.assert_allclose(results[0], expected, atol=1e-12)
    np.testing.assert_array_equal(results[1], results[0])
    np.testing.assert_array_equal(results[2], results[0])


@pytest.mark.parametrize("lanes", [8, 16])
@pytest.mark.parametrize("real", [np.float32, np.float64])
def test_more_lanes_give_the_numbers_of_four(small, shaken_box, gpu, lanes, real):
    s = shaken_box
    four = small.elasticity(s.mesh, s.fixed, s.lam, s.mu, gpu)
    lam, mu = four.moduli
    wide = gpu.wide_stiffness(four.space, lam, mu, real, lanes)
    free = gpu.to_host(four.free)
    u = np.random.default_rng(0).standard_normal((len(free), 3, lanes)) * free
    out = gpu.xp.full(u.shape, np.nan, dtype=real)
    wide.apply(gpu.asarray(u.astype(real)), out)
    for first in range(0, lanes, 4):
        part = gpu.asarray(np.ascontiguousarray(u[:, :, first : first + 4]))
        f = gpu.xp.empty(part.shape)
        four.apply(part, f)
        # rounding of FP32, relative to the largest force
        allowed = 1e-12 if real is np.float64 else 1e-5 * float(abs(f).max())
        found = gpu.to_host(out[:, :, first : first + 4])
        np.testing.assert_allclose(found, gpu.to_host(f), atol=allowed)


def test_failures_of_a_solve_on_the_device_are_outcomes(small, shaken_box, gpu):
    s = shaken_box
    good = small.elasticity(s.mesh, s.fixed, s.lam, s.mu, gpu)
    bad = small.elasticity(s.mesh, s.fixed, -s.lam, -s.mu, gpu)
    cycle = build(good)
    f = gpu.asarray(np.random.default_rng(1).standard_normal(good.shape)) * good.free
    assert pcg(bad, cycle, f).ending == "indefinite"
    assert pcg(good, cycle, f, max_iterations=2).ending == "not_converged"
    assert pcg(good, cycle, f, tolerance=1e-30).ending == "stagnated"
    f[3, 0, 1] = np.nan
    assert pcg(good, cycle, f).ending == "nan"


def test_an_iteration_that_is_begun_early_changes_nothing(
    small, shaken_box, monkeypatch
):
    from afterslip_solver.backend.cuda.iteration import GraphIteration

    s, gpu = shaken_box, backends.get("gpu", deterministic=True)
    k = small.elasticity(s.mesh, s.fixed, s.lam, s.mu, gpu)
    f = gpu.asarray(np.random.default_rng(3).standard_normal(k.shape)) * k.free
    begun = []
    step = GraphIteration.step

    def watched(iteration, look, ahead=False):
        begun.append(ahead)
        return step(iteration, look, ahead)

    monkeypatch.setattr(GraphIteration, "step", watched)
    early = pcg(k, build(k), f)
    assert 3 <= sum(begun) < len(begun) == early.iterations
    begun.clear()
    for name in ("pcg", "mixed"):
        module = import_module(f"afterslip_solver.krylov.{name}")
        monkeypatch.setattr(module, "AHEAD", np.inf)
    late = pcg(k, build(k), f)
    assert not any(begun)
    assert late.history == early.history
    assert np.array_equal(gpu.to_host(late.values), gpu.to_host(early.values))


class Third:
    """A criterion that has enough of the first lane after three iterations."""

    def begin(self, u, relative):
        self.calls = 0

    def look(self, u):
        self.calls += 1

    def progress(self):
        return np.array([3.0 if self.calls == 2 else np.inf, *[np.inf] * 3])

    def enough(self, relative, active):
        return np.array([self.calls >= 3, False, False, False])


@pytest.mark.parametrize("precision", ["mixed", "double"])
def test_lane_that_was_judged_stays_as_it_is(small, shaken_box, gpu, precision):
    s = shaken_box
    k = small.elasticity(s.mesh, s.fixed, s.lam, s.mu, gpu)
    cycle = build(k)
    f = gpu.asarray(np.random.default_rng(2).standard_normal(k.shape)) * k.free
    three = pcg(k, cycle, f, max_iterations=3, precision=precision)
    three = gpu.to_host(three.values)
    how = {"tolerance": 1e-10, "criterion": Third(), "precision": precision}
    result = pcg(k, cycle, f, **how)
    found = gpu.to_host(result.values)
    assert result.outcome == "converged"
    size = np.abs(three).max()
    # sums of products are added in any order
    apart = 1e-10 if precision == "double" else 1e-6
    np.testing.assert_allclose(found[..., 0], three[..., 0], atol=apart * size)
    assert (result.relative[1:] <= 1e-10).all()
    assert np.abs(found[..., 1:] - three[..., 1:]).max() > 1e-5 * size


def test_set_up_from_a_shelf_gives_the_same_iterations(small):
    model, cached = small.box_model(), {}

    class Memory:
        def get(self, name, make):
            if name not in cached:
                cached[name] = make()
            return cached[name]

        def find(self, name):
            return cached.get(name)

    slip = small.patch_slip(model.faults["main"])
    settings = SolverSettings(times=(0.0, YEAR), until=YEAR)
    nodes = model.surface.nodes
    first = prepare(model, settings, "gpu", Memory()).solve(slip, nodes)
    names = set(cached)
    assert {name.split("-")[0] for name in names} >= {"numbering", "plan", "levels"}
    second = prepare(model, settings, "gpu", Memory()).solve(slip, nodes)
    assert set(cached) == names
    size = np.abs(first.response).max()
    np.testing.assert_allclose(second.response, first.response, atol=1e-9 * size)
    assert abs(second.iterations - first.iterations) <= 1


@pytest.mark.parametrize("count", [(1 << 26) // 8, 2 * (1 << 26) // 8 + 12345])
def test_large_arrays_are_copied_to_the_device_whole(gpu, count):
    values = np.random.default_rng(0).random(count).reshape(-1, 1)
    copied, before = gpu.asarray(values), values.copy()
    # what the host holds may change at once
    values[:] = 0.0
    assert copied.flags.c_contiguous
    assert np.array_equal(gpu.to_host(copied), before)


@pytest.mark.parametrize("few", [True, False])
def test_products_and_smoothing_steps_of_matrices_in_fp16(small, gpu, few, monkeypatch):
    at = "afterslip_solver.backend.cuda.sliced_matrix._SHARED"
    monkeypatch.setattr(at, 300 if few else 0)
    rng = np.random.default_rng(3)
    pattern = sparse.random_array((300, 300), density=0.05, rng=rng)
    pattern = (pattern + pattern.T + sparse.eye_array(300)).tocsr()
    data = rng.standard_normal((pattern.nnz, 3, 3)).astype(np.float16)
    # of any size, and one that moves nothing
    inverse = rng.standard_normal((300, 3, 3)).astype(np.float32)
    inverse += inverse.swapaxes(1, 2)
    inverse *= (10.0 ** rng.integers(-6, 6, (300, 1, 1))).astype(np.float32)
    inverse[7] = 0.0
    x, b = rng.standard_normal((2, 300, 3, 4)).astype(np.float32)
    wide = pattern.indptr, pattern.indices, data.astype(np.float32)
    exact = small.backend.blocks(*wide, 300)
    rounded = gpu.blocks(pattern.indptr, pattern.indices, data, 300)
    there = [gpu.asarray(a) for a in (inverse, b, x)]
    out, found = np.empty_like(x), gpu.xp.empty(x.shape, dtype=np.float32)
    small.backend.residual(exact, b, x, out)
    gpu.residual(rounded, *there[1:], found)
    # the values are the same, so FP32 sums differ in order alone
    np.testing.assert_allclose(gpu.to_host(found), out, atol=2e-5)
    residual = np.abs(out).max(axis=(1, 2))
    small.backend.relax(exact, inverse, b, x, 0.5, out)
    gpu.relax(rounded, *there, 0.5, found)
    error = np.abs(gpu.to_host(found) - out).max(axis=(1, 2))
    # blocks of D^-1 have 11 bits of their largest number, and three columns
    change = 0.5 * 3.0 * np.abs(inverse).max(axis=(1, 2)) * residual
    assert (error <= 2.0**-11 * change + 1e-5).all()
    assert error[7] == 0.0
