"""Points in elements, walls of the domain, quality."""

import dataclasses
from typing import Any

import numpy as np
import pytest

from afterslip_common.terms import KM
from afterslip_solver.mesh import (
    Box,
    Locator,
    MeshError,
    MeshSize,
    PlaneFault,
    boundary_conditions,
    build_mesh,
    check_quality,
    quality_report,
    surface_trace,
)
from afterslip_solver.mesh.numbering import second_order
from afterslip_solver.testing.box import box_mesh


@pytest.fixture(scope="module")
def mesh():
    box = Box((-100 * KM, 100 * KM), (-100 * KM, 100 * KM), 80 * KM)
    fault = PlaneFault("main", 0.0, 0.0, 0.0, 20.0, 25.0, 40 * KM, 20 * KM)
    return build_mesh(box, [fault], MeshSize(5 * KM, 60 * KM, 0.5)).mesh


def quadratic(points):
    x, y, z = points.T / (100 * KM)
    return 1.0 + x - 2 * y + x * y - 3 * z * z + 2 * y * z + 0.5 * x * x


def test_weights_reproduce_quadratic_fields(mesh):
    rng = np.random.default_rng(7)
    points = rng.uniform([-1e5, -1e5, -8e4], [1e5, 1e5, 0.0], (4000, 3))
    points[:1000, 2] = 0.0
    points[1000:1200, 0] = 1e5
    element, nodes, weights = Locator(mesh).find(points)
    found = (quadratic(mesh.nodes)[nodes] * weights).sum(axis=1)
    np.testing.assert_allclose(found, quadratic(points), atol=1e-12)
    np.testing.assert_array_equal(nodes, mesh.elements[element])


def test_nodes_themselves_are_found(mesh):
    """Nodes lie on vertices, edges and faces of many elements at once."""
    _, nodes, weights = Locator(mesh).find(mesh.nodes)
    here = (nodes == np.arange(len(mesh.nodes))[:, None]).any(axis=1)
    assert here.all()
    np.testing.assert_allclose(np.abs(weights).max(axis=1), 1.0, atol=1e-6)


def test_a_hair_above_the_free_surface_still_counts(mesh):
    _, _, weights = Locator(mesh).find(np.array([[10.0, 20.0, 1e-4]]))
    assert weights.sum() == pytest.approx(1.0)


def test_points_outside_are_named(mesh):
    points = np.array([[0.0, 0.0, -1.0], [0.0, 0.0, 50.0], [2e5, 0.0, -1.0]])
    with pytest.raises(MeshError, match=r"2 points .* point 1 at x = 0.000"):
        Locator(mesh).find(points)


def test_rollers_hold_what_crosses_the_wall(mesh):
    fixed = boundary_conditions(mesh, "roller", "fixed")
    x, y, z = mesh.nodes.T
    np.testing.assert_array_equal(fixed[:, 0], (np.abs(x) == 1e5) | (z == -8e4))
    np.testing.assert_array_equal(fixed[:, 1], (np.abs(y) == 1e5) | (z == -8e4))
    np.testing.assert_array_equal(fixed[:, 2], z == -8e4)


def test_fixed_sides_leave_the_surface_free(mesh):
    fixed = boundary_conditions(mesh, "fixed", "free")
    inner = (np.abs(mesh.nodes[:, :2]) < 1e5).all(axis=1)
    assert not fixed[inner].any()
    assert fixed[~inner].all()


@pytest.mark.parametrize(
    ("sides", "bottom", "loose"),
    [("roller", "free", 1), ("free", "roller", 3), ("free", "free", 6)],
)
def test_rigid_motion_is_refused(mesh, sides, bottom, loose):
    with pytest.raises(MeshError, match=rf"{loose} of 6 motions"):
        boundary_conditions(mesh, sides, bottom)


def test_rollers_need_upright_walls():
    box = box_mesh((3, 3, 3), (2.0, 2.0, 2.0))
    vertices = box.nodes[: box.n_vertex].copy()
    vertices[:, 0] *= 1.0 - 0.2 * vertices[:, 2]
    leaning = second_order(vertices, box.cells)
    with pytest.raises(MeshError, match="use sides: fixed"):
        boundary_conditions(leaning, "roller", "fixed")
    assert boundary_conditions(leaning, "fixed", "fixed").any()


def test_unknown_support_is_refused(mesh):
    sliding: Any = "sliding"
    with pytest.raises(MeshError, match=r"boundary\.sides: 'sliding' is not one of"):
        boundary_conditions(mesh, sliding, "fixed")


def test_quality_of_a_regular_tetrahedron_is_one():
    corners = np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]], float)
    report = quality_report(second_order(corners, np.array([[0, 1, 2, 3]])))
    assert report.gamma_min == pytest.approx(1.0)
    assert report.aspect_max == pytest.approx(1.0)
    assert report.edge_min == pytest.approx(np.sqrt(8.0))


def test_quality_of_a_corner_tetrahedron():
    corners = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], float)
    report = quality_report(second_order(corners, np.array([[0, 1, 2, 3]])))
    inner = 1.0 / (3.0 + np.sqrt(3.0))
    assert report.gamma_min == pytest.approx(3.0 * inner / (np.sqrt(3.0) / 2.0))
    assert report.aspect_max == pytest.approx(1.0 / (np.sqrt(12.0) * inner))
    assert report.volume == pytest.approx(1.0 / 6.0)


def test_inverted_element_is_refused_with_its_place():
    box = box_mesh((2, 2, 2), (2e3, 2e3, 2e3))
    elements = box.elements.copy()
    elements[5, [0, 1]] = elements[5, [1, 0]]
    bad = dataclasses.replace(box, elements=elements)
    with pytest.raises(MeshError, match=r"1 elements are inverted.*element 5"):
        check_quality(bad)


def test_flat_element_is_refused():
    box = box_mesh((2, 2, 2))
    vertices = box.nodes[: box.n_vertex].copy()
    vertices[:, 2] *= 1e-9
    with pytest.raises(MeshError, match="48 are flat"):
        check_quality(second_order(vertices, box.cells))


def test_surface_is_found_on_a_graded_mesh(mesh):
    surface = surface_trace(mesh)
    assert np.all(mesh.nodes[surface.nodes, 2] == 0.0)
