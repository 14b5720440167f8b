"""Four steps of one source at once: the answer of sequential steps, for less work."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from afterslip_common.terms import YEAR
from afterslip_solver.greens import prepare
from afterslip_solver.greens.time_parallel import trend_weights
from afterslip_solver.model import SolverSettings


@pytest.fixture
def case(small):
    model = small.box_model((4, 4, 4))
    slip = small.patch_slip(model.faults["main"])
    slip[:, :, 1] = 0.0
    settings = SolverSettings(
        times=(0.25 * YEAR, YEAR),
        until=YEAR,
        integrator="stepping",
        step=YEAR / 16,
        predictor="adams_bashforth",
    )
    return model, slip, settings


def solved(model, slip, settings, **hooks):
    return prepare(model, settings, "cpu").solve(slip, model.surface.nodes, **hooks)


def test_result_is_that_of_sequential_steps(case):
    model, slip, settings = case
    one = slip[:, :, :1]
    expected = solved(model, one, settings)
    found = solved(model, one, replace(settings, predictor="four_steps"))
    assert found.outcome == "converged"
    np.testing.assert_array_equal(found.step_times, expected.step_times)
    assert (found.residual <= settings.tolerance).all()
    change = np.abs(expected.response - expected.response[:, :1]).max()
    # sixteen solves to 1e-8, and the condition number of the solution is about ten
    assert np.abs(found.response - expected.response).max() < 1e-6 * change
    assert found.solves == expected.solves
    assert found.iterations < expected.iterations


def test_sources_of_a_group_do_not_mix(case):
    model, slip, settings = case
    settings = replace(settings, predictor="four_steps", until=YEAR / 2, times=(0.0,))
    group = solved(model, slip, settings)
    assert group.response.shape[0] == 4
    assert np.abs(group.response[1]).max() == 0.0
    alone = solved(model, slip[:, :, 2:3], settings)
    np.testing.assert_allclose(
        group.response[2], alone.response[0], atol=1e-6 * np.abs(alone.response).max()
    )


class OneState:
    """Keeps the state after so many solves."""

    def __init__(self, after, state=None):
        self.after, self.state, self.calls = after, state, 0

    def load(self):
        return self.state

    def due(self):
        self.calls += 1
        return self.calls == self.after

    def save(self, state):
        self.state = {name: np.array(part) for name, part in state.items()}


def test_resumed_march_gives_the_same_bits(case):
    model, slip, settings = case
    settings = replace(settings, predictor="four_steps", until=YEAR / 2, times=(0.0,))
    two = slip[:, :, [0, 2]]
    whole = solved(model, two, settings)
    # eight steps a source: the state is of the second source's third step
    checkpointer = OneState(8 + 3)
    solved(model, two, settings, checkpointer=checkpointer)
    rest = solved(model, two, settings, checkpointer=OneState(0, checkpointer.state))
    np.testing.assert_array_equal(rest.response, whole.response)
    assert rest.solves == whole.solves


def test_stopping_leaves_the_elastic_response(case):
    model, slip, settings = case
    calls = []

    def stop():
        calls.append(1)
        return len(calls) > 4

    found = solved(
        model, slip, replace(settings, predictor="four_steps"), should_stop=stop
    )
    assert found.outcome == "stopped"
    assert found.response.shape[1] == 1


@pytest.mark.parametrize("known", [1, 2, 5, 7, 12])
def test_lines_are_predicted_exactly(known):
    weights = trend_weights(known, 4)
    assert len(weights) == {1: 1, 2: 2, 5: 2, 7: 7, 12: 7}[known]
    line = 3.0 - 0.5 * np.arange(1.0 - len(weights), 1.0)
    expected = line[-1] if known == 1 else 3.0 - 0.5 * 4
    assert weights @ line == pytest.approx(expected, rel=1e-12)
