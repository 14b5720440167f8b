"""The mesh that a refined one came from, and errors by comparison with it."""

import numpy as np
import pytest

from afterslip_common.terms import KM
from afterslip_solver.greens.space_error import (
    BUILT,
    NESTED,
    elastic_and_change,
    leave_out_trace,
    space_error,
    space_error_between,
)
from afterslip_solver.materials import restoring_force
from afterslip_solver.mesh import (
    Box,
    CurvedFault,
    MeshSize,
    PlaneFault,
    boundary_conditions,
    build_mesh,
    coarsened,
    surface_trace,
)
from afterslip_solver.model import GroupResult, Materials, Model

BOX = Box((-150 * KM, 150 * KM), (-120 * KM, 120 * KM), 100 * KM)
SIZE = MeshSize(12 * KM, 80 * KM, 0.5)
PLANE = PlaneFault("main", 0.0, 0.0, 0.0, 20.0, 30.0, 60 * KM, 36 * KM)
S, DEPTH = (
    g.ravel() for g in np.meshgrid(np.linspace(-50, 50, 15), np.arange(0, 50, 3))
)
CURVED = CurvedFault(
    "main",
    KM * np.column_stack([1.5 * DEPTH + 0.02 * DEPTH**2, S, -DEPTH]),
    max_depth=35 * KM,
)


def model_of(fault, refine):
    geometry = build_mesh(BOX, [fault], SIZE, [30 * KM], refine)
    mesh = geometry.mesh
    deep = mesh.nodes[mesh.cells, 2].mean(axis=1) < -30 * KM
    materials = Materials(
        lam=np.where(deep, 60e9, 30e9),
        mu=np.where(deep, 65e9, 33e9),
        rho=np.where(deep, 3300.0, 2800.0),
        viscosity=np.where(deep, 1e19, np.inf),
    )
    return Model(
        mesh,
        materials,
        boundary_conditions(mesh, "roller", "fixed"),
        surface_trace(mesh),
        geometry.faults,
        geometry.splits,
        restoring_force(mesh, materials.rho)[0],
    )


@pytest.mark.parametrize("fault", [PLANE, CURVED])
def test_a_refined_model_shows_the_one_that_it_came_from(fault):
    coarse, fine = model_of(fault, 0), model_of(fault, 1)
    back = coarsened(fine, restoring_force)
    assert back is not None
    assert np.array_equal(back.mesh.elements[:, :4], coarse.mesh.elements[:, :4])
    assert back.mesh.n_vertex == coarse.mesh.n_vertex
    # midpoints are numbered as the fine mesh has them
    assert back.mesh.nodes[back.mesh.elements] == pytest.approx(
        coarse.mesh.nodes[coarse.mesh.elements], abs=1e-6
    )
    for name in ("lam", "mu", "rho", "viscosity"):
        first, second = (getattr(m.materials, name) for m in (back, coarse))
        assert np.array_equal(first, second)
    assert back.fixed.sum() == coarse.fixed.sum()
    own, known = back.faults["main"], coarse.faults["main"]
    assert len(own.triangles) == len(known.triangles)
    assert back.mesh.nodes[own.nodes].sum(axis=0) == pytest.approx(
        coarse.mesh.nodes[known.nodes].sum(axis=0), rel=1e-9
    )
    first, second = back.splits["main"], coarse.splits["main"]
    assert (first.sign > 0).sum() == (second.sign > 0).sum()
    assert back.restoring is not None
    assert coarse.restoring is not None
    assert len(back.restoring.faces) == len(coarse.restoring.faces)
    assert len(back.surface.faces) == len(coarse.surface.faces)


def test_a_model_that_was_not_refined_has_none_before_it():
    assert coarsened(model_of(PLANE, 0), restoring_force) is None


def test_error_is_a_share_of_the_difference():
    fine, coarse = np.zeros((2, 5, 3)), np.zeros((2, 5, 3))
    coarse[1, 3] = [3.0, 0.0, 4.0]
    error = space_error(fine, coarse, NESTED)
    assert error[1, 3] == 5.0 / 4.0
    assert np.count_nonzero(error) == 1
    assert space_error(fine, coarse, BUILT)[1, 3] == 2.5


def result_of(response, recurrence, step_times=()):
    """A group of which only the curve matters; the second lane has a mode less."""
    lanes, modes = response.shape[:2]
    return GroupResult(
        outcome="converged",
        advice="",
        response=response,
        recurrence=recurrence,
        start_norm=np.full(lanes, 2.0),
        shift=np.zeros(lanes),
        mode_count=np.array([modes, modes - 1]),
        step_times=np.array(step_times),
        residual=np.zeros(lanes),
        time_error=np.zeros(lanes),
        iterations=0,
        solves=modes,
    )


@pytest.mark.parametrize("steps", [(), (0.0, 0.7, 3.0)])
def test_a_coarse_mesh_is_interpolated_for_the_difference(steps):
    random, times = np.random.default_rng(4), np.array([0.5, 2.0])
    response = random.standard_normal((2, 3, 50, 3))
    fine = result_of(response, 1.0 + random.random((2, 3, 2)), steps)
    coarse = random.standard_normal((2, 3, 20, 3))
    nodes, weights = random.integers(0, 20, (50, 6)), random.standard_normal((50, 6))
    there = np.einsum("nk,ltnkc->ltnc", weights, coarse[:, :, nodes])
    found = space_error_between(fine, times, coarse, nodes, weights, NESTED)
    expected = space_error(elastic_and_change(fine, times), there, NESTED)
    assert found == pytest.approx(expected, rel=1e-6)


def test_on_the_trace_of_a_fault_the_largest_error_beside_it_counts():
    faces = np.array([[0, 1, 2, 3, 4, 5], [0, 2, 6, 5, 7, 8]])
    error = np.array([[100.0, 1.0, 2.0, 3.0, 4.0, 100.0, 6.0, 7.0, 8.0, 9.0]])
    leave_out_trace(error, faces, np.array([0, 5]))
    assert error.tolist() == [[8.0, 1.0, 2.0, 3.0, 4.0, 8.0, 6.0, 7.0, 8.0, 9.0]]
