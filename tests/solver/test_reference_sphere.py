"""The exact sphere: against the half-space, and its own boundary conditions."""

from __future__ import annotations

import numpy as np
import pytest

from afterslip_solver.reference import PointSources, point_source_surface
from afterslip_solver.reference.sphere import (
    PointSource,
    full_space,
    full_space_gradient,
)

LAM, MU = 40e9, 30e9
NORMAL = np.array([0.3, -0.2, 0.9]) / np.sqrt(0.94)
SLIP = np.cross(NORMAL, [1.0, 0.0, 0.0]) / np.linalg.norm(np.cross(NORMAL, [1, 0, 0]))
MOMENT = MU * 1e9 * (np.outer(NORMAL, SLIP) + np.outer(SLIP, NORMAL))
AZIMUTH = np.array([0.3, 1.0, 2.0])


def test_full_space_is_in_equilibrium_and_its_gradient_is_its_slope():
    points = np.random.default_rng(0).normal(size=(6, 3))
    h = 1e-5
    found = full_space_gradient(points, MOMENT, LAM, MU)
    for k, step in enumerate(h * np.eye(3)):
        sides = [full_space(points + s * step, MOMENT, LAM, MU) for s in (1, -1)]
        slope = (sides[0] - sides[1]) / (2 * h)
        np.testing.assert_allclose(slope, found[:, :, k], rtol=1e-6, atol=1e-9 * 1e9)

    def stress(at):
        grad = full_space_gradient(at, MOMENT, LAM, MU)
        trace = np.trace(grad, axis1=1, axis2=2)[:, None, None]
        return LAM * trace * np.eye(3) + MU * (grad + grad.transpose(0, 2, 1))

    force = sum(
        (stress(points + step) - stress(points - step))[:, :, k] / (2 * h)
        for k, step in enumerate(h * np.eye(3))
    )
    assert np.abs(force).max() < 1e-6 * np.abs(stress(points)).max()


def half_space(distance, depth):
    xy = np.column_stack([distance * np.sin(AZIMUTH), distance * np.cos(AZIMUTH)])
    points = np.column_stack([xy, 0.0 * distance])
    source = PointSources(np.array([[0, 0, -depth]]), 1e9 * SLIP[None], NORMAL[None])
    east, north, up = point_source_surface(points, source, LAM / (2 * (LAM + MU))).T
    sin, cos = np.sin(AZIMUTH), np.cos(AZIMUTH)
    return np.column_stack([up, east * sin + north * cos, east * cos - north * sin])


def test_a_larger_sphere_is_nearer_to_the_half_space_in_proportion():
    distance, depth = np.array([1e3, 30e3, 60e3]), 50e3
    wanted = half_space(distance, depth)
    size = np.abs(wanted).max(axis=1)
    errors = []
    for radius in (5e5, 2e6):
        source = PointSource(radius, depth, LAM, MU, MOMENT)
        found = source.displacement(distance / radius, AZIMUTH)
        errors.append(np.abs(found - wanted).max(axis=1) / size)
    assert errors[1].max() < 0.08
    # curvature is of the first order
    ratio = errors[0] / errors[1]
    assert ratio == pytest.approx(4.0, abs=0.5)


def test_an_explosion_moves_all_azimuths_alike_and_nothing_across():
    source = PointSource(6e6, 6e5, LAM, MU, 1e20 * np.eye(3))
    found = source.displacement(np.full(3, 0.4), np.array([0.7, 2.9, 4.7]))
    assert np.abs(found[:, 2]).max() < 1e-12 * np.abs(found[:, 0]).max()
    np.testing.assert_allclose(found[1:], found[[0, 0]], rtol=1e-10, atol=1e-18)
