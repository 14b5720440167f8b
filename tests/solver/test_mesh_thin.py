"""Bottoms of bodies that are thin beside the elements."""

import re

import numpy as np
import pytest
from scipy.spatial import cKDTree

from afterslip_common.geometry import Box
from afterslip_common.terms import KM
from afterslip_solver.materials import Body, Layer, describe_misfits
from afterslip_solver.mesh import CurvedFault, Interface, MeshSize, build_mesh
from afterslip_solver.mesh.thin import ThinPlates

BOX = Box((-300 * KM, 300 * KM), (-300 * KM, 300 * KM), 200 * KM)
ROCK = Layer("rock", 200 * KM, 6400.0, 3700.0, 2800.0)
# dips by 11 degrees to the east
ACROSS, ALONG = np.meshgrid(np.linspace(0, 200, 21), np.linspace(-120, 120, 13))
POINTS = (
    np.column_stack([ACROSS.ravel(), ALONG.ravel(), -5 - 0.2 * ACROSS.ravel()]) * KM
)


def built(thickness, edge):
    """Mesh, the plate below the fault, and what is said of its sides."""
    plate = Body("slab", Interface.fit(POINTS), thickness * KM, 7000.0, 4000.0, 3000.0)
    size = MeshSize(edge * KM, 100 * KM, 0.4)
    fault = CurvedFault("main", POINTS, None, 30 * KM)
    geometry = build_mesh(BOX, [fault], size, plates=[plate])
    points = geometry.mesh.nodes[geometry.faults["main"].nodes]
    misfits = describe_misfits(geometry.mesh, [ROCK], [plate], points, edge * KM)
    return geometry.mesh, plate, points, [m for m in misfits if m.steps]


def cut_through(mesh, plate):
    """Places of elements that have the plate's bottom inside of them."""
    corners = mesh.nodes[mesh.cells]
    depth = plate.across(corners.reshape(-1, 3)).reshape(-1, 4) - plate.thickness
    size = np.ptp(corners, axis=1).max(axis=1)
    cut = (depth.min(axis=1) < -0.1 * size) & (depth.max(axis=1) > 0.1 * size)
    return corners[cut].mean(axis=1)


def test_the_bottom_of_a_thin_body_is_followed_near_the_faults():
    mesh, plate, fault, steps = built(5, 12)
    assert not steps
    far, _ = cKDTree(fault).query(cut_through(mesh, plate))
    # where edges are four times as long as it is thick, and eight times
    four, eight = ((12 + (times * 5 - 12) / 0.4) * KM for times in (4, 8))
    assert (far < four).sum() < 0.1 * (far > eight).sum()


def test_the_size_that_a_body_too_thin_for_the_elements_asks_for_would_do():
    mesh, plate, fault, (steps,) = built(2.5, 12)
    far, _ = cKDTree(fault).query(cut_through(mesh, plate))
    assert (far < 12 * KM).any()
    assert "its 2.5 km are thin beside the elements" in steps.note
    (size,) = re.findall(r"mesh.size.fault of ([\d.]+) km would do", steps.note)
    assert not built(2.5, float(size))[3]


@pytest.mark.parametrize("thickness", [2.9, 4.0, 5.9, 6.0])
def test_a_mesh_with_longer_edges_follows_bodies_as_far_as_the_other_one(thickness):
    fine = ThinPlates(MeshSize(12 * KM, 100 * KM, 0.4), 12 * KM)
    coarse = ThinPlates(MeshSize(24 * KM, 200 * KM, 0.8), 12 * KM)
    reach = fine.reach(thickness * KM)
    assert coarse.reach(thickness * KM) == pytest.approx(reach)
    assert (reach > 0.0) == (thickness >= 3.0)
    assert np.isinf(reach) == (thickness >= 6.0)
