"""Displacement inside the half-space: at the surface, in the equations, by symmetry."""

from itertools import product

import numpy as np
import pytest

from afterslip_solver.reference import (
    PointSources,
    interior_displacement,
    point_source_surface,
)


def source():
    normal = np.array([[0.3, 0.5, 0.81]])
    normal /= np.linalg.norm(normal)
    potency = np.cross(normal, [[1.0, 0.0, 0.2]]) * 1e9
    return PointSources(np.array([[1e3, 2e3, -1e4]]), potency, normal)


@pytest.mark.parametrize("poisson", [0.1, 0.25, 0.45])
def test_at_the_surface_it_is_what_boussinesq_and_cerruti_give(poisson):
    xy = np.random.default_rng(0).uniform(-80e3, 80e3, (30, 2))
    exact = point_source_surface(xy, source(), poisson)
    u = interior_displacement(np.column_stack((xy, np.zeros(30))), source(), poisson)
    assert np.abs(u - exact).max() < 1e-13 * np.abs(exact).max()


@pytest.mark.parametrize("poisson", [0.25, 0.4])
def test_inside_it_is_in_equilibrium(poisson):
    at, h = np.array([5e3, -4e3, -6e3]), 20.0
    steps = list(product((-1, 0, 1), repeat=3))
    values = interior_displacement(
        np.array([at + h * np.array(s) for s in steps]), source(), poisson
    )
    u = dict(zip(steps, values, strict=True))
    axes = np.eye(3, dtype=int)

    def second(a, b, c):
        if a == b:
            return (u[tuple(axes[a])] - 2 * u[0, 0, 0] + u[tuple(-axes[a])])[c] / h**2
        corners = [
            p * q * u[tuple(p * axes[a] + q * axes[b])][c]
            for p, q in product((1, -1), repeat=2)
        ]
        return sum(corners) / (4 * h**2)

    for i in range(3):
        laplace = sum(second(a, a, i) for a in range(3))
        divergence = sum(second(i, b, b) for b in range(3))
        size = abs(laplace) + abs(divergence)
        # differences over 20 m of a field that varies over 10 km
        assert abs(laplace + divergence / (1 - 2 * poisson)) < 1e-3 * size + 1e-11


def test_opening_is_refused():
    opening = PointSources(*(np.array([[0.0, 0.0, -1.0]]) for _ in range(3)))
    with pytest.raises(ValueError, match="opening"):
        interior_displacement(np.array([[1.0, 1.0, -1.0]]), opening)
