"""Structured boxes, numbering and sides of faults."""

import numpy as np
import pytest

from afterslip_common.geometry import PlaneFault
from afterslip_solver.mesh import (
    MeshError,
    describe_spanning,
    split_nodes,
    surface_trace,
)
from afterslip_solver.mesh.fault import plane_fault_mesh, triangle_normals
from afterslip_solver.mesh.numbering import second_order, signed_volumes
from afterslip_solver.mesh.topology import boundary_faces, cell_edges, edge_keys
from afterslip_solver.model import TET_EDGES
from afterslip_solver.testing.box import box_mesh, box_with_fault

FAULTS = [
    {},
    {"dip": 45.0, "width": np.sqrt(2.0)},
    {"top": 0.0, "width": 2.0},
    {
        "n": (8, 6, 4),
        "lengths": (8.0, 6.0, 4.0),
        "dip": 45.0,
        "top": 0.0,
        "width": 2.0 * np.sqrt(2.0),
    },
]


def test_volumes_fill_the_box_and_all_are_positive():
    mesh = box_mesh((3, 4, 5), (3.0, 8.0, 2.0))
    volume = signed_volumes(mesh.nodes, mesh.cells)
    assert volume.min() > 0.0
    assert volume.sum() == pytest.approx(48.0)
    assert mesh.nodes[:, 2].max() == 0.0


def test_midpoints_follow_the_vertices_and_lie_halfway():
    mesh = box_mesh((2, 2, 2), (1.0, 2.0, 3.0))
    for local, (a, b) in enumerate(TET_EDGES):
        ends = mesh.nodes[mesh.elements[:, [a, b]]]
        np.testing.assert_allclose(
            mesh.nodes[mesh.elements[:, 4 + local]], ends.mean(axis=1)
        )
    assert mesh.elements[:, 4:].min() == mesh.n_vertex
    assert mesh.cells.max() == mesh.n_vertex - 1


def test_euler_characteristic_of_a_ball():
    mesh = box_mesh((3, 2, 4))
    n_edge = len(np.unique(edge_keys(cell_edges(mesh.cells), mesh.n_vertex)))
    outer = len(boundary_faces(mesh.cells, mesh.n_vertex)[0])
    n_face = (4 * len(mesh.cells) + outer) // 2
    assert mesh.n_vertex - n_edge + n_face - len(mesh.cells) == 1
    assert len(mesh.nodes) == mesh.n_vertex + n_edge


def test_numbering_corrects_wrong_orientation():
    box = box_mesh((2, 2, 2))
    cells = box.cells.copy()
    cells[::3] = cells[::3][:, [1, 0, 2, 3]]
    mesh = second_order(box.nodes[: box.n_vertex], cells)
    assert signed_volumes(mesh.nodes, mesh.cells).min() > 0.0


def test_numbering_refuses_loose_vertices():
    box = box_mesh((2, 2, 2))
    vertices = np.vstack([box.nodes[: box.n_vertex], [[9.0, 9.0, 9.0]]])
    with pytest.raises(MeshError, match="1 vertices belong to no tetrahedron"):
        second_order(vertices, box.cells)


def test_surface_faces_cover_the_top_and_point_up():
    mesh = box_mesh((3, 4, 2), (3.0, 4.0, 2.0))
    surface = surface_trace(mesh)
    normals = triangle_normals(mesh.nodes[surface.nodes], surface.faces)
    assert np.all(normals[:, 2] > 0.0)
    assert 0.5 * normals[:, 2].sum() == pytest.approx(12.0)
    assert np.all(mesh.nodes[surface.nodes, 2] == 0.0)
    assert np.all(np.diff(surface.nodes) > 0)


@pytest.mark.parametrize("options", FAULTS)
def test_sides_agree_with_the_signed_distance(options):
    geometry = box_with_fault(**options)
    mesh, fault, split = (
        geometry.mesh,
        geometry.faults["main"],
        geometry.splits["main"],
    )
    centre = mesh.nodes[mesh.cells[split.elements]].mean(axis=1)
    distance = (centre - mesh.nodes[fault.nodes[0]]) @ fault.normal[0]
    side = np.broadcast_to(0.5 * np.sign(distance)[:, None], split.sign.shape)
    decided = split.sign != 0.0
    np.testing.assert_array_equal(split.sign[decided], side[decided])
    assert np.all(split.index[decided] >= 0)


@pytest.mark.parametrize("options", FAULTS)
def test_only_the_rim_inside_the_body_keeps_together(options):
    geometry = box_with_fault(**options)
    fault, split = geometry.faults["main"], geometry.splits["main"]
    split_at = np.zeros(len(fault.nodes), dtype=bool)
    split_at[split.index[split.sign != 0.0]] = True
    ends = (fault.along, fault.down)
    rim = np.zeros(len(fault.nodes), dtype=bool)
    for axis, values in enumerate(ends):
        rim |= np.isclose(values, values.max())
        # the upper line may lie on the free surface, where the body is cut through
        z = geometry.mesh.nodes[fault.nodes, 2]
        rim |= np.isclose(values, values.min()) & ((axis == 0) | (z < -1e-9))
    np.testing.assert_array_equal(split_at, ~rim)


def test_an_element_that_touches_by_a_single_node_takes_a_side():
    geometry = box_with_fault()
    touched = (geometry.splits["main"].sign != 0.0).sum(axis=1)
    assert 1 in touched


def test_axes_are_right_handed_and_point_to_the_hanging_wall():
    plane = PlaneFault("f", 0.0, 0.0, 1.0, 37.0, 30.0, 2.0, 1.0)
    strike, updip, normal = plane.axes
    assert np.cross(strike, updip) @ normal == pytest.approx(1.0)
    assert normal[2] > 0.0
    assert updip[2] == pytest.approx(0.5)
    right = np.array([np.cos(np.radians(37.0)), -np.sin(np.radians(37.0)), 0.0])
    assert updip @ right == pytest.approx(-np.cos(np.radians(30.0)))
    vertical = PlaneFault("f", 0.0, 0.0, 1.0, 0.0, 90.0, 2.0, 1.0)
    np.testing.assert_allclose(vertical.axes[2], [1.0, 0.0, 0.0], atol=1e-15)


def test_fault_on_the_wall_of_the_domain_is_refused():
    mesh = box_mesh((2, 2, 2), (2.0, 2.0, 2.0))
    element, local = boundary_faces(mesh.cells, mesh.n_vertex)
    from afterslip_solver.mesh.topology import cell_faces

    faces = cell_faces(mesh.cells)[element, local]
    wall = faces[(mesh.nodes[faces, 0] == 1.0).all(axis=1)]
    plane = PlaneFault("wall", 1.0, 0.0, 0.0, 0.0, 90.0, 2.0, 2.0)
    fault = plane_fault_mesh(mesh, plane, wall)
    with pytest.raises(MeshError, match="do not lie between two tetrahedra"):
        split_nodes(mesh, fault)


def test_triangles_that_are_no_faces_are_refused():
    mesh = box_mesh((2, 2, 2), (2.0, 2.0, 2.0))
    plane = PlaneFault("f", 0.0, 0.0, 0.0, 0.0, 90.0, 2.0, 2.0)
    corners = np.flatnonzero(mesh.nodes[: mesh.n_vertex, 0] == 0.0)[[0, 2, 6]]
    with pytest.raises(MeshError, match="does not conform"):
        plane_fault_mesh(mesh, plane, corners[None])


def test_a_domain_of_one_element_between_its_sides_is_said():
    assert describe_spanning(box_mesh((2, 2, 2), (60e3, 40e3, 20e3))) == []
    (said,) = describe_spanning(box_mesh((3, 2, 1), (60e3, 40e3, 20e3)))
    # six tetrahedra a cube, each of which contains the cube's diagonal
    assert said.startswith("36 of 36 elements reach from top to bottom")
    assert "20 km" in said
    west, south = describe_spanning(box_mesh((1, 1, 4), (60e3, 40e3, 20e3)))
    assert "from west to east" in west
    assert "from south to north" in south
