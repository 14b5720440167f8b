"""Stepping: order, predictors, what is recorded and how errors stay bounded."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from afterslip_common.terms import YEAR
from afterslip_solver.greens import evaluate_curve, prepare
from afterslip_solver.greens.exponential_step import softened_modulus
from afterslip_solver.greens.predictor import Galerkin
from afterslip_solver.greens.time_plan import recorded_steps
from afterslip_solver.model import SolverSettings
from afterslip_solver.multigrid import build


def stepping(until, count, **changes):
    return SolverSettings(
        times=(0.0, 0.5 * until, until),
        until=until,
        integrator="stepping",
        step=until / count,
        **changes,
    )


def solved(model, slip, settings):
    return prepare(model, settings, "cpu").solve(slip, model.surface.nodes)


@pytest.fixture
def case(small):
    model = small.box_model((4, 4, 4))
    return model, small.patch_slip(model.faults["main"])


def test_error_falls_with_the_square_of_the_step(case):
    model, slip = case
    until = 4.0 * YEAR
    exact = replace(
        stepping(until, 4, tolerance=1e-10), integrator="spectral", time_tolerance=1e-8
    )
    times = np.array(exact.times)
    expected = evaluate_curve(solved(model, slip, exact), times)
    errors = []
    for count in (4, 8, 16):
        result = solved(model, slip, stepping(until, count, tolerance=1e-10))
        errors.append(np.abs(evaluate_curve(result, times) - expected).max())
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert (np.abs(orders - 2.0) < 0.15).all()


def test_huge_steps_stay_bounded(case):
    model, slip = case
    result = solved(model, slip, stepping(1e4 * YEAR, 10))
    assert result.outcome == "converged"
    assert np.abs(result.response).max() < 3.0


def test_predictors_change_the_work_but_not_the_answer(case):
    model, slip = case
    results = {
        name: solved(model, slip, stepping(YEAR / 12, 20, predictor=name))
        for name in ("none", "adams_bashforth", "galerkin")
    }
    work = {name: r.iterations for name, r in results.items()}
    assert work["galerkin"] < work["adams_bashforth"] < work["none"]
    reference = results["none"].response
    change = np.abs(reference - reference[:, :1]).max()
    for r in results.values():
        assert r.outcome == "converged"
        assert (r.residual <= 1e-8).all()
        assert np.abs(r.response - reference).max() < 1e-6 * change


def test_unbalanced_remainders_do_not_pile_up(case):
    model, slip = case

    def moved(tolerance):
        settings = stepping(YEAR, 60, predictor="none", tolerance=tolerance)
        response = solved(model, slip, settings).response
        return response[:, -1] - response[:, 0]

    exact = moved(1e-10)
    # one solve leaves seven times its tolerance; sixty, not balanced, leave twelve
    assert np.abs(moved(1e-4) - exact).max() < 9e-4 * np.abs(exact).max()


def test_galerkin_finds_what_lies_in_its_span(small, shaken_box):
    s = shaken_box
    k = small.elasticity(s.mesh, s.fixed, s.lam, s.mu)
    rng = np.random.default_rng(0)
    predictor = Galerkin(k)
    past = [rng.standard_normal(k.shape) * k.free for _ in range(3)]
    for increment in past:
        predictor.learn(increment)
    wanted = past[0] - 2.0 * past[1] + 0.3 * past[2]
    f = np.empty_like(wanted)
    k.apply(wanted, f)
    np.testing.assert_allclose(predictor.guess(f), wanted, atol=1e-10)
    # an increment that is already known adds nothing
    predictor.learn(wanted)
    np.testing.assert_allclose(predictor.guess(f), wanted, atol=1e-10)
    assert build(k).bytes > 0


def test_idle_lanes_stay_zero(case):
    model, slip = case
    slip[:, :, 1] = 0.0
    result = solved(model, slip, stepping(YEAR, 6))
    assert result.outcome == "converged"
    assert np.abs(result.response[1]).max() == 0.0


def test_output_times_are_recorded_exactly(case):
    model, slip = case
    until = 2.0 * YEAR
    result = solved(model, slip, stepping(until, 8))
    np.testing.assert_allclose(result.step_times, until / 8 * np.arange(9))
    assert result.response.shape[1] == 9
    at = evaluate_curve(result, np.array([until / 2]))
    np.testing.assert_allclose(at[:, 0], result.response[:, 4], rtol=1e-12)


def test_recorded_steps_bracket_output_times_and_keep_the_limit():
    steps = recorded_steps(np.array([0.0, 10.5, 300.0]), 1.0, 1000, 12)
    assert {0, 10, 11, 300, 1000} <= set(steps)
    assert len(steps) == 12
    assert steps == sorted(set(steps))
    assert recorded_steps(np.array([5.0]), 1.0, 5, 50) == [0, 1, 2, 3, 4, 5]


def test_softened_modulus_has_its_limits():
    mu = np.array([3e10, 3e10, 3e10])
    found = softened_modulus(mu, np.array([0.0, 1e-9, 1.0]), 100.0)
    np.testing.assert_allclose(found[:2], mu[:2] * [1.0, 1.0 - 5e-8], rtol=1e-12)
    np.testing.assert_allclose(found[2], 3e10 / 100.0, rtol=1e-12)
