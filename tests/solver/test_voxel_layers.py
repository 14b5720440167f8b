"""Waves over a layer: wavenumbers against statics, voxels against wavenumbers."""

from typing import Any

import numpy as np
import pytest

from afterslip_common.geometry import Box
from afterslip_common.source_time import smooth_step
from afterslip_solver.materials import Layer
from afterslip_solver.reference import PointSources, point_source_surface
from afterslip_solver.reference.layered_waves import ElasticLayer, layered_waves
from afterslip_solver.waves.element import SCHEMES
from afterslip_solver.waves.grid import VoxelGrid
from afterslip_solver.waves.loads import moment_loads
from afterslip_solver.waves.march import Prepared, Recording
from afterslip_solver.waves.medium import sample_medium
from afterslip_solver.waves.record import receivers
from afterslip_solver.waves.sides import Sides

# LOH.1: a layer of 1 km, a double couple at 2 km
LOH1 = [(1e3, 4000.0, 2000.0, 2600.0), (np.inf, 6000.0, 3464.0, 2700.0)]
DEPTH = 2e3
POINTS = np.array([[2.0e3, 3.0e3], [-1.2e3, 4.0e3], [3.3e3, -0.7e3]])
STRIKE_SLIP = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]) * 1e18
OBLIQUE = np.array([[0.3, 0.2, -0.5], [0.2, -0.8, 0.4], [-0.5, 0.4, 0.5]]) * 1e18


def test_late_motion_over_equal_layers_is_the_static_half_space():
    whole = [ElasticLayer(bottom, 6000.0, 3464.0, 2700.0) for bottom in (1e3, np.inf)]
    normal, slip = np.array([[0.0, 0.6, 0.8]]), np.array([[0.6, -0.64, 0.48]])
    mu = whole[0].mu
    moment = mu * 1e7 * (slip.T @ normal + normal.T @ slip)
    times: Any = 0.1 * np.arange(101)
    found = layered_waves(POINTS, times, DEPTH, moment, smooth_step(2.0), whole)
    poisson = whole[0].lam / (2.0 * (whole[0].lam + mu))
    source = PointSources(np.array([[0.0, 0.0, -DEPTH]]), 1e7 * slip, normal)
    exact = point_source_surface(POINTS, source, poisson)
    largest = np.abs(exact).max()
    # what is left of a step falls with the square of time: 4e-3 after 10 s
    late = [np.abs(found[:, n] - exact).max() / largest for n in (50, 100)]
    assert late[1] < 5e-3
    assert 3.5 < late[0] / late[1] < 6.0
    # and nothing before the first wave of the nearest place
    quiet = times < np.hypot(3.373e3, DEPTH) / 6000.0
    assert np.abs(found[:, quiet]).max() < 1e-3 * largest


@pytest.mark.slow
@pytest.mark.parametrize("moment", [STRIKE_SLIP, OBLIQUE])
def test_voxels_make_the_waves_of_a_layer_over_a_half_space(moment):
    h, growth, duration = 250.0, smooth_step(3.0), 5.0
    grid = VoxelGrid.covering(Box((-11e3, 11e3), (-11e3, 11e3), 10e3), h)
    parts = [
        Layer(f"to {bottom:g} m", min(bottom, 10e3), vp, vs, rho)
        for bottom, vp, vs, rho in LOH1
    ]
    medium = sample_medium(grid, parts)
    sides = Sides(centre=(0.0, 0.0, -DEPTH))
    ready = Prepared.of(grid, medium, SCHEMES["selective"], sides)
    plan = ready.plan(duration, 0.1)
    at = np.array([[0.0, 0.0, -DEPTH]])
    record = Recording(receivers(grid, *POINTS.T), np.zeros(0, dtype=np.int64))
    loads = moment_loads(grid, medium, at, moment[None, None])
    run = ready.run(plan, loads, growth, record)
    assert run is not None
    found = run.displacement[0].transpose(0, 2, 1).astype(float)
    times: Any = 0.1 * np.arange(plan.samples)
    layers = [ElasticLayer(*values) for values in LOH1]
    exact = layered_waves(POINTS, times, DEPTH, moment, growth, layers)
    error = np.linalg.norm(found - exact) / np.linalg.norm(exact)
    assert error < 0.05
