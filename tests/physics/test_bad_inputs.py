"""Input that has no solution is refused, with what is wrong and where."""

from dataclasses import replace

import numpy as np
import pytest

from afterslip_solver.greens import prepare
from afterslip_solver.mesh import surface_trace
from afterslip_solver.model import Model, SolverSettings
from afterslip_solver.operators import ModelError
from afterslip_solver.testing.box import box_with_fault
from afterslip_solver.verification.blocks import (
    held_sides_and_bottom,
    smooth_slip,
    uniform_materials,
)

WHERE = r"element 7, at x = .* km"


def model(**changes):
    geometry = box_with_fault((4, 4, 4), (40e3, 40e3, 40e3), 90.0, 20e3, 10e3, 10e3)
    mesh = geometry.mesh
    return replace(
        Model(
            mesh,
            uniform_materials(mesh, 30e9, 30e9, 1e19),
            held_sides_and_bottom(mesh),
            surface_trace(mesh),
            geometry.faults,
            geometry.splits,
        ),
        **changes,
    )


def spoilt(name, value):
    materials = model().materials
    values = getattr(materials, name).copy()
    values[7] = value
    return model(materials=replace(materials, **{name: values}))


def refused(bad, message):
    with pytest.raises(ModelError, match=message):
        prepare(bad, SolverSettings(), backend="cpu")


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("mu", 0.0, "shear modulus of zero or less"),
        ("mu", -1e9, "shear modulus of zero or less"),
        ("mu", np.nan, "not finite"),
        ("lam", np.inf, "not finite"),
        ("lam", -20e9, "bulk modulus of zero or less"),
        ("viscosity", 0.0, "viscosity that is not positive"),
        ("viscosity", np.nan, "viscosity that is not positive"),
    ],
)
def test_a_bad_material_is_named_with_its_element_and_place(name, value, message):
    refused(spoilt(name, value), f"1 elements have .*{message}.*{WHERE}")


def test_an_inverted_element_is_named_with_its_place():
    mesh = model().mesh
    elements = mesh.elements.copy()
    # two vertices, and the edges that end at them, the other way round
    elements[7] = elements[7][[1, 0, 2, 3, 4, 6, 5, 8, 7, 9]]
    refused(model(mesh=replace(mesh, elements=elements)), f"inverted|flat.*{WHERE}")


def test_a_flat_element_is_refused():
    mesh = model().mesh
    nodes = mesh.nodes.copy()
    a, b, c, d = mesh.cells[7]
    nodes[d] = nodes[[a, b, c]].mean(axis=0)
    refused(model(mesh=replace(mesh, nodes=nodes)), "no positive volume")


def test_a_node_that_is_nowhere_is_named():
    mesh = model().mesh
    nodes = mesh.nodes.copy()
    nodes[5, 1] = np.nan
    refused(model(mesh=replace(mesh, nodes=nodes)), "first: node 5")


def test_a_body_that_may_move_is_refused_with_its_motions():
    bad = model()
    refused(replace(bad, fixed=np.zeros_like(bad.fixed)), "nothing holds the mesh")
    rollers = np.zeros_like(bad.fixed)
    rollers[:, 2] = bad.mesh.nodes[:, 2] < -39e3
    refused(replace(bad, fixed=rollers), "rotation about z")


def test_slip_that_is_not_finite_is_refused_with_its_fault():
    good = model()
    slip = smooth_slip(good.faults["main"])[:, :, None]
    slip[3] = np.nan
    with pytest.raises(ValueError, match="slip on 'main' is not finite"):
        prepare(good, SolverSettings(), backend="cpu").solve(slip, good.surface.nodes)


def test_a_solve_that_runs_out_of_iterations_says_so_and_keeps_its_history():
    good = model()
    slip = smooth_slip(good.faults["main"])[:, :, None]
    settings = SolverSettings(tolerance=1e-12, max_iterations=2)
    result = prepare(good, settings, backend="cpu").solve(slip, good.surface.nodes)
    assert result.outcome == "not_converged"
    assert "max_iterations" in result.advice
    assert result.history[0]["residuals"]
