"""What a run says of its error covers the error that it has."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from afterslip_common.terms import YEAR
from afterslip_solver.greens import accuracy, evaluate_curve, prepare
from afterslip_solver.model import SolverSettings


def burgers(model, modulus, viscosity, every):
    m = model.materials
    has = np.isfinite(m.viscosity) & (np.arange(len(m.mu)) % every == 0)
    materials = replace(
        m,
        kelvin_modulus=np.where(has, modulus, np.inf),
        kelvin_viscosity=np.where(has, viscosity, np.inf),
    )
    return replace(model, materials=materials)


def hardly_compressible(model):
    m = model.materials
    return replace(model, materials=replace(m, lam=99.0 * m.mu))  # nu = 0.495


def flat(model):
    nodes = model.mesh.nodes * np.array([1.0, 1.0, 0.05])
    return replace(model, mesh=replace(model.mesh, nodes=nodes))


@pytest.fixture
def body(small, request):
    """Model, slip and length of a curve."""
    plain = small.box_model((4, 4, 4))
    contrast = small.box_model((4, 4, 4), viscosity=(1e20, 1e17))
    found = {
        "maxwell": (plain, 5 * YEAR),
        "short": (plain, YEAR / 12),
        "contrast": (contrast, 0.3 * YEAR),
        "burgers": (burgers(plain, 2e10, 1e18, 2), 3 * YEAR),
        # a Kelvin element much faster than the Maxwell one: two clusters of rates
        "two clusters": (burgers(plain, 2e11, 1e17, 1), 0.5 * YEAR),
        # preconditioners that need several times the iterations
        "incompressible": (hardly_compressible(plain), 3 * YEAR),
        "flat": (flat(plain), 3 * YEAR),
    }[request.param]
    model, until = found
    return model, small.patch_slip(model.faults["main"]), until


def bodies(*slow):
    names = [pytest.param(name, marks=pytest.mark.slow) for name in slow]
    return pytest.mark.parametrize(
        "body", ["short", "two clusters", *names], indirect=True
    )


SLOW = ("maxwell", "contrast", "burgers", "incompressible")
BODIES = bodies(*SLOW)


def moved(result, times):
    curve = evaluate_curve(result, times)
    return curve - curve[:, :1]


def error(found, exact):
    """Per lane, over the largest change."""
    largest = np.abs(exact).max(axis=(1, 2, 3))
    return np.abs(found - exact).max(axis=(1, 2, 3)) / largest


def settings_of(until, **changes):
    times = until * np.array([0.0, 0.1, 0.3, 0.6, 1.0])
    return SolverSettings(times=tuple(times), until=until, max_modes=200, **changes)


def solved(model, slip, settings):
    result = prepare(model, settings, "cpu").solve(slip, model.surface.nodes)
    assert result.outcome == "converged"
    return result


@BODIES
@pytest.mark.parametrize("scheme", ["polynomial", "shift_invert"])
def test_bound_covers_what_missing_modes_leave_out(body, scheme):
    model, slip, until = body
    tight = settings_of(until, scheme=scheme, time_tolerance=1e-10, tolerance=1e-12)
    result = solved(model, slip, tight)
    times = np.array(tight.times)
    exact = moved(result, times)
    compared = 0
    for m in range(1 if scheme == "polynomial" else 2, result.mode_count.min() - 1):
        true = error(moved(replace(result, mode_count=np.full(4, m + 1)), times), exact)
        for lane in np.flatnonzero(true > 1e-8):
            curve = (
                result.recurrence[lane, 1 : m + 1],
                float(result.start_norm[lane]),
                float(result.shift[lane]),
                times[1:],
            )
            response = result.response[lane, 1 : m + 1].reshape(m, -1)
            sizes = np.abs(accuracy.probe_weights(*curve) @ response).max(axis=1)
            bound = accuracy.truncation(*curve, sizes)
            compared += 1
            assert true[lane] < bound < 1000.0 * true[lane]
    assert compared >= 8


@pytest.mark.parametrize("shift", [0.0, 0.7])
def test_bounds_of_several_curves_are_those_of_each(shift):
    rng = np.random.default_rng(5)
    pairs, norms = rng.uniform(0.1, 0.9, (3, 4, 2)), rng.uniform(1.0, 9.0, 3)
    sizes, times = rng.uniform(1.0, 9.0, (3, 3)), np.array([0.1, 2.0, 5.0])
    # one has all its modes, one does not move
    pairs[1, -1, 1] = sizes[0, 2] = 0.0
    together = pairs, norms, shift, times
    probes = accuracy.probe_weights(*together)
    bounds = accuracy.truncation(*together, sizes)
    assert bounds[0] > 0.0
    assert not bounds[1:].any()
    for k in range(3):
        alone = pairs[k], norms[k], shift, times
        np.testing.assert_allclose(probes[k], accuracy.probe_weights(*alone))
        np.testing.assert_allclose(
            bounds[k], accuracy.truncation(*alone, sizes[:, k]), rtol=1e-13
        )


@bodies(*SLOW, "flat")
@pytest.mark.parametrize("scheme", ["polynomial", "shift_invert"])
def test_inexact_solves_stay_below_the_tolerance(body, scheme):
    model, slip, until = body
    tight = settings_of(until, scheme=scheme, time_tolerance=1e-10, tolerance=1e-12)
    times = np.array(tight.times)
    exact = moved(solved(model, slip, tight), times)
    for tolerance in (1e-3, 1e-5):
        settings = replace(tight, time_tolerance=tolerance, tolerance=1e-8)
        result = solved(model, slip, settings)
        true = error(moved(result, times), exact)
        assert (true < result.time_error).all()
        assert (result.time_error < tolerance).all()
        # the last solves need a part of the first one's iterations
        counts = [entry["iterations"] for entry in result.history]
        assert counts[-1] <= 0.7 * counts[0]


@BODIES
@pytest.mark.parametrize("scheme", ["polynomial", "shift_invert"])
def test_default_tolerances_keep_the_promise(body, scheme):
    model, slip, until = body
    result = solved(model, slip, settings_of(until, scheme=scheme))
    assert (result.time_error < 1e-6).all()


def test_relaxed_solves_save_iterations(small, monkeypatch):
    model = small.box_model((4, 4, 4))
    slip = small.patch_slip(model.faults["main"])
    settings = settings_of(YEAR, scheme="polynomial", time_tolerance=1e-6)
    relaxed = solved(model, slip, settings)
    monkeypatch.setattr(accuracy, "_SOLVES", 0.0)
    exact = solved(model, slip, settings)
    assert relaxed.solves == exact.solves
    assert relaxed.iterations < 0.85 * exact.iterations


@BODIES
def test_rounding_the_basis_to_fp32_keeps_its_promise(body, monkeypatch):
    model, slip, until = body
    settings = settings_of(until, scheme="polynomial", tolerance=1e-12)
    times = np.array(settings.times)
    monkeypatch.setattr(accuracy, "_SOLVES", 0.0)
    monkeypatch.setattr(accuracy, "narrow_basis", lambda tolerance, span: True)
    narrow = solved(model, slip, settings)
    monkeypatch.setattr(accuracy, "narrow_basis", lambda tolerance, span: False)
    wide = solved(model, slip, settings)
    # without the room that FP32 needs a curve may stop a mode earlier
    count = np.minimum(narrow.mode_count, wide.mode_count)
    narrow, wide = (replace(found, mode_count=count) for found in (narrow, wide))
    off = error(moved(narrow, times), moved(wide, times))
    said = [
        accuracy.rounding(
            narrow.recurrence[lane, 1 : narrow.mode_count[lane]],
            float(narrow.start_norm[lane]),
            0.0,
            times[1:],
        )
        for lane in range(4)
    ]
    assert (off > 0.0).all()
    assert (off < said).all()
    assert max(said) < 1e-6


@BODIES
@pytest.mark.parametrize("count", [2, 8, pytest.param(30, marks=pytest.mark.slow)])
def test_estimate_of_stepping_covers_its_error(body, count):
    model, slip, until = body
    times = until / count * np.arange(count + 1)
    exact = SolverSettings(
        times=tuple(times), until=until, time_tolerance=1e-9, tolerance=1e-11
    )
    expected = moved(solved(model, slip, exact), times)
    stepped = replace(exact, integrator="stepping", step=until / count)
    result = solved(model, slip, stepped)
    true = error(moved(result, times), expected)
    assert (true < result.time_error).all()
    assert (result.time_error < 150.0 * true).all()


def test_estimate_of_stepping_covers_times_between_steps(small):
    model = small.box_model((4, 4, 4))
    slip = small.patch_slip(model.faults["main"])
    settings = settings_of(3 * YEAR, time_tolerance=1e-9, tolerance=1e-11)
    times = np.array(settings.times)
    expected = moved(solved(model, slip, settings), times)
    stepped = replace(settings, integrator="stepping", step=YEAR / 2)
    result = solved(model, slip, stepped)
    true = error(moved(result, times), expected)
    assert (true < result.time_error).all()
    on_steps = replace(stepped, times=(0.0, YEAR, 3 * YEAR))
    assert (solved(model, slip, on_steps).time_error < result.time_error).all()


def test_defect_of_a_step_has_its_limits():
    x = np.array([1e-9, 1e-4, 2e-3, 1.0, 1e3])
    found = np.array([accuracy.step_defect(float(v)) for v in x])
    np.testing.assert_allclose(found[:3], x[:3] / 12.0, rtol=2e-3)
    # psi by quadrature: int_0^1 e^(-x (1 - s)) (s - 1/2) ds
    s = (np.arange(20000) + 0.5) / 20000
    psi = np.mean(np.exp(-(1.0 - s)) * (s - 0.5))
    np.testing.assert_allclose(found[3], psi / (1.0 - np.exp(-1.0)), rtol=1e-6)
    np.testing.assert_allclose(found[4], 0.5, rtol=3e-3)
