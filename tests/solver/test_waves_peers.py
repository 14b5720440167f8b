"""Waves over the layer of LOH.1, and misfits of series, beside codes of others.

pyprop8 sums over wavenumbers after O'Toole & Woodhouse (2011), ObsPy has the misfits of
Kristekova and others (2006); both come with the extras `peers` and `seismology`.
"""

from typing import Any

import numpy as np
import pytest

from afterslip_common.source_time import brune, smooth_step
from afterslip_solver.reference.layered_waves import ElasticLayer, layered_waves
from afterslip_solver.verification.misfit import misfits
from afterslip_solver.verification.waves import over_layers

pyprop8 = pytest.importorskip("pyprop8", reason="needs pip install 'afterslip[peers]'")
tf_misfit = pytest.importorskip(
    "obspy.signal.tf_misfit", reason="needs pip install 'afterslip[seismology]'"
)
# km, km/s, g/cm3
LOH1 = [(1.0, 4.0, 2.0, 2.6), (np.inf, 6.0, 3.464, 2.7)]
DT, COUNT, BAND = 0.1, 101, (0.1, 0.4)


def spectrum(omega: complex, rise: float = 3.0) -> complex:
    """Spectrum of the rate of a smooth step, by Gauss quadrature; rise in s."""
    nodes, weights = np.polynomial.legendre.leggauss(100)
    half, step, growth = 0.5 * rise, 1e-5, smooth_step(rise)
    times = half * (nodes + 1.0)
    rate = (growth(times + step) - growth(times - step)) / (2.0 * step)
    return complex(half * np.sum(weights * rate * np.exp(-1j * omega * times)))


def by_pyprop8(count: int, dt: float, rate: Any, kmax: float, nk: int) -> Any:
    """(3, n_sample) m at (6, 8) km, of a double couple along x and y at 2 km.

    Its own wavenumbers, to 2 per km, are 7 % wrong here.
    """
    moment = np.zeros((3, 3))
    # of 1e18 N m
    moment[0, 1] = moment[1, 0] = 1.0
    _, found = pyprop8.compute_seismograms(
        pyprop8.LayeredStructureModel(LOH1),
        pyprop8.PointSource(0.0, 0.0, 2.0, moment, np.zeros((3, 1)), 0.0),
        pyprop8.ListOfReceivers(np.array([6.0]), np.array([8.0])),
        count,
        dt,
        source_time_function=rate,
        stencil_kwargs={"kmin": 0.0, "kmax": kmax, "nk": nk},
        pad_frac=1.0,
        show_progress=False,
        squeeze_outputs=False,
    )
    return 1e3 * found[0, 0]


@pytest.fixture(scope="module")
def theirs() -> Any:
    """(3, n_sample) m/s."""
    return np.gradient(by_pyprop8(COUNT, DT, spectrum, 8.0, 1500), DT, axis=1)


@pytest.fixture(scope="module")
def ours() -> Any:
    """The same of voxels of 400 m, and of the own sum over wavenumbers."""
    return over_layers(0.4, False)


def by_obspy(
    series: Any, reference: Any, dt: float = DT, band: tuple[float, float] = BAND
) -> tuple[float, float]:
    """Largest envelope and phase misfit of three components."""
    how = {"dt": dt, "fmin": band[0], "fmax": band[1], "nf": 60, "w0": 6}
    parts = series, reference
    envelope = tf_misfit.em(*parts, norm="global", st2_isref=True, **how)
    phase = tf_misfit.pm(*parts, norm="global", st2_isref=True, **how)
    return float(envelope.max()), float(phase.max())


def test_the_sum_over_wavenumbers_is_pyprop8s(ours, theirs):
    _, wavenumbers = ours
    error = np.linalg.norm(wavenumbers - theirs) / np.linalg.norm(theirs)
    assert error < 5e-3
    envelope, phase = by_obspy(wavenumbers, theirs)
    # 0.28 and 0.02 % measured
    assert envelope < 5e-3
    assert phase < 5e-4


@pytest.mark.slow
def test_the_sum_over_wavenumbers_is_pyprop8s_with_the_source_of_loh1():
    dt, count, fast = 0.025, 361, 0.1

    def rate(omega: complex) -> complex:
        return 1.0 / (1.0 + 1j * omega * fast) ** 2

    theirs = by_pyprop8(count, dt, rate, 30.0, 6000)
    place, times = np.array([[6e3, 8e3]]), np.linspace(0.0, 9.0, count)
    moment = np.zeros((3, 3))
    moment[0, 1] = moment[1, 0] = 1e18
    layers = [ElasticLayer(1e3 * b, 1e3 * p, 1e3 * s, 1e3 * r) for b, p, s, r in LOH1]
    ours = layered_waves(place, times, 2e3, moment, brune(fast), layers)[0].T
    mine, other = (np.gradient(u, dt, axis=1) for u in (ours, theirs))
    envelope, phase = by_obspy(mine, other, dt, (0.2, 5.0))
    # 0.65 and 0.03 % measured
    assert envelope < 0.01
    assert phase < 1e-3


def test_voxels_over_the_layer_of_loh1_are_as_near_to_pyprop8_as_is_said(ours, theirs):
    voxels, _ = ours
    envelope, phase = by_obspy(voxels, theirs)
    # 3.9 and 1.4 % measured, with 12 voxels in the S wave of the layer at 0.4 Hz
    assert envelope < 0.05
    assert phase < 0.02


@pytest.mark.slow
def test_voxels_over_the_layer_of_loh1_follow_pyprop8_to_1_hz():
    voxels, _ = over_layers(1.0, False)
    dt = 0.05
    motion = by_pyprop8(201, dt, lambda omega: spectrum(omega, 1.2), 12.0, 2500)
    rate = np.gradient(motion, dt, axis=1)
    envelope, phase = by_obspy(voxels, rate, dt, (0.1, 1.0))
    # 4.8 and 2.5 % measured, with 8 voxels in the S wave of the layer
    assert envelope < 0.055
    assert phase < 0.03


def test_misfits_are_those_of_obspy(ours, theirs):
    voxels, _ = ours
    mine = misfits(voxels, theirs, DT, BAND)
    # ours are of all components together, ObsPy's of the largest one
    np.testing.assert_allclose(mine, by_obspy(voxels, theirs), rtol=0.05)
