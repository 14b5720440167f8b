"""The published algorithms can be chosen in a spec and give our answer."""

import numpy as np
import pytest

from afterslip_workers.engines.viscoelastic.forward import run_forward

PLANE = {"x": 0, "y": 0, "top": 10, "strike": 0, "dip": 30, "length": 80, "width": 60}
ROCK = {"name": "rock", "bottom": 50, "vp": 6.4, "vs": 3.7, "rho": 2800}
MANTLE = {"name": "mantle", "bottom": 200, "vp": 8.0, "vs": 4.6, "rho": 3300}
MANTLE["rheology"] = {"maxwell": {"viscosity": 2.0e18}}
SPEC = {
    "model": {
        "frame": {"kind": "local"},
        "domain": {"x": [-200, 200], "y": [-200, 200], "depth": 200},
        "layers": [ROCK, MANTLE],
        "faults": [{"name": "main", "plane": PLANE}],
        "mesh": {"size": {"fault": 25, "far": 100}},
    },
    "slip": [{"fault": "main", "dip": 1.0}],
    "points": [[float(x), 0.0] for x in range(-90, 121, 30)],
    "times": {"until": "60 d", "output": ["0 d", "60 d"]},
}
STEPS = {"integrator": "stepping", "step": "5 d"}


@pytest.fixture(scope="module")
def expected():
    return run_forward({**SPEC, "solver": STEPS})["displacement"].values


@pytest.mark.parametrize(
    "solver",
    [
        {**STEPS, "predictor": "dmd", "preconditioner": "three_level"},
        {**STEPS, "predictor": "four_steps"},
        {"integrator": "spectral", "preconditioner": "three_level"},
    ],
)
def test_published_algorithms_give_our_answer(expected, solver):
    found = run_forward({**SPEC, "solver": solver})["displacement"].values
    change = np.abs(expected[1] - expected[0]).max()
    assert change > 1e-3
    # solves to 1e-8 of the elastic load; spectral: 12 steps' error of second order
    tolerance = 1e-3 if solver["integrator"] == "spectral" else 1e-5
    assert np.abs(found - expected).max() < tolerance * change
