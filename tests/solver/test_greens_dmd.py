"""The data-driven predictor: subdomains, exactness, memory and a real march."""

from __future__ import annotations

import numpy as np
import pytest

from afterslip_common.terms import YEAR
from afterslip_solver.greens import prepare
from afterslip_solver.greens.dmd import DynamicModes
from afterslip_solver.greens.subdomains import subdomains
from afterslip_solver.model import SolverSettings


@pytest.fixture
def operator(small, shaken_box):
    s = shaken_box
    return small.elasticity(s.mesh, s.fixed, s.lam, s.mu)


def recurrence(shape, steps, modes=5, trend=True):
    """Increments that are sums of decaying fields, and a straight trend."""
    rng = np.random.default_rng(3)
    fields = rng.standard_normal((modes, *shape))
    rates = np.linspace(0.5, 0.95, modes)
    line = rng.standard_normal((2, *shape))
    for i in range(steps):
        out = np.einsum("k,kncl->ncl", rates**i, fields)
        yield out + trend * (line[0] + 0.1 * i * line[1])


def test_parts_hold_every_node_once_and_weigh_alike(operator):
    found = subdomains(operator.space, unknowns=150)
    assert found.count > 3
    listed = found.members[found.inside]
    assert sorted(listed) == list(range(operator.space.n_node))
    column = np.broadcast_to(np.arange(found.count), found.members.shape)
    np.testing.assert_array_equal(found.part[listed], column[found.inside])
    size = found.inside.sum(axis=0)
    assert size.max() < 2.0 * size.mean()


def test_small_models_are_one_part(operator):
    found = subdomains(operator.space)
    assert found.count == 1
    assert found.inside.all()


@pytest.mark.parametrize("unknowns", [150, 25745])
def test_linear_recurrences_are_predicted_exactly(operator, unknowns):
    predictor = DynamicModes(operator, unknowns=unknowns)
    values = list(recurrence(operator.shape, 24))
    for value in values[:-1]:
        predictor.learn(value)
    guess = predictor.guess(None)
    # five modes with rates of 0.5 to 0.95 amplify rounding by about 1e5
    size = np.abs(values[-1]).max()
    assert np.abs(guess - values[-1]).max() < 1e-9 * size


def test_pairs_beyond_the_newest_sixteen_are_forgotten(operator):
    fresh, old = DynamicModes(operator), DynamicModes(operator)
    rng = np.random.default_rng(8)
    for _ in range(7):
        old.learn(rng.standard_normal(operator.shape))
    for value in rng.standard_normal((19, *operator.shape)):
        fresh.learn(value)
        old.learn(value)
    np.testing.assert_allclose(fresh.guess(None), old.guess(None), rtol=1e-9)


def test_memory_is_sixteen_remainders_and_little_more(operator):
    predictor = DynamicModes(operator)
    for value in recurrence(operator.shape, 24):
        predictor.learn(value)
    vector = value.nbytes
    assert 18 * vector < predictor.bytes
    tables = predictor.bytes - 18 * vector
    # the random matrix and the compressions are 96 rows, however many unknowns
    n = operator.space.n_node
    assert tables < 8 * 96 * (3 * n + 17 * 4) + 20 * n + 1


def test_learnt_steps_survive_a_restart(operator):
    predictor, other = DynamicModes(operator), DynamicModes(operator)
    values = list(recurrence(operator.shape, 22))
    for value in values:
        predictor.learn(value)
    state = {name: np.array(part) for name, part in predictor.packed().items()}
    other.restore(state)
    for value in values[:3]:
        np.testing.assert_array_equal(other.guess(None), predictor.guess(None))
        other.learn(value)
        predictor.learn(value)


def test_march_starts_nearer_than_by_extrapolation_and_keeps_the_tolerance(small):
    model = small.box_model((4, 4, 4))
    slip = small.patch_slip(model.faults["main"])
    slip[:, :, 1] = 0.0
    results = {}
    for name in ("none", "adams_bashforth", "dmd"):
        settings = SolverSettings(
            times=(YEAR,),
            until=YEAR,
            integrator="stepping",
            step=YEAR / 30,
            predictor=name,
            tolerance=1e-10,
        )
        results[name] = prepare(model, settings, "cpu").solve(slip, model.surface.nodes)
    initial = {
        name: np.mean([max(entry["initial"]) for entry in r.history[21:]])
        for name, r in results.items()
    }
    assert initial["dmd"] < 0.05 * initial["adams_bashforth"]
    assert results["dmd"].iterations < results["adams_bashforth"].iterations
    reference = results["none"].response
    change = np.abs(reference - reference[:, :1]).max()
    for r in results.values():
        assert r.outcome == "converged"
        assert (r.residual <= 1e-10).all()
        assert np.abs(r.response[1]).max() == 0.0
        assert np.abs(r.response - reference).max() < 1e-8 * change
    assert results["dmd"].history[-1]["predictor"] > 0
