"""Where slip on a curved fault ends along strike, the mesh has lines."""

import numpy as np
import pytest

from afterslip_common.terms import KM
from afterslip_solver.mesh import Box, CurvedFault, Interface, MeshSize, build_mesh
from afterslip_solver.mesh.curved import place_curved
from afterslip_solver.mesh.fault import triangle_normals
from afterslip_solver.reference import dislocation_surface
from afterslip_solver.sources import potency, uniform_slip, unit_sources
from afterslip_solver.sources.basis import shape_values
from afterslip_solver.sources.window import edge_lines
from afterslip_solver.verification.curved import interface

BOX = Box((-600 * KM, 600 * KM), (-600 * KM, 600 * KM), 600 * KM)
SIZE = MeshSize(12 * KM, 300 * KM, 0.7)
FAULT = CurvedFault("main", interface(0.0), max_depth=40 * KM)


@pytest.fixture(scope="module")
def geometry():
    return build_mesh(BOX, [FAULT], SIZE, refine=1)


def test_slices_of_an_interface_are_the_interface():
    whole = Interface.fit(interface(0.0))
    low, high = whole.knots[0][[0, -1]]
    at = [low + 0.31 * (high - low), low + 0.7 * (high - low)]
    parts = whole.sliced(at)
    assert [part.knots[0][0] for part in parts] == [low, *at]
    assert [part.knots[0][-1] for part in parts] == [*at, high]
    depth = np.linspace(0.0, 45 * KM, 30)[:, None]
    for part in parts:
        s = np.linspace(part.knots[0][0], part.knots[0][-1], 40)
        exact = whole.position(s, depth)
        np.testing.assert_allclose(part.position(s, depth), exact, atol=1e-6)


def test_no_triangle_of_a_curved_fault_reaches_over_an_end_of_slip(geometry):
    fault = geometry.faults["main"]
    assert edge_lines(fault)[0]
    along = fault.along[np.searchsorted(fault.nodes, fault.triangles)]
    for end in (0.0, fault.length):
        assert (fault.along == end).sum() > 5
        within, beyond = (along >= end).all(axis=1), (along <= end).all(axis=1)
        assert (within ^ beyond).all()
        assert within.any()
        assert beyond.any()


def test_uniform_slip_on_a_curved_fault_has_its_potency_and_no_larger_value(geometry):
    fault, mesh = geometry.faults["main"], geometry.mesh
    slip = np.einsum("na,na->n", uniform_slip(fault, dip=1.0), fault.updip)
    assert slip.max() == pytest.approx(1.0)
    assert slip.min() >= 0.0
    assert not slip[fault.along < 0.0].any()
    corners, _ = rectangle()
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    area = 0.5 * np.linalg.norm(normals, axis=1).sum()
    # the lower edge has no line: slip falls over an element there
    assert potency(slip, fault, mesh).sum() == pytest.approx(area, rel=2e-3)
    patches = unit_sources(fault, 4, 2, "patch", ["dip"])
    total = np.sum([shape_values(source, fault) for source in patches], axis=0)
    np.testing.assert_allclose(total, slip, atol=1e-12)


def test_ground_above_the_end_of_slip_moves_as_by_slip_that_ends_there(geometry):
    """Against fine triangles of the interface itself, in a half-space."""
    fault, mesh = geometry.faults["main"], geometry.mesh
    corners, end = rectangle()
    updip = updip_of(corners)
    # 1 to 4 km above the fault, the end within 3 km: elements have edges of 6 km
    trench = 1.2e-6 * end**2
    points = np.array(
        [
            [trench + across * KM, end + along * KM]
            for across in (4.0, 7.0, 10.0)
            for along in (-3.0, -1.0, 1.0, 3.0)
        ]
    )
    exact = dislocation_surface(points, corners, np.repeat(updip[:, None], 6, axis=1))
    slip = uniform_slip(fault, dip=1.0)[np.searchsorted(fault.nodes, fault.triangles)]
    ours = dislocation_surface(points, mesh.nodes[fault.triangles[:, :3]], slip)
    error = np.linalg.norm(ours - exact, axis=1) / np.linalg.norm(exact, axis=1).max()
    # twice as large where slip falls linearly over an element
    assert error.max() < 0.06
    assert np.sqrt(np.mean(error**2)) < 0.03


def rectangle():
    """Corners of triangles of the slipping part, about 1 km, and where it ends, m."""
    placed = place_curved(FAULT, BOX, SIZE.fault)
    smooth, region = placed.smooth, placed.region
    s = np.linspace(region.lines[0], region.lines[-1], 121)
    depth = np.linspace(0.0, float(region.bottom.max()), 101)
    nodes = smooth.position(s[:, None], depth).reshape(-1, 3)
    number = np.arange(len(nodes)).reshape(len(s), len(depth))
    a, b = number[:-1, :-1].ravel(), number[1:, :-1].ravel()
    c, d = number[1:, 1:].ravel(), number[:-1, 1:].ravel()
    triangles = np.concatenate([np.stack([a, c, b], 1), np.stack([a, d, c], 1)])
    normals = triangle_normals(nodes, triangles)
    upwards = normals[:, 2] > 0.0
    triangles[~upwards] = triangles[~upwards][:, [0, 2, 1]]
    end = smooth.position(region.lines[-1], 0.0)
    return nodes[triangles], float(end[1])


def updip_of(corners):
    """(n, 3) unit vectors up dip of triangles whose normals point up."""
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normal /= np.linalg.norm(normal, axis=1, keepdims=True)
    strike = np.stack([-normal[:, 1], normal[:, 0], 0.0 * normal[:, 0]], axis=1)
    strike /= np.linalg.norm(strike, axis=1, keepdims=True)
    return np.cross(normal, strike)
