"""Isostatic restoring force: where it acts, its matrix, solves and both integrators."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from afterslip_common.terms import YEAR
from afterslip_solver.greens import evaluate_curve, prepare
from afterslip_solver.materials import GRAVITY, MaterialError, restoring_force
from afterslip_solver.model import Restoring, SolverSettings
from afterslip_solver.operators import ModelError, Space, Springs
from afterslip_solver.verification.blocks import cut_box
from afterslip_solver.verification.restoring import column_error, flexure_error
from afterslip_solver.verification.system import System

# degree five on a triangle: Strang & Fix, seven points
R15 = np.sqrt(15.0)
A, B = (6.0 - R15) / 21.0, (6.0 + R15) / 21.0
POINTS = np.array(
    [
        [1 / 3, 1 / 3],
        *([A, A], [1 - 2 * A, A], [A, 1 - 2 * A]),
        *([B, B], [1 - 2 * B, B], [B, 1 - 2 * B]),
    ]
)
WEIGHTS = np.array([0.225] + 3 * [(155 - R15) / 1200] + 3 * [(155 + R15) / 1200])


def shapes():
    """(7, 6) quadratic shapes at the points of the quadrature."""
    x, y = POINTS.T
    z = 1.0 - x - y
    corners = [c * (2 * c - 1) for c in (z, x, y)]
    return np.stack([*corners, 4 * z * x, 4 * x * y, 4 * y * z], axis=1)


def layered(mesh, depth, upper=2800.0, lower=3300.0):
    z = mesh.nodes[mesh.cells].mean(axis=1)[:, 2]
    return np.where(z > -depth, upper, lower)


def with_gravity(model):
    flows = np.isfinite(model.materials.viscosity)
    rho = np.where(flows, 3300.0, 2800.0)
    restoring, _ = restoring_force(model.mesh, rho)
    return replace(
        model, restoring=restoring, materials=replace(model.materials, rho=rho)
    )


def test_springs_lie_on_the_surface_and_on_the_horizon(small):
    mesh = small.box_mesh((3, 2, 4), (3e3, 2e3, 4e3))
    restoring, notes = restoring_force(mesh, layered(mesh, 1e3))
    z = mesh.nodes[restoring.faces][:, :, 2]
    assert notes == []
    assert np.ptp(z, axis=1).max() < 1e-6
    for depth, jump in ((0.0, 2800.0), (1e3, 500.0)):
        here = np.abs(z[:, 0] + depth) < 1e-6
        np.testing.assert_allclose(restoring.stiffness[here], GRAVITY * jump)
        a, b = (
            mesh.nodes[restoring.faces[here, k]] - mesh.nodes[restoring.faces[here, 0]]
            for k in (1, 2)
        )
        area = 0.5 * np.abs(np.cross(a, b)[:, 2]).sum()
        assert area == pytest.approx(6e6)
        below = mesh.nodes[mesh.cells[restoring.owners[here]]].mean(axis=1)[:, 2]
        assert (below < -depth).all()
    assert len(z) == 2 * 3 * 2 * 2


def test_even_density_has_springs_on_the_surface_only(small):
    mesh = small.box_mesh((2, 2, 2), (1.0, 1.0, 1.0))
    restoring, notes = restoring_force(mesh, np.full(len(mesh.cells), 3000.0))
    assert len(restoring.faces) == 8
    assert notes == []


def test_inclined_jumps_are_left_out_and_noted(small):
    mesh = small.box_mesh((4, 2, 4), (4e3, 2e3, 4e3))
    x, _, z = mesh.nodes[mesh.cells].mean(axis=1).T
    restoring, notes = restoring_force(mesh, np.where(x + z > -1e3, 2800.0, 3300.0))
    assert np.abs(mesh.nodes[restoring.faces][:, :, 2]).max() < 1e-6
    assert "100% of the area" in notes[0]


def test_density_that_falls_downwards_is_refused(small):
    mesh = small.box_mesh((2, 2, 2), (2e3, 2e3, 2e3))
    with pytest.raises(MaterialError, match=r"falls by 500 kg/m3 downwards at 1 km"):
        restoring_force(mesh, layered(mesh, 1e3, 3300.0, 2800.0))


def test_negative_springs_are_refused_before_a_solve(small):
    model = with_gravity(small.box_model((4, 4, 4)))
    bad = replace(model.restoring, stiffness=-model.restoring.stiffness)
    with pytest.raises(ModelError, match="fall downwards"):
        prepare(replace(model, restoring=bad), SolverSettings(), "cpu")


def test_matrix_is_symmetric_and_integrates_quadratic_fields(small):
    mesh = small.box_mesh((3, 2, 3), (3.0, 2.0, 3.0))
    free = np.zeros((len(mesh.nodes), 3), dtype=bool)
    restoring, _ = restoring_force(mesh, layered(mesh, 1.0))
    springs = Springs(small.backend, Space.build(mesh, free), restoring)
    matrix = springs.host.toarray()
    np.testing.assert_allclose(matrix, matrix.T, atol=1e-9 * matrix.max())
    assert np.linalg.eigvalsh(matrix).min() > -1e-9 * matrix.max()
    x, y, z = mesh.nodes[springs._space.order].T
    u, v = 1.0 + x * y - 0.3 * y**2, 2.0 * x - y + 0.5 * x**2
    u = np.where(z > -0.5, u, 0.4 * u)
    # exact integrals over -1.5..1.5 and -1..1 by Gauss-Legendre
    p, w = np.polynomial.legendre.leggauss(6)
    gx, gy = np.meshgrid(1.5 * p, p, indexing="ij")
    weight = 1.5 * np.outer(w, w)
    product = (1.0 + gx * gy - 0.3 * gy**2) * (2.0 * gx - gy + 0.5 * gx**2)
    exact = GRAVITY * (2800.0 + 0.4 * 500.0) * (weight * product).sum()
    assert u @ matrix @ v == pytest.approx(exact)


def test_applied_matrix_checked_residual_and_linear_elements_agree(small, shaken_box):
    s = shaken_box
    n = len(s.mu)
    model = small.box_model((2, 2, 2))
    rho = np.full(n, 0.1)
    restoring, _ = restoring_force(s.mesh, rho)
    materials = replace(
        model.materials, lam=s.lam, mu=s.mu, rho=rho, viscosity=np.full(n, np.inf)
    )
    system = System.build(s.mesh, materials, s.fixed, restoring)
    rng = np.random.default_rng(0)
    u, v = rng.standard_normal((2, len(s.mesh.nodes), 3, 1)) * ~s.fixed[:, :, None]
    np.testing.assert_allclose(
        system.apply(u) * ~s.fixed[:, :, None], system.apply_elements(u), atol=1e-9
    )
    assert (v * system.apply(u)).sum() == pytest.approx((u * system.apply(v)).sum())
    # a linear field has the same energy in both matrices
    space, springs = system.space, system.elasticity.springs
    from afterslip_solver.operators.elasticity import assemble

    plain = assemble(space, s.lam, s.mu, order=1)
    data = plain.data.copy()
    assert springs is not None
    springs.add_linear(plain.indptr, plain.indices, data)
    corners = rng.standard_normal(len(space.vertices)) * ~space.fixed[space.vertices, 2]
    size = len(corners)
    rows = np.repeat(np.arange(size), np.diff(plain.indptr))
    added = (data - plain.data)[:, 2, 2]
    energy = (corners[rows] * added * corners[plain.indices]).sum()
    whole = space.embedding @ corners
    assert energy == pytest.approx(whole @ (springs.host @ whole))


def test_load_of_slip_is_the_gradient_of_the_springs_energy(small):
    built = cut_box((4, 3, 3), (4.0, 3.0, 3.0))
    mesh, split, fault = built.mesh, built.splits["main"], built.faults["main"]
    n = len(mesh.cells)
    model = small.box_model((2, 2, 2))
    one = np.ones(n)
    materials = replace(
        model.materials, lam=one, mu=one, rho=layered(mesh, 1.0), viscosity=one
    )
    held = np.zeros((len(mesh.nodes), 3), dtype=bool)
    restoring, _ = restoring_force(mesh, materials.rho)
    rng = np.random.default_rng(3)
    slip = rng.standard_normal((len(fault.nodes), 3, 1))
    loads = [
        System.build(mesh, materials, held, r).offset_load(split, slip)
        for r in (restoring, None)
    ]
    found = (loads[0] - loads[1])[:, :, 0]
    assert np.abs(found[:, :2]).max() == 0.0
    # by quadrature: minus k times the offset that the owner of each face sees
    offsets = np.zeros((n, 10))
    offsets[split.elements] = split.offsets(slip)[:, :, 2, 0]
    basis, expected = shapes(), np.zeros(len(mesh.nodes))
    for face, k, owner in zip(
        restoring.faces, restoring.stiffness, restoring.owners, strict=True
    ):
        local = [int(np.flatnonzero(mesh.elements[owner] == m)[0]) for m in face]
        a, b = (mesh.nodes[face[i]] - mesh.nodes[face[0]] for i in (1, 2))
        area = 0.5 * abs(np.cross(a, b)[2])
        value = basis @ offsets[owner, local]
        expected[face] -= k * area * (basis.T @ (WEIGHTS * value))
    assert np.abs(expected).max() > 100.0
    np.testing.assert_allclose(found[:, 2], expected, atol=1e-9 * GRAVITY * 3e3)


def test_loaded_column_settles_as_springs_in_series():
    assert column_error() < 1e-10


def test_lid_on_a_fluid_bends_like_a_thin_plate():
    assert flexure_error("small") < 0.01


def test_solves_converge_and_obey_the_independent_factorisation(small):
    model = with_gravity(small.box_model((4, 4, 4)))
    slip = small.patch_slip(model.faults["main"])
    # springs as stiff as rock: 100 times the gravity
    strong = replace(model.restoring, stiffness=100.0 * model.restoring.stiffness)
    for restoring in (model.restoring, strong):
        heavy = replace(model, restoring=restoring)
        result = prepare(heavy, SolverSettings(), "cpu").solve(
            slip, model.surface.nodes
        )
        assert result.outcome == "converged"
        assert (result.residual <= 1e-8).all()
        system = System.build(model.mesh, model.materials, model.fixed, restoring)
        load = system.offset_load(model.splits["main"], slip)
        exact = system.factorised(load)[model.surface.nodes].transpose(2, 0, 1)
        error = np.abs(result.response[:, 0] - exact).max() / np.abs(exact).max()
        assert error < 1e-7


def test_all_integrators_agree_with_a_restoring_force(small):
    model = with_gravity(small.box_model())
    strong = replace(model.restoring, stiffness=30.0 * model.restoring.stiffness)
    model = replace(model, restoring=strong)
    slip = small.patch_slip(model.faults["main"])
    until = 3.0 * YEAR
    times = until * np.array([0.0, 0.3, 1.0])
    spectral = SolverSettings(
        times=tuple(times), until=until, tolerance=1e-10, time_tolerance=1e-8
    )

    def curve(**changes):
        prepared = prepare(model, replace(spectral, **changes), "cpu")
        return evaluate_curve(prepared.solve(slip, model.surface.nodes), times)

    exact = curve(scheme="polynomial")
    change = np.abs(exact - exact[:, :1]).max()
    assert np.abs(curve(scheme="shift_invert") - exact).max() < 1e-7 * change
    errors = [
        np.abs(curve(integrator="stepping", step=until / n) - exact).max() / change
        for n in (10, 20)
    ]
    assert errors[1] < 2e-3
    assert 1.8 < np.log2(errors[0] / errors[1]) < 2.2
    plain = replace(model, restoring=None)
    without = prepare(plain, spectral, "cpu").solve(slip, model.surface.nodes)
    assert np.abs(evaluate_curve(without, times) - exact).max() > 0.02 * change


def test_a_model_without_faces_has_no_springs(small):
    model = small.box_model((4, 4, 4))
    none = Restoring(
        np.zeros((0, 6), dtype=np.int64), np.zeros(0), np.zeros(0, dtype=np.int64)
    )
    slip = small.patch_slip(model.faults["main"])
    found, expected = (
        prepare(m, SolverSettings(), "cpu").solve(slip, model.surface.nodes).response
        for m in (replace(model, restoring=none), model)
    )
    np.testing.assert_allclose(found, expected, atol=1e-12)
