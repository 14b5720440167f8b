"""One plan in time serves the solver, the memory estimate and the store's shape."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args, get_type_hints

import numpy as np
import pytest

from afterslip_common.terms import YEAR
from afterslip_solver.greens import prepare
from afterslip_solver.greens.time_plan import plan_time
from afterslip_solver.memory import estimate
from afterslip_solver.model import SolverSettings
from afterslip_solver.rheology import Branch, RelaxationRates

CURVE = SolverSettings(times=(0.0, YEAR), until=YEAR)
STEPS = replace(CURVE, integrator="stepping", step=0.3 * YEAR)
CASES = {
    "elastic": (SolverSettings(), "elastic"),
    "short": (replace(CURVE, until=1e6, times=(1e6,)), "polynomial"),
    "long": (replace(CURVE, until=1e3 * YEAR), "shift_invert"),
    "wanted polynomial": (replace(CURVE, scheme="polynomial"), "polynomial"),
    "wanted shift": (replace(CURVE, until=1e6, scheme="shift_invert"), "shift_invert"),
    "stepping": (STEPS, "stepping"),
}


def with_kelvin(model):
    m = model.materials
    has = np.isfinite(m.viscosity) & (np.arange(len(m.mu)) % 2 == 0)
    modulus, viscosity = np.where(has, 2e10, np.inf), np.where(has, 1e18, np.inf)
    return replace(
        model,
        materials=replace(m, kelvin_modulus=modulus, kelvin_viscosity=viscosity),
    )


@pytest.mark.parametrize("body", ["maxwell", "burgers"])
@pytest.mark.parametrize("case", list(CASES))
def test_a_plan_from_materials_is_the_plan_of_the_prepared_model(small, case, body):
    settings, scheme = CASES[case]
    model = small.box_model((4, 4, 4))
    if body == "burgers":
        model = with_kelvin(model)
    plan = plan_time(model.materials.rates, settings)
    assert plan.scheme == scheme
    prepared = prepare(model, settings, "cpu")
    assert prepared.scheme == scheme
    if scheme != "elastic":
        assert prepared.relaxation.integrator is not None
        used = prepared.relaxation.integrator.plan
        facts = ("until", "span", "shift", "step", "n_step", "limit")
        assert [getattr(used, f) for f in facts] == [getattr(plan, f) for f in facts]
        assert np.array_equal(used.times, plan.times)


def test_an_elastic_body_has_an_elastic_plan_whatever_is_asked(small):
    model = small.box_model((4, 4, 4), viscosity=(np.inf, np.inf))
    for settings in (CURVE, STEPS, replace(CURVE, scheme="shift_invert")):
        assert plan_time(model.materials.rates, settings).scheme == "elastic"


def test_steps_divide_the_curve_evenly_and_none_is_longer_than_asked():
    body = RelaxationRates([np.array([1e-8])], [np.zeros(1)])
    plan = plan_time(body, STEPS)
    assert plan.n_step == 4
    assert plan.step == YEAR / 4
    assert plan.recorded() == [0, 1, 2, 3, 4]
    # a whole number of steps is not made one more by rounding
    assert plan_time(body, replace(STEPS, step=YEAR / 7)).n_step == 7


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_largest_rate_is_that_of_the_whole_chain(count):
    rng = np.random.default_rng(count)
    mu = 3e10 * (1.0 + rng.random(5))
    viscosity = 10.0 ** rng.uniform(17, 20, (count, 5))
    modulus = 3e10 * rng.random((count, 5)) * (rng.random((count, 5)) < 0.7)
    branches = [Branch(v, m) for v, m in zip(viscosity, modulus, strict=True)]
    found = RelaxationRates.of(mu, branches)
    for e in range(5):
        matrix = np.diag(modulus[:, e] / viscosity[:, e])
        matrix += (mu[e] / viscosity[:, e])[:, None] * np.ones(count)
        rates = np.linalg.eigvals(matrix)
        assert found.largest()[e] == pytest.approx(rates.real.max(), rel=1e-12)
    # elements that lack a branch have the rates of the others alone
    for absent in (Branch(np.full(5, np.inf), np.zeros(5)), Branch(np.full(5, np.inf))):
        more = RelaxationRates.of(mu, [*branches, absent])
        np.testing.assert_allclose(more.largest(), found.largest(), rtol=1e-12)
        assert more.softening(1e8) == found.softening(1e8)


def test_a_lone_dashpot_allocates_no_springs():
    branch = Branch(np.full(4, 1e19))
    assert branch.springs.strides == (0,) == branch.recovery.strides
    assert branch.at(np.array([2, 0])).modulus is None
    zeros = Branch(branch.viscosity, np.zeros(4))
    mu = np.full(4, 3e10)
    bodies = [RelaxationRates.of(mu, [one]) for one in (branch, zeros)]
    assert bodies[0].fastest == bodies[1].fastest
    assert bodies[0].softening(1e8) == bodies[1].softening(1e8)


def test_memory_is_estimated_for_every_predictor():
    names = get_args(get_type_hints(SolverSettings)["predictor"])
    assert "four_steps" in names
    for name in names:
        found = estimate(300_000, 70_000, 50_000, 0, "cpu", "stepping", predictor=name)
        assert found.needed > estimate(300_000, 70_000, 0, 0, "cpu", "elastic").needed
