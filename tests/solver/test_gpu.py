"""The CUDA backend gives the CPU's numbers."""

from __future__ import annotations

import numpy as np
import pytest

from afterslip_solver import backend as backends
from afterslip_solver.greens import evaluate_curve, prepare
from afterslip_solver.krylov import pcg
from afterslip_solver.model import SolverSettings
from afterslip_solver.multigrid import build

pytestmark = pytest.mark.gpu
YEAR = 31557600.0


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


def test_cycle_and_solve_agree(small, shaken_box, gpu):
    s = shaken_box
    values, counts = [], []
    for backend in (small.backend, gpu):
        k = small.elasticity(s.mesh, s.fixed, s.lam, s.mu, backend)
        host = np.random.default_rng(1).standard_normal(k.shape)
        f = backend.asarray(host) * k.free
        result = pcg(k, build(k), f, tolerance=1e-10)
        assert result.outcome == "converged"
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
