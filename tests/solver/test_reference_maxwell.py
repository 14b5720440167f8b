"""Closed forms of relaxation against integration of the equations."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from afterslip_solver.reference import (
    confined_axial_stress,
    layered_opening,
    layered_shear,
    shear_stress,
    uniaxial_stress,
)

LAM, MU, ETA = 50e9, 30e9, 1e19
TIMES = np.array([0.0, 0.3, 1.0, 5.0]) * ETA / MU


def test_shear_stress_decays_with_the_relaxation_time():
    stress = shear_stress(TIMES, 1e-6, MU, ETA)
    assert stress == pytest.approx(30e3 * np.exp([0.0, -0.3, -1.0, -5.0]))


def tensor_stress(times, lateral_free):
    """Integrate creep of a bar whose axial strain is 1e-6."""

    def lateral(creep):
        if not lateral_free:
            return 0.0
        # 0 = lam tr(e) + 2 mu (e_lat - creep_lat), creep traceless
        return -(LAM * 1e-6 + MU * creep) / (2 * LAM + 2 * MU)

    def stress(creep):
        e = np.array([1e-6, lateral(creep), lateral(creep)])
        c = np.array([creep, -creep / 2, -creep / 2])
        return LAM * e.sum() + 2 * MU * (e - c)

    def rate(_, creep):
        s = stress(creep[0])
        return [(s[0] - s.mean()) / (2 * ETA)]

    out = solve_ivp(
        rate,
        (0, times[-1]),
        [0.0],
        t_eval=times,
        rtol=1e-11,
        atol=1e-22,
        method="LSODA",
    )
    return np.array([stress(c)[0] for c in out.y[0]])


@pytest.mark.parametrize(
    ("formula", "lateral_free"),
    [(confined_axial_stress, False), (uniaxial_stress, True)],
)
def test_axial_stress_solves_the_rate_equations(formula, lateral_free):
    exact = formula(TIMES, 1e-6, LAM, MU, ETA)
    assert exact == pytest.approx(tensor_stress(TIMES, lateral_free), rel=1e-7)


def test_sheared_layers_start_elastic_and_end_unloaded():
    upper, lower = layered_shear(
        np.array([0.0, 1e15]), 1.0, (10e3, 30e9), (30e3, 60e9, 1e19)
    )
    assert upper[0] * 30e9 == pytest.approx(lower[0] * 60e9)
    assert 10e3 * upper + 30e3 * lower == pytest.approx([-1.0, -1.0])
    assert abs(upper[1]) < 1e-16


def test_opened_layers_obey_the_rate_equation():
    layers = (10e3, LAM, MU), (30e3, 2 * LAM, 2 * MU, ETA)
    step = 1e-4 * ETA / MU
    times = np.array([0.0, 1.0, 1.0 + 1e-4, 500.0]) * ETA / MU
    upper, lower = layered_opening(times, 1.0, *layers)
    creep = ((2 * LAM + 4 * MU) * lower - (LAM + 2 * MU) * upper) / (4 * MU)
    assert abs(creep[0]) < 1e-16
    assert 10e3 * upper + 30e3 * lower == pytest.approx([-1.0] * 4)
    rate = 2 * MU / ETA * (2 / 3 * lower[1] - creep[1])
    assert (creep[2] - creep[1]) / step == pytest.approx(rate, rel=1e-3)
    # in the end only the bulk modulus carries
    bulk = 2 * LAM + 4 / 3 * MU
    assert bulk * lower[3] == pytest.approx((LAM + 2 * MU) * upper[3])
