"""Attenuation: the quality factor that waves have, on the CPU and a GPU."""

import numpy as np
import pytest
from scipy.optimize import least_squares, newton
from voxel_cases import box, rock, varied

from afterslip_solver.backend.waves import Voxels, wave_steps
from afterslip_solver.waves.attenuation import (
    Attenuation,
    attenuated,
    modulus,
    times,
    weights,
)
from afterslip_solver.waves.element import SCHEMES
from afterslip_solver.waves.grid import WaveError

BAND = 0.15, 1.5


def steps_of(grid, medium, how, backend="cpu", real=np.float64):
    stiff, relaxing = attenuated(medium, how)
    scheme = SCHEMES["selective"]
    betas = scheme.beta_lam, scheme.beta_mu
    voxels = Voxels(grid.shape, grid.h, stiff.lam, stiff.mu, *betas, relaxing)
    return wave_steps(backend, voxels, real)


@pytest.mark.parametrize("q", [20.0, 50.0, 300.0])
def test_the_fitted_modulus_has_the_quality_factor_through_the_band(q):
    omega = 2 * np.pi * np.geomspace(*BAND, 200)
    m = modulus(omega, weights(q, BAND), BAND)
    assert m.real / m.imag == pytest.approx(np.full(200, q), rel=0.03)


def test_a_quality_factor_below_what_bodies_reach_is_refused():
    with pytest.raises(WaveError, match="Q = 1 is too low"):
        weights(1.0, BAND)


# whole waves of one kind between free ends: other components are held
@pytest.mark.parametrize(("axis", "speed"), [(0, 3464.0), (2, 6000.0)])
@pytest.mark.parametrize("q", [30.0, 100.0])
def test_standing_waves_decay_with_the_quality_factor(axis, speed, q):
    reference, voxels, modes = 0.5, 60, np.array([1, 2, 3, 4])
    h = speed / (2 * 0.25 * voxels)
    grid = box((3, 3, voxels + 1), h)
    how = Attenuation(BAND, reference, np.full(voxels, q), np.full(voxels, q))
    medium = rock(grid)
    steps = steps_of(grid, medium, how)
    dt = 0.4 * h / 6000.0
    inverse = np.zeros((3, grid.n_node))
    inverse[axis] = 1.0 / medium.node_mass(h)
    nothing = np.zeros(0)
    steps.prepare(dt, inverse.ravel(), (nothing.astype(int), nothing, nothing))
    steps.begin(np.zeros(0, dtype=int), np.zeros((0, 4)))
    z = np.repeat(np.arange(voxels + 1) / voxels, 9)
    shape = np.cos(np.pi * modes * z[:, None])
    state = steps.state()
    state["u"] = np.zeros((3, grid.n_node, 4))
    state["u"][axis] = shape
    steps.restore(state)
    end = axis * grid.n_node
    t = dt * np.arange(1, int(26.0 / dt))
    u = np.empty((len(t), 4))
    for number in range(len(t)):
        steps.step(0.0)
        u[number] = steps.read("u", [end])[0]
    for lane, f in enumerate(0.25 * modes):
        # bodies that come to the wave's state have done so
        late = t > 9.0
        found = _damped(t[late], u[late, lane], 2 * np.pi * f, q)
        exact = _root(2 * np.pi * f, q, reference)
        assert found.real == pytest.approx(exact.real, rel=3e-3)
        assert found.imag == pytest.approx(exact.imag, rel=0.05)
        assert found.real / (2 * found.imag) == pytest.approx(q, rel=0.08)


def _root(omega, q, reference):
    """Complex frequency of a standing wave that has omega at the reference, rad/s."""
    own = weights(q, BAND)
    at = modulus(np.array([2 * np.pi * reference]), own, BAND)[0]
    unrelaxed = np.real(1 / np.sqrt(at)) ** 2

    def zero(w):
        return w**2 - omega**2 * unrelaxed * modulus(np.array([w]), own, BAND)[0]

    return newton(zero, omega * (1 + 0.5j / q))


def _damped(t, u, omega, q):
    """Angular frequency and decay of a damped oscillation, fitted to a series."""

    def model(p):
        wave = np.exp(-p[1] * t)[:, None] * np.column_stack(
            [np.cos(p[0] * t), np.sin(p[0] * t), np.exp(p[1] * t)]
        )
        return wave @ np.linalg.lstsq(wave, u, rcond=None)[0] - u

    found = least_squares(model, [omega, omega / (2 * q)], x_scale=[omega, omega / q])
    return complex(*found.x)


@pytest.mark.gpu
@pytest.mark.parametrize(("real", "limit"), [(np.float64, 1e-13), (np.float32, 2e-5)])
@pytest.mark.parametrize("shape", [(6, 5, 4), (37, 12, 40)])
def test_a_gpu_attenuates_as_the_cpu_does(real, limit, shape):
    grid = box(shape)
    medium, n = varied(grid, air=True), shape[2] - 1
    how = Attenuation(BAND, 0.5, np.linspace(60, 90, n), np.linspace(40, 60, n))
    mass = medium.node_mass(grid.h)
    inverse = np.divide(1.0, mass, out=np.zeros_like(mass), where=mass > 0)
    u = np.random.default_rng(2).standard_normal((3, grid.n_node, 4)).astype(real)
    found = []
    for backend in ("cpu", "gpu"):
        steps = steps_of(grid, medium, how, backend, real)
        nothing = np.zeros(0)
        rows = nothing.astype(int), nothing, nothing
        steps.prepare(0.02, np.tile(inverse, 3), rows)
        steps.begin(np.zeros(0, dtype=int), np.zeros((0, 4)))
        steps.restore({**steps.state(), "u": u.copy()})
        for _ in range(6):
            steps.step(0.0)
        found.append(steps.state())
    # nothing relaxes in air, whatever its memory is
    rock_ = ~medium.air.ravel()[:, None]
    for state in found:
        state["memory"] = state["memory"] * rock_
    for name in ("u", "v", "memory"):
        scale = np.abs(found[0][name]).max()
        assert np.abs(found[1][name] - found[0][name]).max() < limit * scale


def test_memory_is_of_the_eight_kinds():
    grid = box((5, 5, 5))
    how = Attenuation(BAND, 0.5, np.full(4, 80.0), np.full(4, 40.0))
    _, relaxing = attenuated(rock(grid), how)
    own = weights(40.0, BAND)
    share = relaxing.mu / attenuated(rock(grid), how)[0].mu
    assert share[0, 0, 0] == pytest.approx(8 * own[0])
    assert share[1, 0, 1] == pytest.approx(8 * own[4])
    assert share[2, 3, 2] == pytest.approx(8 * own[5])
    assert times(BAND)[0] < 1 / (2 * np.pi * BAND[1])
    assert times(BAND)[-1] > 1 / (2 * np.pi * BAND[0])
