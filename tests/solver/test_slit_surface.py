"""The stored surface tells the two sides of a fault apart."""

from dataclasses import replace

import numpy as np
import pytest

from afterslip_solver.greens import prepare
from afterslip_solver.mesh import (
    Box,
    MeshSize,
    PlaneFault,
    boundary_conditions,
    build_mesh,
    surface_trace,
)
from afterslip_solver.mesh.slit_surface import two_sided
from afterslip_solver.model import Materials, Model, SolverSettings
from afterslip_solver.reference import Rectangles, surface_displacement


@pytest.fixture(scope="module")
def broken_ground():
    """A dipping fault that reaches the ground in a box."""
    box = Box((-200e3, 200e3), (-200e3, 200e3), 200e3)
    fault = PlaneFault("main", 0, 0, 0.0, 0, 30, 80e3, 60e3)
    built = build_mesh(box, [fault], MeshSize(20e3, 90e3))
    count = len(built.mesh.elements)
    constant = (np.full(count, v) for v in (3e10, 3e10, 2800.0, np.inf))
    return Model(
        built.mesh,
        Materials(*constant),
        boundary_conditions(built.mesh),
        surface_trace(built.mesh),
        built.faults,
        built.splits,
    )


def _uniform(fault):
    inside = (
        (fault.along >= 0)
        & (fault.along <= fault.length)
        & (fault.down >= 0)
        & (fault.down <= fault.width)
    )
    return np.where(inside[:, None], fault.updip, 0.0)[:, :, None]


def test_each_face_keeps_its_place(broken_ground):
    trace = two_sided(broken_ground)
    surface = broken_ground.surface
    assert np.array_equal(trace.nodes[trace.faces], surface.nodes[surface.faces])


def test_faces_of_one_side_never_share_a_row_with_the_other(broken_ground):
    trace = two_sided(broken_ground)
    (side,) = trace.sides
    sign = np.zeros(len(trace.nodes))
    sign[side.rows] = side.sign
    of_face = sign[trace.faces]
    assert not ((of_face > 0).any(axis=1) & (of_face < 0).any(axis=1)).any()
    # every doubled node is there once for each side
    assert (side.sign > 0).sum() == (side.sign < 0).sum() > 3
    x = broken_ground.mesh.nodes[trace.nodes[trace.faces[:, :3]], 0].mean(axis=1)
    assert (x[(of_face > 0).any(axis=1)] > 0).all()  # the hanging wall is in the east
    assert (x[(of_face < 0).any(axis=1)] < 0).all()


def test_motion_beside_the_trace_agrees_with_okada(broken_ground):
    trace = two_sided(broken_ground)
    slip = _uniform(broken_ground.faults["main"])
    found = prepare(broken_ground, SolverSettings(), "cpu").solve(slip, trace.nodes)
    response = found.response.copy()
    trace.add_offsets(response, {"main": slip})
    (side,) = trace.sides
    xy = broken_ground.mesh.nodes[trace.nodes[side.rows], :2].copy()
    middle = np.abs(xy[:, 1]) < 20e3  # away from the ends of the trace
    xy[:, 0] += 1.0 * np.sign(side.sign)
    okada = surface_displacement(
        xy[middle], Rectangles(0, 0, 0.0, 0, 30, 80e3, 60e3), (0, 1, 0)
    )
    error = np.abs(response[0, 0, side.rows[middle]] - okada)
    # the walls of the box, 200 km away, account for about this much
    assert error.max() < 0.03


def test_buried_fault_leaves_the_surface_whole(broken_ground):
    split = broken_ground.splits["main"]
    whole = replace(
        broken_ground, splits={"main": replace(split, sign=np.zeros(split.sign.shape))}
    )
    trace = two_sided(whole)
    assert np.array_equal(trace.nodes, broken_ground.surface.nodes)
    assert trace.sides == ()


def test_offsets_go_to_all_lanes_and_modes(broken_ground):
    trace = two_sided(broken_ground)
    fault = broken_ground.faults["main"]
    slip = np.stack([_uniform(fault)[:, :, 0], 2 * _uniform(fault)[:, :, 0]], axis=2)
    response = np.zeros((2, 3, len(trace.nodes), 3))
    trace.add_offsets(response, {"main": slip})
    assert response[1] == pytest.approx(2 * response[0])
    assert response[0, 0] == pytest.approx(response[0, 2])
    assert np.abs(response[0, 0]).max() == pytest.approx(0.5 * np.cos(np.radians(30)))
