"""The stored surface tells the two sides of a fault apart."""

import numpy as np
import pytest

from afterslip.archive import StationTable
from afterslip_solver.greens import prepare
from afterslip_solver.model import SolverSettings
from afterslip_solver.reference import Rectangles, surface_displacement
from afterslip_workers.tasks import greens
from afterslip_workers.trace import two_sided


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
    from dataclasses import replace

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


def test_stations_are_sought_once_for_a_campaign(broken_ground, monkeypatch):
    sought = []

    class Counted(greens.SurfaceInterpolator):
        def weights(self, x, y, names=None):
            sought.append(len(x))
            return super().weights(x, y, names)

    monkeypatch.setattr(greens, "SurfaceInterpolator", Counted)
    ready = greens._Ready(broken_ground, None, two_sided(broken_ground), 0)
    two = StationTable(["a", "b"], np.array([1e4, -3e4]), np.array([5e3, 2e4]))
    three = StationTable(["a", "b", "c"], np.zeros(3), np.arange(3) * 1e4)
    nodes, weights = ready.stations("c1", two)
    xy = broken_ground.mesh.nodes[ready.trace.nodes[nodes], :2]
    place = np.einsum("sk,skc->sc", weights, xy)
    assert place == pytest.approx(np.column_stack([two.x, two.y]), abs=1e-6)
    assert ready.stations("c1", two)[0] is nodes
    assert len(ready.stations("c2", three)[0]) == 3
    assert sought == [2, 3]
