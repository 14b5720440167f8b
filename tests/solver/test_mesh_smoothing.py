"""Vertices of flat elements move where a mesh was made to follow surfaces."""

from __future__ import annotations

import numpy as np
import pytest

from afterslip_common.geometry import Box
from afterslip_common.terms import KM
from afterslip_solver.mesh import conform as cutting
from afterslip_solver.mesh.conform import Boundary, conform
from afterslip_solver.mesh.mesher import RawMesh
from afterslip_solver.mesh.numbering import oriented
from afterslip_solver.mesh.quality import element_shapes
from afterslip_solver.mesh.smoothing import on_walls
from afterslip_solver.mesh.tables.relocate import _badness
from afterslip_solver.testing.box import box_mesh

BOX = Box((-50 * KM, 50 * KM), (-30 * KM, 30 * KM), 60 * KM)
CENTRE = np.array([3 * KM, -2 * KM, -28 * KM])


def ball(points):
    return np.linalg.norm(points - CENTRE, axis=1) - 19 * KM


def layer(points):
    return -points[:, 2] - 31 * KM - 0.3 * points[:, 0]


BOUNDARIES = [Boundary(ball), Boundary(layer)]


def raw():
    """Return a box of elements of about 6 km, with a fault in its middle."""
    mesh = box_mesh((16, 10, 10), (100 * KM, 60 * KM, 60 * KM))
    vertices = mesh.nodes[: mesh.n_vertex].copy()
    corners = np.array([(0, 1, 2), (0, 1, 3), (0, 2, 3), (1, 2, 3)])
    faces = np.sort(mesh.cells[:, corners].reshape(-1, 3), axis=1)
    fault = (np.abs(vertices[:, 1]) < 1.0) & (vertices[:, 2] > -25 * KM)
    triangles = np.unique(faces[fault[faces].all(axis=1)], axis=0)
    return RawMesh(vertices, mesh.cells.copy(), {"fault": triangles})


@pytest.fixture
def only_cut(monkeypatch):
    """Return the same mesh as `conform` does, without the smoothing."""

    def cut():
        with monkeypatch.context() as patch:
            patch.setattr(cutting, "smoothed", lambda vertices, *_: vertices)
            return conform(raw(), BOUNDARIES, BOX)[0]

    return cut


def gamma(mesh):
    cells = oriented(mesh.vertices, mesh.cells)
    return element_shapes(mesh.vertices, cells)[1]


def test_flat_elements_beside_cuts_become_few(only_cut):
    before, (after, _) = only_cut(), conform(raw(), BOUNDARIES, BOX)
    assert np.array_equal(before.cells, after.cells)
    flat = [(gamma(mesh) < 0.15).mean() for mesh in (before, after)]
    assert flat[1] < 0.4 * flat[0]
    assert gamma(after).min() >= gamma(before).min()
    assert gamma(after).min() > 0.05


def test_vertices_slide_on_surfaces_and_walls_and_stay_on_faults(only_cut):
    before, (after, faces) = only_cut(), conform(raw(), BOUNDARIES, BOX)
    moved = (before.vertices != after.vertices).any(axis=1)
    assert moved.any()
    assert not moved[after.surfaces["fault"]].any()
    walls = on_walls(before.vertices, BOX)
    assert np.array_equal(before.vertices[walls], after.vertices[walls])
    assert moved[walls.any(axis=1)].any()
    for boundary, some in zip(BOUNDARIES, faces, strict=True):
        on = np.unique(some)
        slid = on[moved[on]]
        assert len(slid)
        off, was = (
            np.abs(boundary.distance(mesh.vertices[slid])) for mesh in (after, before)
        )
        assert np.all(off <= np.maximum(was, 1.0))


def test_what_is_far_from_the_cuts_stays():
    before, (after, _) = raw(), conform(raw(), BOUNDARIES[:1], BOX)
    far = np.linalg.norm(before.vertices - CENTRE, axis=1) > 40 * KM
    assert far.any()
    count = len(before.vertices)
    assert np.array_equal(before.vertices[far], after.vertices[:count][far])


def test_the_gradient_of_the_badness_is_that_of_its_differences():
    vertices = np.random.default_rng(0).standard_normal((4, 3))
    cells = oriented(vertices, np.arange(4)[None])
    for corner in range(4):
        places, at = np.array([corner]), vertices[cells[0, corner]].copy()

        def badness(x, places=places):
            return _badness(vertices, cells, places, (0, 1), x, np.zeros(3))

        slope = np.zeros(3)
        _badness(vertices, cells, places, (0, 1), at, slope)
        differences = [
            (badness(at + step) - badness(at - step)) / 2e-6
            for step in 1e-6 * np.eye(3)
        ]
        np.testing.assert_allclose(slope, differences, rtol=1e-5)
