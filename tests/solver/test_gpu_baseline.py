"""The published algorithms give the CPU's numbers on a GPU."""

from __future__ import annotations

import numpy as np
import pytest

from afterslip_common.terms import YEAR
from afterslip_solver import backend as backends
from afterslip_solver.greens import prepare
from afterslip_solver.greens.dmd import DynamicModes
from afterslip_solver.krylov import pcg
from afterslip_solver.model import SolverSettings
from afterslip_solver.multigrid import build_three_level

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def gpu():
    return backends.get("gpu")


def test_step_of_inner_loops_agrees(small, gpu):
    rng = np.random.default_rng(5)
    inverse = rng.standard_normal((3001, 3, 3)).astype(np.float32)
    rho = np.array([1.0, 2.0, 0.5, 3.0])
    # the last lane has no curvature: nothing may move
    curvature = np.abs(rng.standard_normal((7, 4))) * [1.0, 2.0, 3.0, 0.0]
    vectors = [rng.standard_normal((3001, 3, 4)).astype(np.float32) for _ in range(5)]
    on_device = [gpu.asarray(v.copy()) for v in vectors]
    before = vectors[2].copy()
    expected = small.backend.descend(inverse, rho, curvature, *vectors)
    np.testing.assert_array_equal(vectors[2][:, :, 3], before[:, :, 3])
    found = gpu.descend(gpu.asarray(inverse), rho, gpu.asarray(curvature), *on_device)
    for a, b in zip(vectors, on_device, strict=True):
        np.testing.assert_allclose(gpu.to_host(b), a, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-2)


def test_three_levels_agree(small, shaken_box, gpu):
    s = shaken_box
    values, counts = [], []
    for backend in (small.backend, gpu):
        k = small.elasticity(s.mesh, s.fixed, s.lam, s.mu, backend)
        host = np.random.default_rng(1).standard_normal(k.shape)
        solver = build_three_level(k)
        result = pcg(k, solver, backend.asarray(host) * k.free, tolerance=1e-10)
        assert result.outcome == "converged"
        values.append(backend.to_host(result.values))
        counts.append([result.iterations, *solver.inner_iterations()])
    size = np.abs(values[0]).max()
    np.testing.assert_allclose(values[1], values[0], atol=1e-8 * size)
    # roundings decide when an inner loop ends
    np.testing.assert_allclose(counts[1], counts[0], rtol=0.2, atol=3)


def test_data_driven_guess_is_exact_for_a_recurrence(small, shaken_box, gpu):
    s = shaken_box
    k = small.elasticity(s.mesh, s.fixed, s.lam, s.mu, gpu)
    predictor = DynamicModes(k, unknowns=150)
    fields = np.random.default_rng(2).standard_normal((5, *k.shape))
    rates = np.linspace(0.5, 0.95, 5)
    steps = [np.einsum("k,kncl->ncl", rates**i, fields) for i in range(24)]
    for step in steps[:-1]:
        predictor.learn(gpu.asarray(step))
    guess = gpu.to_host(predictor.guess(None))
    # as on the CPU: rounding, amplified by the condition of five decaying modes
    assert np.abs(guess - steps[-1]).max() < 1e-9 * np.abs(fields).max()


@pytest.mark.parametrize(
    ("predictor", "preconditioner"),
    [
        ("dmd", "three_level"),
        ("four_steps", "multigrid"),
        ("four_steps", "three_level"),
    ],
)
def test_marches_agree(small, predictor, preconditioner):
    model = small.box_model()
    slip = small.patch_slip(model.faults["main"])[:, :, :2]
    responses = []
    for name, changes in (
        ("cpu", {}),
        ("gpu", {"predictor": predictor, "preconditioner": preconditioner}),
    ):
        settings = SolverSettings(
            times=(YEAR,),
            until=YEAR,
            integrator="stepping",
            step=YEAR / 24,
            tolerance=1e-10,
            **changes,
        )
        result = prepare(model, settings, name).solve(slip, model.surface.nodes)
        assert result.outcome == "converged"
        responses.append(result.response)
    size = np.abs(responses[0]).max()
    np.testing.assert_allclose(responses[1], responses[0], atol=1e-8 * size)
