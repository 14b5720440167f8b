"""A curve that was interrupted goes on from its last state and gives the same bits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from afterslip_common.terms import YEAR
from afterslip_solver.greens import StateError, prepare
from afterslip_solver.model import SolverSettings


class Memory:
    """Keeps the newest state; fails after some saves like a machine that is lost."""

    def __init__(self, lost_after=10**9, every=1):
        self.state, self.saves, self.asked = None, 0, 0
        self.lost_after, self.every = lost_after, every

    def load(self):
        return self.state

    def due(self):
        self.asked += 1
        return self.asked % self.every == 0

    def save(self, state):
        # through the bytes, as a file would
        self.state = {
            key: np.frombuffer(np.asarray(value).tobytes(), value.dtype).reshape(
                value.shape
            )
            for key, value in state.items()
        }
        self.saves += 1
        if self.saves == self.lost_after:
            raise ConnectionError("the machine is gone")


def settings_of(changes):
    times = tuple(YEAR * np.array([0.0, 0.3, 1.0]))
    return SolverSettings(times=times, until=YEAR, tolerance=1e-8, **changes)


def burgers(model):
    m = model.materials
    has = np.isfinite(m.viscosity) & (np.arange(len(m.mu)) % 2 == 0)
    materials = replace(
        m,
        kelvin_modulus=np.where(has, 2e10, np.inf),
        kelvin_viscosity=np.where(has, 1e18, np.inf),
    )
    return replace(model, materials=materials)


CASES = {
    "polynomial": {"scheme": "polynomial"},
    "shift_invert": {"scheme": "shift_invert"},
    "stepping": {"integrator": "stepping", "step": YEAR / 8},
    "extrapolated": {
        "integrator": "stepping",
        "step": YEAR / 8,
        "predictor": "adams_bashforth",
    },
}


@pytest.mark.parametrize("body", ["maxwell", "burgers"])
@pytest.mark.parametrize("case", list(CASES))
def test_resumed_curve_equals_the_uninterrupted_one_bit_for_bit(small, case, body):
    model = small.box_model((4, 4, 4))
    if body == "burgers":
        model = burgers(model)
    slip = small.patch_slip(model.faults["main"], 3)
    prepared = prepare(model, settings_of(CASES[case]), "cpu")
    whole = prepared.solve(slip, model.surface.nodes)
    checkpointer = Memory(lost_after=4)
    with pytest.raises(ConnectionError):
        prepared.solve(slip, model.surface.nodes, checkpointer=checkpointer)
    assert checkpointer.state is not None
    assert int(checkpointer.state["solves"]) == 4
    checkpointer.lost_after = 10**9
    resumed = prepared.solve(slip, model.surface.nodes, checkpointer=checkpointer)
    assert resumed.outcome == whole.outcome == "converged"
    for name in (
        "response",
        "recurrence",
        "start_norm",
        "shift",
        "mode_count",
        "step_times",
        "residual",
        "time_error",
    ):
        np.testing.assert_array_equal(getattr(resumed, name), getattr(whole, name))
    assert (resumed.solves, resumed.iterations) == (whole.solves, whole.iterations)
    assert [h["residuals"] for h in resumed.history] == [
        h["residuals"] for h in whole.history
    ]


def test_states_are_made_only_when_due_and_repeat_few_solves(small):
    model = small.box_model((4, 4, 4))
    slip = small.patch_slip(model.faults["main"])
    prepared = prepare(model, settings_of(CASES["stepping"]), "cpu")
    checkpointer = Memory(every=3)
    result = prepared.solve(slip, model.surface.nodes, checkpointer=checkpointer)
    assert (result.solves, checkpointer.asked, checkpointer.saves) == (9, 8, 2)
    # asked after solves 1..8, so the sixth is the last that was due
    assert checkpointer.state is not None
    assert int(checkpointer.state["solves"]) == 6


def test_state_of_another_problem_is_refused(small):
    model = small.box_model((4, 4, 4))
    slip = small.patch_slip(model.faults["main"])
    prepared = prepare(model, settings_of(CASES["polynomial"]), "cpu")
    checkpointer = Memory()
    prepared.solve(slip, model.surface.nodes, checkpointer=checkpointer)
    with pytest.raises(StateError, match="another problem"):
        prepared.solve(2.0 * slip, model.surface.nodes, checkpointer=checkpointer)
    other = prepare(model, settings_of(CASES["shift_invert"]), "cpu")
    with pytest.raises(StateError, match="another problem"):
        other.solve(slip, model.surface.nodes, checkpointer=checkpointer)
