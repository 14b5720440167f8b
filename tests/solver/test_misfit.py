"""Envelope and phase misfits on signals whose misfits are known."""

import numpy as np
import pytest

from afterslip_solver.reference.layered_waves import ElasticLayer
from afterslip_solver.verification.misfit import misfits

DT, BAND = 0.02, (0.5, 4.0)


def signal(shift=0.0):
    t = DT * np.arange(1000)
    wave = np.exp(-0.5 * ((t - 10.0) / 1.5) ** 2)
    return (wave * np.cos(2 * np.pi * 1.5 * (t - 10.0) + shift))[None]


def test_a_tenth_more_is_an_envelope_misfit_of_a_tenth():
    envelope, phase = misfits(1.1 * signal(), signal(), DT, BAND)
    assert envelope == pytest.approx(0.1, rel=1e-9)
    assert phase == pytest.approx(0.0, abs=1e-9)


def test_a_shift_of_a_tenth_of_pi_is_a_phase_misfit_of_a_tenth():
    envelope, phase = misfits(signal(0.1 * np.pi), signal(), DT, BAND)
    assert envelope == pytest.approx(0.0, abs=1e-3)
    assert phase == pytest.approx(0.1, rel=1e-3)
    assert misfits(-signal(), signal(), DT, BAND)[1] == pytest.approx(1.0)


def test_layers_of_a_quality_factor_have_it_and_the_speeds_at_the_reference():
    layer = ElasticLayer(1e3, 4000.0, 2000.0, 2600.0, 120.0, 40.0, 0.5)
    for frequency in (0.05, 0.5, 5.0):
        there = layer.at(2 * np.pi * frequency)
        for speed, q in ((there.vp, 120.0), (there.vs, 40.0)):
            modulus = speed**2
            assert modulus.real / modulus.imag == pytest.approx(q, rel=1e-12)
    there = layer.at(2 * np.pi * 0.5)
    assert 1.0 / (1.0 / there.vs).real == pytest.approx(2000.0, rel=1e-12)
    assert 1.0 / (1.0 / there.vp).real == pytest.approx(4000.0, rel=1e-12)
    elastic = ElasticLayer(1e3, 4000.0, 2000.0, 2600.0).at(3.0)
    assert elastic.vs == pytest.approx(2000.0)
