"""Faces of a mesh follow sides of bodies, and bottoms of layers that gmsh lacks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from afterslip_common.geometry import Box
from afterslip_common.terms import KM
from afterslip_solver.mesh import CurvedFault, MeshSize, build_mesh, quality_report
from afterslip_solver.mesh.conform import Boundary, boundaries_of, conform
from afterslip_solver.mesh.mesher import RawMesh
from afterslip_solver.mesh.numbering import oriented, second_order, signed_volumes
from afterslip_solver.mesh.refine import refine_uniformly
from afterslip_solver.testing.box import box_mesh

BOX = Box((-50 * KM, 50 * KM), (-30 * KM, 30 * KM), 60 * KM)


@dataclass(frozen=True)
class Ball:
    """A plate whose top is the surface of a ball, and whose bottom a smaller one."""

    radius: float
    thickness: float

    def across(self, points):
        centre = np.array([3 * KM, -2 * KM, -28 * KM])
        return self.radius - np.linalg.norm(points - centre, axis=1)


@dataclass(frozen=True)
class Dipping:
    """A plate with a plane top that dips to the east."""

    thickness: float
    slope: float = 0.4

    def across(self, points):
        down = -points[:, 2] - 11 * KM - self.slope * points[:, 0]
        return down / np.hypot(1.0, self.slope)


def raw(n=10):
    """Return a box of elements of about 6 km, with one surface through it."""
    mesh = box_mesh((n, n * 6 // 10, n), (100 * KM, 60 * KM, 60 * KM))
    vertices = mesh.nodes[: mesh.n_vertex].copy()
    return RawMesh(vertices, mesh.cells.copy(), {})


def crossing(mesh, distance, rounding=1.0):
    """Elements with vertices on both sides of a surface."""
    value = distance(mesh.vertices)[mesh.cells]
    return (value > rounding).any(axis=1) & (value < -rounding).any(axis=1)


def volume(mesh):
    cells = oriented(mesh.vertices, mesh.cells)
    return signed_volumes(mesh.vertices, cells)


def faces_meet(cells):
    """Whether each face belongs to two elements, or to one on the outside."""
    corners = np.array([(0, 1, 2), (0, 1, 3), (0, 2, 3), (1, 2, 3)])
    faces = np.sort(cells[:, corners].reshape(-1, 3), axis=1)
    return np.unique(faces, axis=0, return_counts=True)


def test_no_element_is_on_both_sides_of_a_body():
    ball = Ball(19 * KM, 8 * KM)
    before = raw()
    boundaries = boundaries_of([ball], [])
    after, faces = conform(before, boundaries, BOX)
    for boundary in boundaries:
        # a few vertices that must not move are off by a fifth of an edge at most
        assert not crossing(after, boundary.distance, 0.2 * 6 * KM).any()
    found, count = faces_meet(after.cells)
    assert count.max() == 2
    outside = found[count == 1]
    on_wall = [
        (np.abs(after.vertices[outside][..., axis] - at) < 1e-6).all(axis=1)
        for axis, at in enumerate((BOX.x[0], BOX.y[0], 0.0))
    ] + [
        (np.abs(after.vertices[outside][..., axis] - at) < 1e-6).all(axis=1)
        for axis, at in enumerate((BOX.x[1], BOX.y[1], -BOX.depth))
    ]
    assert np.any(on_wall, axis=0).all()
    np.testing.assert_allclose(volume(after).sum(), volume(before).sum(), rtol=1e-12)
    assert volume(after).min() > 0.0
    assert all(len(some) for some in faces)


def test_the_volume_of_a_body_converges_with_the_square_of_the_edges():
    """Faces are chords of the ball; with steps the error falls with the edges."""
    ball, off = Ball(19 * KM, 19.5 * KM), []
    exact = 4.0 / 3.0 * np.pi * ball.radius**3
    for n in (10, 20):
        after, _ = conform(raw(n), boundaries_of([ball], []), BOX)
        centres = after.vertices[after.cells].mean(axis=1)
        off.append(abs(volume(after)[ball.across(centres) > 0.0].sum() / exact - 1.0))
    assert off[0] < 0.06
    assert off[1] < off[0] / 2.5


def test_a_mesh_that_follows_a_boundary_stays_as_it_is():
    before = raw()
    bottom = 24 * KM  # of a plane of vertices
    after, (faces,) = conform(before, boundaries_of([], [bottom]), BOX)
    assert after is before
    assert np.all(after.vertices[faces][..., 2] == -bottom)


def test_a_body_has_precedence_over_a_layer():
    plate = Dipping(12 * KM)
    depth = 21 * KM
    boundaries = boundaries_of([plate], [depth])
    after, _ = conform(raw(), boundaries, BOX)
    layer = boundaries[-1]
    cut = crossing(after, layer.distance, 0.2 * 6 * KM)
    centres = after.vertices[after.cells].mean(axis=1)
    across = plate.across(centres)
    inner = (across > 0.0) & (across < plate.thickness)
    assert not (cut & ~inner).any()
    assert (cut & inner).any()


def test_later_bodies_lie_over_earlier_ones():
    wide, narrow = Dipping(30 * KM), Dipping(10 * KM)
    first, second, *_ = boundaries_of([wide, narrow], [])
    assert isinstance(first, Boundary)
    assert first.covers == second.covers == ()
    at = np.array([[0.0, 0.0, -15 * KM]])
    assert not boundaries_of([wide, narrow], [])[-1].exists(at)[0]
    assert boundaries_of([narrow, wide], [])[0].exists(at)[0]


def test_triangles_of_faults_are_cut_with_the_elements():
    before = raw()
    middle = 0.0  # y of a plane of vertices
    on = np.abs(before.vertices[:, 1] - middle) < 1.0
    corners = np.array([(0, 1, 2), (0, 1, 3), (0, 2, 3), (1, 2, 3)])
    faces = np.sort(before.cells[:, corners].reshape(-1, 3), axis=1)
    faces = np.unique(faces[on[faces].all(axis=1)], axis=0)
    before.surfaces["fault"] = faces
    after, _ = conform(before, boundaries_of([Dipping(12 * KM)], []), BOX)
    triangles = after.surfaces["fault"]
    assert len(triangles) > len(faces)
    assert np.array_equal(after.vertices[: on.size][on], before.vertices[on])
    first, second, third = (after.vertices[triangles[:, k]] for k in range(3))
    normal = np.cross(second - first, third - first)
    area = 0.5 * np.linalg.norm(normal, axis=1).sum()
    assert area == pytest.approx(100 * KM * 60 * KM)
    every, count = faces_meet(after.cells)
    known = {tuple(face) for face in every[count == 2]}
    assert {tuple(face) for face in np.sort(triangles, axis=1)} <= known


def test_new_vertices_of_a_refined_mesh_move_onto_the_boundary():
    ball = Ball(19 * KM, 19.5 * KM)
    boundary = boundaries_of([ball], [])[0]
    after, (faces, _) = conform(raw(), boundaries_of([ball], []), BOX)
    mesh = second_order(after.vertices, after.cells)
    fine, surfaces, left = refine_uniformly(
        mesh, {"ball": faces}, {"ball": lambda at: boundary.project(at, BOX)}
    )
    new = np.unique(surfaces["ball"])
    new = new[new >= mesh.n_vertex]
    off = np.abs(boundary.distance(fine.nodes[new]))
    assert left < 0.1 * len(new)
    assert np.quantile(off, 0.9) < 1.0
    assert signed_volumes(fine.nodes, fine.cells).min() > 0.0


def test_the_built_mesh_follows_a_plate_below_a_curved_fault():
    depth, along = np.meshgrid(np.linspace(0, 60, 13), np.linspace(-60, 60, 13))
    points = np.column_stack([2.0 * depth.ravel(), along.ravel(), -depth.ravel()]) * KM
    fault = CurvedFault("slab", points, None, 25 * KM)
    box = Box((-300 * KM, 300 * KM), (-300 * KM, 300 * KM), 300 * KM)

    @dataclass(frozen=True)
    class Under:
        thickness: float = 25 * KM

        def across(self, at):
            return (-at[:, 2] - np.maximum(at[:, 0] / 2.0, 0.0)) / np.hypot(1.0, 0.5)

    size = MeshSize(10 * KM, 80 * KM, 0.4)
    geometry = build_mesh(box, [fault], size, [45 * KM], refine=1, plates=[Under()])
    mesh = geometry.mesh
    corners = mesh.nodes[mesh.cells]
    value = Under().across(corners.reshape(-1, 3)).reshape(-1, 4) - Under.thickness
    longest = np.linalg.norm(corners[:, :, None] - corners[:, None], axis=3).max((1, 2))
    # how far an element reaches to both sides of the bottom, as a share of its edges
    both = np.minimum(value.max(axis=1), -value.min(axis=1)) / longest
    # where the layer's bottom meets the plate's some reach across; without the plate
    # 12 % of all elements do
    assert both.max() < 0.35
    assert (both > 0.02).mean() < 0.01
    assert quality_report(mesh).gamma_min > 5e-4
    same = build_mesh(box, [fault], size, [45 * KM], refine=1, plates=[Under()])
    assert np.array_equal(same.mesh.nodes, mesh.nodes)
