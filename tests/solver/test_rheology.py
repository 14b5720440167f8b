"""A linear rheology is a list of branches; all integrators follow from it.

The bodies below are defined here alone: the solver knows neither.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np
import pytest
from scipy.linalg import expm

from afterslip_common.terms import YEAR
from afterslip_solver import backend as backends
from afterslip_solver.greens import evaluate_curve, prepare
from afterslip_solver.greens.exponential_step import chain_step
from afterslip_solver.krylov import pcg
from afterslip_solver.model import Float, Materials, SolverSettings
from afterslip_solver.operators import ModelError, Resolvent
from afterslip_solver.parallel import DistributedModel, ThreadRankGroup
from afterslip_solver.rheology import Branch


@dataclass(frozen=True, slots=True, kw_only=True)
class Zener(Materials):
    """Standard linear solid: its stress relaxes to that of two springs in series."""

    delayed_viscosity: Float
    delayed_modulus: Float

    @property
    def branches(self):
        return (Branch(self.delayed_viscosity, self.delayed_modulus),)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtendedBurgers(Materials):
    """A Maxwell dashpot, which may be absent, and two Kelvin elements in series."""

    steady: Float
    slow: Float
    springs: Float

    @property
    def branches(self):
        own = Branch(self.steady, np.zeros_like(self.steady))
        return own, *map(Branch, self.slow.T, self.springs.T)


def plain(materials):
    return {item.name: getattr(materials, item.name) for item in fields(Materials)}


def zener(model):
    """Standard linear solid where the model is viscoelastic."""
    m = model.materials
    elastic = {**plain(m), "viscosity": np.full(len(m.mu), np.inf)}
    modulus = np.where(np.isfinite(m.viscosity), 0.5 * m.mu, 0.0)
    body = Zener(**elastic, delayed_viscosity=m.viscosity, delayed_modulus=modulus)
    return replace(model, materials=body)


def extended(model):
    """Elements with one, two and three branches, some without a lone dashpot."""
    m, number = model.materials, np.arange(len(model.materials.mu))
    flows = np.isfinite(m.viscosity)
    steady = np.where(flows & (number % 4 != 0), m.viscosity, np.inf)
    has = flows[:, None] & np.stack([number % 2 == 0, number % 3 == 0], axis=1)
    has[:, 0] |= flows & (number % 4 == 0)
    slow = np.where(has, [1e18, 4e18], np.inf)
    springs = np.where(has, [5e10, 2e10], 0.0)
    none = {**plain(m), "viscosity": np.full(len(m.mu), np.inf)}
    body = ExtendedBurgers(**none, steady=steady, slow=slow, springs=springs)
    return replace(model, materials=body)


BODIES = {"zener": zener, "extended": extended}


def curve(model, slip, times, **changes):
    until = float(times[-1])
    settings = SolverSettings(
        times=tuple(times), until=until, tolerance=1e-10, time_tolerance=1e-8, **changes
    )
    result = prepare(model, settings, "cpu").solve(slip, model.surface.nodes)
    assert result.outcome == "converged"
    return evaluate_curve(result, times)


@pytest.mark.parametrize("body", list(BODIES))
def test_all_integrators_agree_on_a_rheology_of_another_file(small, body):
    model = BODIES[body](small.box_model((4, 4, 4)))
    slip = small.patch_slip(model.faults["main"])
    times = YEAR * np.array([0.0, 0.3, 1.0])
    exact = curve(model, slip, times, scheme="polynomial")
    change = np.abs(exact - exact[:, :1]).max()
    assert change > 1e-3 * np.abs(exact).max()
    shifted = curve(model, slip, times, scheme="shift_invert")
    np.testing.assert_allclose(shifted, exact, atol=1e-6 * change)
    errors = []
    for count in (10, 20):
        stepped = curve(model, slip, times, integrator="stepping", step=YEAR / count)
        errors.append(np.abs(stepped - exact).max() / change)
    # of second order, and small
    assert errors[1] < 2e-3
    assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.2)


def test_a_standard_linear_solid_relaxes_to_its_springs_in_series(small):
    model = zener(small.box_model((4, 4, 4)))
    slip = small.patch_slip(model.faults["main"])
    late = curve(model, slip, np.array([0.0, 300 * YEAR]), scheme="shift_invert")
    m = model.materials
    flows = m.creeps
    mu = np.where(flows, m.mu / 3.0, m.mu)
    values = {**plain(m), "mu": mu, "lam": m.lam + 2.0 / 3.0 * (m.mu - mu)}
    relaxed = replace(model, materials=Materials(**values))
    expected = curve(relaxed, slip, np.array([0.0]))
    change = np.abs(late[:, 1] - late[:, 0]).max()
    assert change > 0.01 * np.abs(late).max()
    np.testing.assert_allclose(late[:, 1], expected[:, 0], atol=1e-6 * change)


@pytest.mark.parametrize("body", list(BODIES))
def test_rates_are_self_adjoint_and_the_resolvent_inverts_them(small, body):
    model = BODIES[body](small.box_model((4, 4, 4)))
    settings = SolverSettings(until=YEAR, scheme="polynomial")
    prepared = prepare(model, settings, "cpu")
    creep, elastic = prepared.relaxation.creep, prepared.elastic.system
    dot = small.backend.dot
    a, b = np.random.default_rng(0).standard_normal((2, *creep.shape))

    def apply(q):
        f = creep.divergence(2.0 * creep.mu, creep.total(q)) * elastic.operator.free
        u = pcg(elastic.operator, elastic.cycle, f, tolerance=1e-13).values
        return creep.relaxation(q, u)

    image = apply(b)
    left, right = dot(apply(a), creep.weighted(b)), dot(a, creep.weighted(image))
    energy, norm = dot(b, creep.weighted(image)), dot(b, creep.weighted(b))
    size = np.sqrt(dot(a, creep.weighted(a)) * norm)
    assert (np.abs(left - right) < 1e-10 * size * creep.fastest).all()
    assert (energy > 0).all()
    assert (energy <= creep.fastest * norm * (1 + 1e-9)).all()
    shift = 0.3 * YEAR
    resolvent = Resolvent(creep, shift)
    softened = prepared.elastic.softened(creep.which, resolvent.softened)
    f = resolvent.load(b) * elastic.operator.free
    w = pcg(softened.operator, softened.cycle, f, tolerance=1e-13).values
    state = resolvent.state(b.copy(), w)
    again = state + shift * apply(state)
    np.testing.assert_allclose(again, b, atol=1e-9 * np.abs(b).max())


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_step_of_a_chain_is_the_matrix_exponential(count):
    rng = np.random.default_rng(count)
    own = 10.0 ** rng.uniform(-2, 2, 12)
    creep, recovery = 10.0 ** rng.uniform(-2, 2, (2, 12, count))
    # no lone dashpot, no spring beside a dashpot, no such branch
    own[0] = recovery[1, 0] = creep[2, 0] = recovery[2, 0] = 0.0
    change, mean = chain_step(own, creep, recovery, 0.7)
    size = 1 + count
    for k in range(12):
        m = np.zeros((size, size))
        m[0, 0] = -own[k] - creep[k].sum()
        m[0, 1:], m[1:, 0] = creep[k] * (recovery[k] > 0), recovery[k]
        m[1:, 1:] -= np.diag(recovery[k])
        big = np.zeros((2 * size, 2 * size))
        big[:size, :size], big[:size, size:] = 0.7 * m, np.eye(size)
        e = expm(big)
        np.testing.assert_allclose(change[k], e[:size, :size] - np.eye(size), atol=1e-9)
        np.testing.assert_allclose(mean[k], e[:size, size:], atol=1e-9)


@pytest.mark.parametrize(
    "changes", [{"scheme": "polynomial"}, {"integrator": "stepping", "step": YEAR / 3}]
)
def test_parts_of_a_model_have_its_rheology(small, changes):
    model = extended(small.box_model())
    slip = small.patch_slip(model.faults["main"])
    settings = SolverSettings(times=(YEAR,), until=YEAR, tolerance=1e-10, **changes)
    nodes = model.surface.nodes
    whole = prepare(model, settings, "cpu").solve(slip, nodes)
    ranks = ThreadRankGroup(3, lambda: backends.get("cpu", threads=1))
    parts = DistributedModel(model, settings, ranks).solve(slip, nodes)
    assert parts.solves == whole.solves
    found, expected = (evaluate_curve(r, np.array([YEAR])) for r in (parts, whole))
    np.testing.assert_allclose(found, expected, atol=1e-7 * np.abs(expected).max())


def test_impossible_branches_are_refused(small):
    model = zener(small.box_model((4, 4, 4)))
    m = model.materials
    for change, message in (
        ({"delayed_viscosity": -m.mu}, "viscosity of branch 1"),
        ({"delayed_modulus": -m.mu}, "modulus of branch 1"),
        ({"delayed_modulus": m.mu[1:]}, "branch 1 of the rheology must have"),
    ):
        bad = replace(model, materials=replace(m, **change))
        with pytest.raises(ModelError, match=message):
            prepare(bad, SolverSettings(), "cpu")
