"""Faults as points, and materials of voxels."""

import numpy as np
import pytest
from voxel_cases import box

from afterslip_common.geometry import PlaneFault
from afterslip_solver.materials import Body, Layer
from afterslip_solver.mesh import CurvedFault, Interface
from afterslip_solver.waves.fault import curved_points, plane_points
from afterslip_solver.waves.medium import sample_medium

SLOW = Layer("slow", 700.0, 3000.0, 1500.0, 2200.0)
FAST = Layer("fast", 9e3, 6000.0, 3400.0, 2700.0)


def sheet():
    """Points of a plane that dips 30 degrees to the east under 20 x 12 km."""
    x, y = np.meshgrid(np.linspace(0.0, 12e3, 25), np.linspace(-10e3, 10e3, 41))
    z = -2e3 - x.ravel() * np.tan(np.radians(30.0))
    return np.column_stack([x.ravel(), y.ravel(), z])


def test_a_flat_interface_has_the_cells_of_a_plane():
    outline = np.array([[1e3, -8e3], [10e3, -8e3], [10e3, 8e3], [1e3, 8e3]])
    found = curved_points(CurvedFault("f", sheet(), outline), 500.0)
    plane = plane_points(
        PlaneFault("p", 1e3, 0.0, 2577.0, 0.0, 30.0, 16e3, 10392.0), 500.0
    )
    for name in ("strike", "updip", "normal"):
        ours, theirs = getattr(found, name), getattr(plane, name)[0]
        np.testing.assert_allclose(ours, np.tile(theirs, (len(ours), 1)), atol=0.02)
    # an outline's ends are squared off, so that lengths agree to some percent
    assert found.area.sum() == pytest.approx(plane.area.sum(), rel=0.08)
    assert found.area.sum() == pytest.approx(found.length * found.width, rel=0.01)
    depth = -found.position[:, 2]
    expected = 2e3 + found.position[:, 0] * np.tan(np.radians(30.0))
    np.testing.assert_allclose(depth, expected, atol=20.0)


def test_voxels_on_a_boundary_have_the_mean_of_both_sides():
    grid = box((5, 5, 7), 500.0)
    found = sample_medium(grid, [SLOW, FAST])
    rho = found.rho[:, 0, 0]
    # from the bottom: the boundary at 700 m is in the second voxel from above
    np.testing.assert_allclose(rho[[0, -3, -1]], [2700.0, 2700.0, 2200.0])
    assert rho[-2] == pytest.approx(0.5 * (2200.0 + 2700.0))
    mu = found.mu[-1, 2, 2]
    assert mu == pytest.approx(2200.0 * 1500.0**2, rel=1e-6)
    assert found.speeds()[0] == pytest.approx(1500.0, rel=1e-5)


def test_bodies_override_layers():
    grid = box((31, 31, 21), 500.0)
    body = Body("slab", Interface.fit(sheet()), 2e3, 7000.0, 4000.0, 3300.0)
    found = sample_medium(
        grid, [SLOW, Layer("fast", 11e3, 6000.0, 3400.0, 2700.0)], [body]
    )
    place = np.array([4e3, 0.0, -2e3 - 4e3 * np.tan(np.radians(30.0)) - 1.1e3])
    (i, j, k), _ = (part[0] for part in grid.cells(place[None]))
    assert found.rho[k, j, i] == pytest.approx(3300.0)
    above = np.array([4e3, 0.0, -2e3])
    (i, j, k), _ = (part[0] for part in grid.cells(above[None]))
    assert found.rho[k, j, i] == pytest.approx(2700.0)
