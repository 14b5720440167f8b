"""Burgers bodies: closed forms, self-adjointness, both integrators, limits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.linalg import expm

from afterslip_common.terms import YEAR
from afterslip_solver.greens import evaluate_curve, prepare
from afterslip_solver.greens.exponential_step import chain_step
from afterslip_solver.krylov import pcg
from afterslip_solver.model import SolverSettings
from afterslip_solver.operators import Creep, ModelError, Resolvent
from afterslip_solver.reference import (
    burgers_compliance,
    burgers_shear_stress,
    layered_burgers_shear,
    layered_shear,
    shear_stress,
)
from afterslip_solver.rheology import burgers
from afterslip_solver.verification.relaxation import MU, TAU, VISCOSITY, layer_error

KELVIN = (1.5e10, 2e18)


def burgers_model(small, n=(4, 4, 4), modulus=2e10, viscosity=1e18):
    """Maxwell rock whose half y < 0 has a Kelvin element too."""
    model = small.box_model(n)
    mesh, m = model.mesh, model.materials
    has = mesh.nodes[mesh.cells].mean(axis=1)[:, 1] < 0
    has &= np.isfinite(m.viscosity)
    materials = replace(
        m,
        kelvin_modulus=np.where(has, modulus, np.inf),
        kelvin_viscosity=np.where(has, viscosity, np.inf),
    )
    return replace(model, materials=materials)


def curve_of(model, slip, until, **changes):
    changes = {"tolerance": 1e-10, "time_tolerance": 1e-8, **changes}
    times = until * np.array([0.0, 0.25, 0.5, 1.0])
    settings = SolverSettings(times=tuple(times), until=until, **changes)
    result = prepare(model, settings, "cpu").solve(slip, model.surface.nodes)
    assert result.outcome == "converged"
    return evaluate_curve(result, times)


def test_stress_relaxation_solves_the_rate_equations():
    mu, eta, (modulus, slow) = 3e10, 1e19, KELVIN
    times = np.array([0.0, 0.1, 0.5, 2.0, 8.0]) * eta / mu

    def rate(_, state):
        stress, strain = state
        delayed = (stress - modulus * strain) / slow
        return [-mu * (stress / eta + delayed), delayed]

    out = solve_ivp(
        rate, (0, times[-1]), [mu * 1e-6, 0.0], "LSODA", times, rtol=1e-11, atol=1e-18
    )
    exact = burgers_shear_stress(times, 1e-6, mu, eta, KELVIN)
    np.testing.assert_allclose(exact, out.y[0], rtol=1e-6)
    # 1 / (s J(s)) is the relaxation: convolved with the compliance it gives one
    fine = np.linspace(0.0, times[2], 4001)
    fall = np.diff(burgers_shear_stress(fine, 1.0, mu, eta, KELVIN))
    middle = 0.5 * (fine[1:] + fine[:-1])
    total = mu * burgers_compliance(fine[-1], mu, eta, KELVIN)
    total += fall @ burgers_compliance(fine[-1] - middle, mu, eta, KELVIN)
    assert total == pytest.approx(1.0, rel=1e-6)


def test_closed_forms_have_the_maxwell_limit():
    times = np.linspace(0.0, 5.0, 6) * TAU
    for kelvin in ((1e10, 1e29), (1e24, 1e18)):
        found = burgers_shear_stress(times, 1e-6, MU[1], VISCOSITY, kelvin)
        exact = shear_stress(times, 1e-6, MU[1], VISCOSITY)
        np.testing.assert_allclose(found, exact, rtol=1e-8)
        layers = (2e3, MU[0]), (4e3, MU[1], VISCOSITY)
        both = layered_burgers_shear(times, 1.0, layers[0], (*layers[1], *kelvin))
        expected = layered_shear(times, 1.0, *layers)
        np.testing.assert_allclose(both, expected, rtol=1e-8)


def test_local_step_is_the_matrix_exponential():
    rng = np.random.default_rng(0)
    own, delayed, back = 10.0 ** rng.uniform(-2, 2, (3, 20))
    change, mean = chain_step(own, delayed[:, None], back[:, None], 0.7)
    for k in range(20):
        m = np.array([[-own[k] - delayed[k], delayed[k]], [back[k], -back[k]]])
        big = np.zeros((4, 4))
        big[:2, :2], big[:2, 2:] = 0.7 * m, np.eye(2)
        e = expm(big)
        np.testing.assert_allclose(change[k], e[:2, :2] - np.eye(2), atol=1e-12)
        np.testing.assert_allclose(mean[k], e[:2, 2:], atol=1e-12)


def test_rate_operator_is_self_adjoint_and_not_negative(small):
    model = burgers_model(small)
    settings = SolverSettings(until=YEAR, scheme="polynomial")
    prepared = prepare(model, settings, "cpu")
    creep, elastic = prepared.relaxation.creep, prepared.elastic.system
    dot = small.backend.dot
    n_kelvin = creep.further_rows
    assert 0 < n_kelvin < len(creep.which)
    a, b = np.random.default_rng(0).standard_normal((2, *creep.shape))

    def apply(q):
        f = creep.divergence(2.0 * creep.mu, creep.total(q)) * elastic.operator.free
        u = pcg(elastic.operator, elastic.cycle, f, tolerance=1e-12).values
        return creep.relaxation(q, u)

    left, right = dot(apply(a), creep.weighted(b)), dot(a, creep.weighted(apply(b)))
    size = np.sqrt(dot(a, creep.weighted(a)) * dot(b, creep.weighted(b)))
    assert (np.abs(left - right) < 1e-10 * size * creep.fastest).all()
    # opposite strains of dashpot and Kelvin element: only the latter's spring acts
    n = len(creep.which)
    a[n_kelvin:n] = 0.0
    a[:n_kelvin] = -a[n:]
    for state in (a, b):
        energy, norm = (
            dot(state, creep.weighted(apply(state))),
            dot(state, creep.weighted(state)),
        )
        assert (energy > 0).all()
        assert (energy <= creep.fastest * norm * (1 + 1e-9)).all()


def test_resolvent_inverts_one_plus_shift_times_the_operator(small):
    model = burgers_model(small)
    shift = 0.3 * YEAR
    settings = SolverSettings(until=YEAR, scheme="polynomial")
    prepared = prepare(model, settings, "cpu")
    creep, elastic = prepared.relaxation.creep, prepared.elastic.system
    resolvent = Resolvent(creep, shift)
    softened = prepared.elastic.softened(creep.which, resolvent.softened)
    q = np.random.default_rng(1).standard_normal(creep.shape)
    f = resolvent.load(q) * elastic.operator.free
    w = pcg(softened.operator, softened.cycle, f, tolerance=1e-13).values
    state = resolvent.state(q.copy(), w)
    f = creep.divergence(2.0 * creep.mu, creep.total(state)) * elastic.operator.free
    u = pcg(elastic.operator, elastic.cycle, f, tolerance=1e-13).values
    # the softened solve is the elastic response of its result
    assert np.abs(u - w).max() < 1e-10 * np.abs(w).max()
    again = state + shift * creep.relaxation(state, u)
    np.testing.assert_allclose(again, q, atol=1e-9 * np.abs(q).max())


@pytest.mark.parametrize("scheme", ["polynomial", "shift_invert"])
def test_sheared_layers_follow_two_exponentials(scheme):
    settings = SolverSettings(
        times=(6.0 * TAU,),
        until=6.0 * TAU,
        scheme=scheme,
        tolerance=1e-10,
        time_tolerance=1e-9,
    )
    assert layer_error("shear", settings, KELVIN) < 1e-8


def test_stepping_approaches_the_spectral_curve_with_second_order(small):
    model = burgers_model(small)
    slip = small.patch_slip(model.faults["main"])
    until = 2.0 * YEAR
    exact = curve_of(model, slip, until)
    other = curve_of(model, slip, until, scheme="shift_invert")
    change = np.abs(exact - exact[:, :1]).max()
    assert np.abs(exact - other).max() < 1e-7 * change
    errors = []
    for count in (16, 32):
        found = curve_of(model, slip, until, integrator="stepping", step=until / count)
        errors.append(np.abs(found - exact).max() / change)
    assert errors[1] < 3e-3
    assert 1.8 < np.log2(errors[0] / errors[1]) < 2.2


@pytest.mark.parametrize("kelvin", [(2e10, 1e29), (1e22, 1e18)])
@pytest.mark.parametrize(
    "changes",
    [{"scheme": "shift_invert"}, {"integrator": "stepping", "step": YEAR / 8}],
)
def test_a_stiff_or_slow_kelvin_element_leaves_a_maxwell_body(small, kelvin, changes):
    model = burgers_model(small, modulus=kelvin[0], viscosity=kelvin[1])
    plain = replace(model.materials, kelvin_modulus=None, kelvin_viscosity=None)
    slip = small.patch_slip(model.faults["main"], 2)
    found = curve_of(model, slip, YEAR, **changes)
    expected = curve_of(replace(model, materials=plain), slip, YEAR, **changes)
    change = np.abs(expected - expected[:, :1]).max()
    assert np.abs(found - expected).max() < 1e-7 * change


def test_kelvin_elements_that_nothing_has_change_no_bit(small):
    model = small.box_model((4, 4, 4))
    none = np.full(len(model.mesh.elements), np.inf)
    empty = replace(model.materials, kelvin_modulus=none, kelvin_viscosity=none)
    slip = small.patch_slip(model.faults["main"])
    for changes in ({}, {"integrator": "stepping", "step": YEAR / 4}):
        curves = [
            curve_of(replace(model, materials=m), slip, YEAR, **changes)
            for m in (model.materials, empty)
        ]
        np.testing.assert_array_equal(*curves)


def test_shortest_relaxation_time_counts_the_kelvin_element(small):
    m = burgers_model(small).materials
    flows = np.isfinite(m.viscosity)
    assert np.isinf(m.relaxation_time[~flows]).all()
    shorter = m.relaxation_time[flows] < (m.viscosity / m.mu)[flows] * (1 - 1e-12)
    np.testing.assert_array_equal(shorter, np.isfinite(m.kelvin_modulus[flows]))
    k = int(np.flatnonzero(np.isfinite(m.kelvin_modulus))[0])
    a, b = m.mu[k] / m.viscosity[k], m.mu[k] / m.kelvin_viscosity[k]
    c = m.kelvin_modulus[k] / m.kelvin_viscosity[k]
    rates = -np.linalg.eigvals([[-a - b, b], [c, -c]])
    assert m.relaxation_time[k] == pytest.approx(1.0 / rates.max())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kelvin_modulus": None}, "or neither"),
        ({"kelvin_viscosity": 0.0}, "kelvin_viscosity that is not positive"),
        ({"viscosity": np.inf}, "no Maxwell viscosity"),
    ],
)
def test_half_a_kelvin_element_is_refused(small, change, message):
    model = burgers_model(small)
    n = len(model.mesh.elements)
    change = {k: v if v is None else np.full(n, v) for k, v in change.items()}
    bad = replace(model, materials=replace(model.materials, **change))
    with pytest.raises(ModelError, match=message):
        prepare(bad, SolverSettings(), "cpu")


def test_elements_with_a_kelvin_element_come_first(small, shaken_box):
    s = shaken_box
    k = small.elasticity(s.mesh, s.fixed, s.lam, s.mu)
    number = np.arange(len(s.mu))
    eta = np.where(number % 3 == 0, np.inf, 2.0)
    modulus = np.where((number % 2 == 0) & (number % 3 != 0), 1.0, np.inf)
    creep = Creep(small.backend, k.space, s.mu, burgers(eta, 3.0 * modulus, modulus))
    first = creep.which[: creep.further_rows]
    np.testing.assert_array_equal(first, number[(number % 3 != 0) & (number % 2 == 0)])
    assert creep.shape[0] == len(creep.which) + creep.further_rows
    rows = creep.rows(number)
    np.testing.assert_array_equal(rows >= 0, number % 3 != 0)
    np.testing.assert_array_equal(creep.which[rows[rows >= 0]], number[rows >= 0])
