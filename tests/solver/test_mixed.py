"""Conjugate gradients in FP32 reach what those in FP64 reach."""

from __future__ import annotations

import dataclasses
import importlib

import numpy as np
import pytest

from afterslip_common.terms import YEAR
from afterslip_solver.greens import evaluate_curve, prepare
from afterslip_solver.krylov import mixed, pcg
from afterslip_solver.model import SolverSettings
from afterslip_solver.multigrid import build

# the package has a function of the module's name
solver = importlib.import_module("afterslip_solver.krylov.pcg")


@pytest.fixture
def system(small, shaken_box):
    s = shaken_box
    k = small.elasticity(s.mesh, s.fixed, 1e10 * s.lam, 1e10 * s.mu)
    f = np.random.default_rng(0).standard_normal(k.shape) * k.free
    return k, build(k), f * np.array([1.0, 1e-6, 1e12, 3.0])


def off(k, result, f):
    """Relative residual in FP64."""
    q = np.empty_like(f)
    k.apply(result.values, q)
    norm = [np.sqrt(np.square(v).sum(axis=(0, 1))) for v in (f - q, f)]
    return norm[0] / norm[1]


def test_both_precisions_take_the_same_iterations_to_the_same_residual(system):
    k, cycle, f = system
    for tolerance in (1e-5, 1e-8, 1e-12):
        found = [
            pcg(k, cycle, f, tolerance=tolerance, precision=p)
            for p in ("mixed", "double")
        ]
        assert [r.outcome for r in found] == 2 * ["converged"]
        assert all((off(k, r, f) <= 1.01 * tolerance).all() for r in found)
        assert abs(found[0].iterations - found[1].iterations) <= 1
        size = np.abs(found[1].values).max(axis=(0, 1))
        apart = np.abs(found[0].values - found[1].values).max(axis=(0, 1))
        # it did iterate in FP32, and that shows only within the tolerance
        assert (apart > 0.0).all()
        assert (apart <= 100.0 * tolerance * size).all()


def test_residuals_are_computed_anew_before_fp32_has_no_more_to_say(
    system, monkeypatch
):
    k, cycle, f = system
    products = []
    apply = k.apply

    def counted(u, out):
        products.append(1)
        apply(u, out)

    monkeypatch.setattr(k, "apply", counted)
    usual = pcg(k, cycle, f, tolerance=1e-11)
    # once for each fall by a thousand, the last one checked by the elements
    assert len(products) == 3
    monkeypatch.setattr(mixed, "DROP", 0.0)
    never = pcg(k, cycle, f, tolerance=1e-11)
    assert never.outcome == "converged"
    assert never.iterations > usual.iterations


def test_a_solve_that_fp32_makes_slow_goes_on_in_fp64(small, monkeypatch):
    """Below half of the depth shear moduli are 1e-6 of those above."""
    mesh = small.box_mesh((4, 4, 4), (4.0, 4.0, 4.0))
    below = mesh.nodes[mesh.cells].mean(axis=1)[:, 2] < -2.0
    mu = np.where(below, 1e-6, 1.0)
    k = small.elasticity(mesh, small.held_sides(mesh.nodes), 2.0 - mu, mu)
    cycle = build(k)
    f = np.random.default_rng(0).standard_normal(k.shape) * k.free
    double = pcg(k, cycle, f, precision="double", max_iterations=2000)
    usual = pcg(k, cycle, f, max_iterations=2000)
    assert usual.precision == "double"
    assert (off(k, usual, f) <= 1.01e-8).all()
    # it starts anew once
    assert usual.iterations <= double.iterations + 64
    monkeypatch.setattr(mixed, "_PATIENCE", 10_000)
    never = pcg(k, cycle, f, max_iterations=2000)
    assert never.iterations > double.iterations + 2 * 64


@pytest.mark.parametrize("factor", [-1.0, 0.2, 5.0])
def test_a_wrong_fp32_matrix_costs_time_and_no_accuracy(system, monkeypatch, factor):
    k, cycle, f = system
    right = pcg(k, cycle, f, precision="double")
    wrong = (factor * modulus / k.unit for modulus in k.moduli)
    k.single = k.backend.stiffness(k.space, *wrong, np.float32)
    monkeypatch.setattr(solver, "applies", lambda *_: True)
    result = pcg(k, cycle, f)
    assert result.outcome == "converged"
    assert (off(k, result, f) <= 1.01e-8).all()
    size = np.abs(right.values).max(axis=(0, 1))
    apart = np.abs(result.values - right.values).max(axis=(0, 1))
    assert (apart <= 1e-6 * size).all()


def test_rounding_of_fp64_ends_a_solve(system):
    k, cycle, f = system
    result = pcg(k, cycle, f, tolerance=1e-30)
    assert (result.outcome, result.ending) == ("not_converged", "stagnated")
    assert result.iterations < 150


def test_a_cycle_of_another_stiffness_is_a_preconditioner_only(
    system, small, shaken_box
):
    k, _, f = system
    s = shaken_box
    other = small.elasticity(s.mesh, s.fixed, 2e10 * s.lam, 1.5e10 * s.mu)
    assert not mixed.applies(k, build(other))
    result = pcg(k, build(other), f)
    assert result.outcome == "converged"
    assert (off(k, result, f) <= 1.01e-8).all()


def test_threads_do_not_change_a_bit(small, shaken_box):
    from afterslip_solver import backend as backends

    s, found = shaken_box, []
    for threads in (1, 3):
        device = backends.get("cpu", threads=threads)
        k = small.elasticity(s.mesh, s.fixed, s.lam, s.mu, device)
        f = np.random.default_rng(0).standard_normal(k.shape) * k.free
        found.append(pcg(k, build(k), f).values)
    np.testing.assert_array_equal(found[0], found[1])


def test_curves_of_both_precisions_agree(small):
    model = small.box_model()
    slip = small.patch_slip(model.faults["main"])
    times = (0.0, 0.5 * YEAR, YEAR)
    settings = SolverSettings(times=times, until=YEAR)
    made = prepare(model, settings, "cpu")
    double = made.adapted(dataclasses.replace(settings, precision="double"))
    found = [part.solve(slip, model.surface.nodes) for part in (made, double)]
    assert abs(found[0].iterations - found[1].iterations) <= 1
    curves = [evaluate_curve(result, np.array(times)) for result in found]
    assert np.abs(curves[0] - curves[1]).max() > 0.0
    change = np.abs(curves[1] - curves[1][:, :1]).max()
    # both are within the time tolerance of the truth
    assert np.abs(curves[0] - curves[1]).max() <= 2e-6 * change
