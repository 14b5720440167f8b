"""How a spec asks for several GPUs, and what it answers without them."""

import pytest
from pydantic import ValidationError

from afterslip.physics.viscoelastic.solver import Solver
from afterslip_solver.backend import BackendError
from afterslip_solver.greens import SettingsError
from afterslip_solver.model import SolverSettings
from afterslip_workers.engines.viscoelastic.preflight import predict_memory
from afterslip_workers.engines.viscoelastic.settings import prepared_for
from afterslip_workers.errors import classify


@pytest.mark.parametrize(
    "changes",
    [
        {"backend": "cpu"},
        {"integrator": "stepping", "step": "1 d", "predictor": "dmd"},
        {"preconditioner": "three_level"},
    ],
)
def test_what_one_device_alone_can_do_is_refused(changes):
    with pytest.raises(ValidationError, match="cannot be shared by several GPUs"):
        Solver.model_validate({"gpus": 2, **changes})
    assert Solver.model_validate({"gpus": 1, **changes}).gpus == 1


def test_a_worker_without_enough_gpus_says_so(broken_ground):
    solver = Solver(gpus=16)
    with pytest.raises(BackendError, match=r"16 GPUs are asked for|CuPy") as raised:
        prepared_for(broken_ground, SolverSettings(), solver, "auto")
    assert classify(raised.value).error_class == "bad_input"
    with pytest.raises(SettingsError, match="backend here is cpu"):
        prepared_for(broken_ground, SolverSettings(), solver, "cpu")


def test_each_gpu_needs_its_share_of_the_memory(broken_ground):
    settings = SolverSettings(times=(1e7,), until=1e7)
    whole = predict_memory(broken_ground, settings, "gpu")
    part = predict_memory(broken_ground, settings, "gpu", gpus=4)
    assert 0.25 * whole.needed < part.needed < 0.3 * whole.needed
