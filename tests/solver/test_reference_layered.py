"""Layered dislocations against the half-space, a series, and the limits of time."""

import numpy as np
import pytest

from afterslip_solver.reference import (
    LongFault,
    PointSources,
    Stratum,
    layered_displacement,
    point_source_surface,
)

LAM, MU = 40e9, 30e9
FIRM = Stratum(float("inf"), LAM, MU)
SOFT = Stratum(float("inf"), LAM, MU, 1e19)
LID = Stratum(25e3, LAM, MU)
TAU = SOFT.viscosity / MU


def oblique(depth=1e4):
    normal = np.array([[0.3, 0.5, 0.81]])
    normal /= np.linalg.norm(normal)
    potency = np.cross(normal, [[1.0, 0.0, 0.2]]) * 1e9
    return PointSources(np.array([[1e3, 2e3, -depth]]), potency, normal)


def points(n=20, span=60e3):
    return np.random.default_rng(0).uniform(-span, span, (n, 2))


@pytest.mark.parametrize("bottoms", [(), (15e3,), (6e3, 30e3)])
def test_equal_layers_are_the_half_space_for_a_source_in_any_of_them(bottoms):
    strata = [*(Stratum(b, LAM, MU) for b in bottoms), FIRM]
    exact = point_source_surface(points(), oblique(), LAM / 2 / (LAM + MU))
    u = layered_displacement(points(), oblique(), strata, np.zeros(1))[0]
    # a spline over distance between 160 nodes leaves some 1e-7
    assert np.abs(u - exact).max() < 1e-6 * np.abs(exact).max()


def test_a_maxwell_layer_starts_elastic_and_ends_without_rigidity():
    u = layered_displacement(
        points(), oblique(), [LID, SOFT], TAU * np.array([0.0, 1e-7, 1e5])
    )
    fluid = Stratum(float("inf"), LAM + 2 / 3 * MU, 1e-5 * MU)
    limit = layered_displacement(points(), oblique(), [LID, fluid], np.zeros(1))[0]
    scale = np.abs(u[0]).max()
    assert np.abs(u[1] - u[0]).max() < 1e-6 * scale
    # 1e-5 of the rigidity is left in either; without gravity a plate on a fluid floats
    # up without limit, so horizontal motion only
    change = np.abs(limit - u[0])[:, :2].max()
    assert np.abs(u[2] - limit)[:, :2].max() < 5e-3 * change


def test_a_row_of_sources_is_the_series_of_a_long_strike_slip_fault():
    # a line of strike-slip at one depth: the derivative of the series in that depth
    depth, plate = 12e3, LID.bottom
    y = np.concatenate([s * np.geomspace(1e3, 8e5, 121) for s in (-1.0, 1.0)])
    y = np.sort(np.append(y, 0.0))
    weight = np.gradient(y)
    weight[[0, -1]] = 0.5 * np.diff(y)[[0, -1]]
    # trapezium on a smooth map: geometric spacing within the field's own scale
    n = len(y)
    sources = PointSources(
        np.column_stack((np.zeros(n), y, np.full(n, -depth))),
        weight[:, None] * [[0.0, 1.0, 0.0]],
        np.repeat([[1.0, 0.0, 0.0]], n, axis=0),
    )
    x = np.array([5e3, 20e3, 50e3])
    times = TAU * np.array([0.0, 2.0])
    u = layered_displacement(
        np.column_stack((x, np.zeros(3))), sources, [LID, SOFT], times
    )[:, :, 1]
    h = 1.0
    tau = 2.0 * TAU
    exact = (
        LongFault(depth + h, plate, tau).step(x, times)
        - LongFault(depth - h, plate, tau).step(x, times)
    ) / (2.0 * h)
    # the trapezium leaves a few parts in a thousand, the row's end (x d / L^2) one
    assert np.abs(u - exact).max() < 1e-2 * np.abs(exact).max()


def test_opening_and_sources_on_a_boundary_are_refused():
    opening = PointSources(
        np.array([[0.0, 0.0, -1e4]]),
        np.array([[0.0, 0.0, 1.0]]),
        np.array([[0.0, 0.0, 1.0]]),
    )
    with pytest.raises(ValueError, match="opening"):
        layered_displacement(points(), opening, [FIRM], np.zeros(1))
    with pytest.raises(ValueError, match="boundary"):
        layered_displacement(points(), oblique(25e3), [LID, SOFT], np.zeros(1))


def test_the_integral_of_a_long_faults_curve_has_the_curve_as_its_rate():
    fault = LongFault(15e3, 30e3, 1e9)
    x, times, h = np.array([2e3, 4e4, -1e5]), np.array([1e8, 1e9, 2e10]), 1e5
    rate = (fault.ramp(x, times + h) - fault.ramp(x, times - h)) / (2.0 * h)
    # central differences of step h / tau = 1e-4
    assert np.abs(rate - fault.step(x, times)).max() < 1e-7


def test_a_long_fault_through_the_plate_ends_as_two_blocks():
    fault = LongFault(30e3, 30e3, 1e9)
    u = fault.step(np.array([2e3, -2e3, 5e4]), np.array([150e9]), images=600)
    # images reach 2 n H = 9,000 km: arctan(x / 9000 km) / pi is missing
    assert np.abs(u[0] - [0.5, -0.5, 0.5]).max() < 5e-3
