"""Faults that touch or cross: sides, ground, and motion against Okada (1985)."""

import numpy as np
import pytest

from afterslip_solver.greens import prepare
from afterslip_solver.mesh import (
    Box,
    MeshError,
    MeshSize,
    PlaneFault,
    boundary_conditions,
    build_mesh,
    surface_trace,
)
from afterslip_solver.mesh.slit_surface import two_sided
from afterslip_solver.model import Materials, Model, SolverSettings
from afterslip_solver.reference import Rectangles, surface_displacement
from afterslip_solver.sources import uniform_slip

KM = 1e3
BOX = Box((-300 * KM, 300 * KM), (-300 * KM, 300 * KM), 250 * KM)
SIZE = MeshSize(3 * KM, 100 * KM)
DEEP = PlaneFault("main", 0.0, 0.0, 4 * KM, 0.0, 30.0, 30 * KM, 24 * KM)


def splay(dip=70.0, junction=12 * KM, top=4.5 * KM, length=24 * KM):
    """A plane whose lower edge lies on the main fault, ``junction`` m down dip."""
    lean = np.radians(DEEP.dip)
    x, depth = junction * np.cos(lean), DEEP.top + junction * np.sin(lean)
    width = (depth - top) / np.sin(np.radians(dip))
    edge = x - width * np.cos(np.radians(dip))
    return PlaneFault("splay", edge, 0.0, top, 0.0, dip, length, width)


def crossing():
    """A steep plane through the middle of the main fault."""
    return PlaneFault("splay", 9 * KM, 2 * KM, 5 * KM, 20.0, 80.0, 22 * KM, 12 * KM)


def model_of(faults, size=SIZE, box=BOX):
    built = build_mesh(box, faults, size)
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


def okada(xy, fault, slip):
    rectangle = Rectangles(
        fault.x, fault.y, fault.top, fault.strike, fault.dip, fault.length, fault.width
    )
    return surface_displacement(xy, rectangle, (*slip, 0.0))


SLIPS = {"main": (0.4, 1.0), "splay": (-0.5, 0.8)}


@pytest.mark.slow
@pytest.mark.parametrize("other", [splay(), crossing()], ids=["branch", "crossing"])
def test_motion_is_the_sum_of_okadas_rectangles(other):
    model = model_of([DEEP, other])
    slip = {
        name: np.stack(
            [
                uniform_slip(fault, *SLIPS[name]),
                uniform_slip(fault, *SLIPS[name]) * (name == "splay"),
            ],
            axis=2,
        )
        for name, fault in model.faults.items()
    }
    nodes = model.surface.nodes
    found = prepare(model, SolverSettings(), "cpu").solve(slip, nodes).response[:, 0]
    xy = model.mesh.nodes[nodes, :2]
    near = np.hypot(*xy.T) < 50 * KM
    both = okada(xy, DEEP, SLIPS["main"]) + okada(xy, other, SLIPS["splay"])
    alone = okada(xy, other, SLIPS["splay"])
    for lane, exact in enumerate((both, alone)):
        error = np.linalg.norm(found[lane][near] - exact[near], axis=1)
        scale = np.linalg.norm(exact, axis=1).max()
        # the main fault alone is 0.8 % off, 4 % at worst: elements of 3 km, 4 km deep
        assert np.sqrt(np.mean(error**2)) < 0.012 * scale
        assert error.max() < 0.08 * scale


def test_a_branch_shares_nodes_with_its_fault_and_both_have_two_sides():
    model = model_of([DEEP, splay()], MeshSize(4 * KM, 60 * KM))
    shared = np.intersect1d(model.faults["main"].nodes, model.faults["splay"].nodes)
    assert len(shared) > 10
    for name, split in model.splits.items():
        fault = model.faults[name]
        here = np.isin(fault.nodes, shared) & (fault.along > 1.0)
        inner = here & (fault.along < fault.length - 1.0)
        for number in np.flatnonzero(inner):
            signs = split.sign[split.index == number]
            assert {-0.5, 0.5} <= set(signs.tolist())


def test_the_ground_between_crossing_faults_has_rows_of_its_own():
    first = PlaneFault("main", 0.0, 0.0, 0.0, 0.0, 60.0, 40 * KM, 20 * KM)
    second = PlaneFault("splay", 0.0, 0.0, 0.0, 90.0, 80.0, 30 * KM, 15 * KM)
    model = model_of([first, second], MeshSize(5 * KM, 60 * KM))
    trace = two_sided(model)
    slip = {
        name: np.ones((len(fault.nodes), 1, 1)) * np.array(jump)[:, None]
        for (name, fault), jump in zip(
            model.faults.items(), ([1.0, 0.0, 0.0], [0.0, 2.0, 0.0]), strict=True
        )
    }
    moved = np.zeros((1, 1, len(trace.nodes), 3))
    trace.add_offsets(moved, slip)
    cross = np.intersect1d(model.faults["main"].nodes, model.faults["splay"].nodes)
    (node,) = np.intersect1d(cross, model.surface.nodes)
    rows = np.flatnonzero(trace.nodes == node)
    corners = {tuple(moved[0, 0, row, :2]) for row in rows}
    assert corners == {(a, b) for a in (-0.5, 0.5) for b in (-1.0, 1.0)}
    # each face moves as the part of the ground that it lies in
    place = model.mesh.nodes[trace.nodes[trace.faces[:, :3]]].mean(axis=1)
    for face in np.flatnonzero((trace.faces[:, :3, None] == rows).any(axis=(1, 2))):
        row = np.intersect1d(trace.faces[face], rows)[0]
        x, y = np.sign(place[face, :2])
        # to the right of a strike of 90 degrees is the south
        assert moved[0, 0, row, 0] == 0.5 * x
        assert moved[0, 0, row, 1] == -1.0 * y


def test_faults_that_nearly_touch_are_refused():
    main = PlaneFault("main", 0.0, 0.0, 5 * KM, 0.0, 90.0, 20 * KM, 10 * KM)
    other = PlaneFault("splay", 6.2 * KM, 0.0, 5 * KM, 90.0, 90.0, 6 * KM, 10 * KM)
    with pytest.raises(MeshError, match="move them apart or together"):
        model_of([main, other], MeshSize(3 * KM, 40 * KM))
