"""The map from the plane to a sphere, and directions on it."""

import numpy as np

from afterslip_common.sphere import EARTH_RADIUS, carried_axes, onto_sphere

CENTRE = np.array([0.0, 0.0, -EARTH_RADIUS])


def places():
    rng = np.random.default_rng(1)
    xy = rng.uniform(-6e6, 6e6, (40, 2))
    xy[0] = 0.0
    return np.column_stack([xy, rng.uniform(-2e6, 1e4, 40)])


def test_arcs_from_the_origin_and_heights_keep_their_lengths():
    plane = places()
    found = onto_sphere(plane, EARTH_RADIUS) - CENTRE
    radius = np.linalg.norm(found, axis=1)
    arc = np.arctan2(np.hypot(found[:, 0], found[:, 1]), found[:, 2]) * EARTH_RADIUS
    np.testing.assert_allclose(radius, EARTH_RADIUS + plane[:, 2], rtol=1e-14)
    np.testing.assert_allclose(arc, np.hypot(plane[:, 0], plane[:, 1]), atol=1e-6)
    cross = found[:, 0] * plane[:, 1] - found[:, 1] * plane[:, 0]
    np.testing.assert_allclose(cross, 0.0, atol=1e-1)


def test_axes_are_orthonormal_and_the_last_is_away_from_the_centre():
    plane = places()
    axes = carried_axes(plane[:, 0], plane[:, 1], EARTH_RADIUS)
    unit = np.einsum("nac,nbc->nab", axes, axes)
    np.testing.assert_allclose(unit, np.broadcast_to(np.eye(3), unit.shape), atol=1e-14)
    away = onto_sphere(plane, EARTH_RADIUS) - CENTRE
    away /= np.linalg.norm(away, axis=1, keepdims=True)
    np.testing.assert_allclose(axes[:, 2], away, atol=1e-14)
    np.testing.assert_allclose(np.linalg.det(axes), 1.0)


def test_the_direction_away_from_the_origin_is_the_tangent_of_the_arc():
    plane = places()[1:]
    plane[:, 2] = 0.0
    direction = plane[:, :2] / np.linalg.norm(plane[:, :2], axis=1, keepdims=True)
    axes = carried_axes(plane[:, 0], plane[:, 1], EARTH_RADIUS)
    away = np.einsum("na,nac->nc", direction, axes[:, :2])
    step = np.zeros_like(plane)
    step[:, :2] = direction
    moved = onto_sphere(plane + step, EARTH_RADIUS)
    moved -= onto_sphere(plane - step, EARTH_RADIUS)
    np.testing.assert_allclose(away, moved / 2.0, atol=1e-8)


def test_a_large_sphere_is_flat():
    plane = places() * 1e-3
    np.testing.assert_allclose(onto_sphere(plane, 1e15), plane, atol=1e-6)
