"""Solutions on the mesh that a refined one came from, as guesses on the latter."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array

from afterslip_common.terms import KM, YEAR
from afterslip_solver.backend import LANES
from afterslip_solver.greens import evaluate_curve, prepare
from afterslip_solver.greens.nested_guess import NestedGuess, Solutions
from afterslip_solver.krylov import pcg
from afterslip_solver.mesh.imported import imported_fault
from afterslip_solver.mesh.refine import refine_uniformly
from afterslip_solver.mesh.split import split_nodes
from afterslip_solver.mesh.trace import surface_trace
from afterslip_solver.model import Materials, Model, SolverSettings
from afterslip_solver.multigrid import build
from afterslip_solver.testing.box import box_with_fault

TIMES = (0.0, 0.5 * YEAR, YEAR)
SETTINGS = SolverSettings(times=TIMES, until=YEAR, tolerance=1e-9)


def model(small):
    """A box with eight by four faces of elements on a fault, that creeps below it."""
    geometry = box_with_fault(
        (6, 12, 7), (60 * KM, 120 * KM, 70 * KM), 90.0, 80 * KM, 10 * KM, 40 * KM
    )
    mesh = geometry.mesh
    deep = mesh.nodes[mesh.cells, 2].mean(axis=1) < -50 * KM
    lam, mu = np.where(deep, 7e10, 3.2e10), np.where(deep, 6e10, 3e10)
    viscosity = np.where(deep, 3e18, np.inf)
    return Model(
        mesh,
        Materials(lam, mu, np.full(len(mu), 3000.0), viscosity),
        small.held_sides(mesh.nodes),
        surface_trace(mesh),
        geometry.faults,
        geometry.splits,
    )


def refined(coarse, held_sides):
    """The same model on a mesh of half as long edges."""
    fault, m = coarse.faults["main"], coarse.materials
    own = {"main": fault.triangles[:, :3]}
    mesh, surfaces, _ = refine_uniformly(coarse.mesh, own, {})
    fine = imported_fault(mesh, "main", surfaces["main"])
    names = ("lam", "mu", "rho", "viscosity")
    return Model(
        mesh,
        Materials(*(np.repeat(getattr(m, name), 8) for name in names)),
        held_sides(mesh.nodes),
        surface_trace(mesh),
        {"main": fine},
        {"main": split_nodes(mesh, fine)},
    )


@pytest.fixture(params=["cpu", pytest.param("gpu", marks=pytest.mark.gpu)])
def nested(small, request):
    """Prepared coarse and fine models, and what takes one to the other."""
    coarse = model(small)
    fine = refined(coarse, small.held_sides)
    first, second = (prepare(m, SETTINGS, request.param) for m in (coarse, fine))
    return first, second, NestedGuess(first.elastic, second.elastic)


def slip_of(nested, small):
    """Slip on the coarse fault, and the same quadratic field on the fine one."""
    coarse, fine, _ = (part for part in nested)
    own, split = coarse.model.faults["main"], fine.model.faults["main"]
    slip = small.patch_slip(own)
    host = coarse.backend.to_host
    parts = [host(part) for part in nested[2]._embedding]
    shape = fine.space.n_node, coarse.space.n_node
    weights = csr_array((parts[2], parts[1], parts[0]), shape=shape)
    whole = np.zeros((coarse.space.n_node, 3 * LANES))
    whole[coarse.space.rank[own.nodes]] = slip.reshape(len(slip), -1)
    on_fine = (weights @ whole)[fine.space.rank[split.nodes]]
    return slip, on_fine.reshape(-1, 3, LANES), weights


def test_quadratic_fields_stay_what_they_are(nested):
    coarse, fine, guess = nested

    def field(nodes):
        x, y, z = (1e-5 * nodes).T
        parts = np.stack([x * y - z, 1.0 + z * z, x + 2.0 * y * z], axis=1)
        return parts[:, :, None] * np.arange(1.0, 1.0 + LANES)

    keep = Solutions()
    # the second solve: slip is no part of it
    for solve in range(2):
        values = coarse.backend.asarray(field(coarse.space.nodes))
        keep.add(coarse.backend, solve, values)
    found = fine.backend.to_host(guess.guesses(keep)(1))
    expected = field(fine.space.nodes) * ~fine.space.fixed[:, :, None]
    np.testing.assert_allclose(found, expected, atol=2e-6 * abs(expected).max())
    assert guess.guesses(keep)(2) is None


def test_what_is_left_of_the_load_is_what_the_coarse_mesh_cannot_resolve(nested, small):
    """Galerkin: a coarse solution is the best one that the coarse mesh has."""
    coarse, fine, guess = nested
    slip, on_fine, weights = slip_of(nested, small)
    keep = Solutions()
    coarse.solve(slip, coarse.model.surface.nodes, keep=keep)
    f, operator = fine.elastic.load(on_fine), fine.elastic.system.operator
    left = operator.check(guess.guesses(keep)(0), f)
    f, left = (fine.backend.to_host(part).reshape(len(f), -1) for part in (f, left))
    resolved = (weights.T @ left).reshape(-1, 3, LANES)[~coarse.space.fixed]
    load = (weights.T @ f).reshape(-1, 3, LANES)[~coarse.space.fixed]
    # solutions are stored in FP32
    assert abs(resolved).max() < 1e-4 * abs(load).max()
    assert abs(left).max() > 1e-2 * abs(f).max()


def test_most_of_the_energy_is_in_the_guess(nested, small):
    coarse, fine, guess = nested
    slip, on_fine, _ = slip_of(nested, small)
    keep = Solutions()
    coarse.solve(slip, coarse.model.surface.nodes, keep=keep)
    system, f = fine.elastic.system, fine.elastic.load(on_fine)
    exact = pcg(system.operator, system.cycle, f, tolerance=1e-11).values

    def energy(u):
        out = u.copy()
        system.operator.apply(u, out)
        return fine.backend.dot(u, out)

    first = guess.guesses(keep)(0)
    left = energy(first - exact) / energy(exact)
    keep.slip = {}
    nodal = energy(guess.guesses(keep)(0) - exact) / energy(exact)
    assert (left < 0.05).all()
    # the elements beside the fault are displaced, too
    assert (left < 0.1 * nodal).all()


@pytest.mark.parametrize(
    "scheme", [pytest.param("polynomial", marks=pytest.mark.slow), "shift_invert"]
)
def test_guesses_cost_no_iterations_and_change_no_curve(small, scheme):
    settings = replace(SETTINGS, scheme=scheme)
    coarse = model(small)
    fine = refined(coarse, small.held_sides)
    first, second = (prepare(m, settings, "cpu") for m in (coarse, fine))
    guess = NestedGuess(first.elastic, second.elastic)
    slip, on_fine, _ = slip_of((first, second, guess), small)
    trace, keep = fine.surface.nodes, Solutions()
    first.solve(slip, coarse.surface.nodes, keep=keep)
    without = second.solve(on_fine, trace)
    found = second.solve(on_fine, trace, guesses=guess.guesses(keep))
    assert len(keep.values) > 2
    assert found.iterations <= without.iterations
    # residuals over a tenth of the load: that of a guess of nothing is 10
    assert max(found.history[0]["initial"]) < 1.0
    assert all(max(entry["initial"]) < 9.0 for entry in found.history[1:3])
    assert max(found.residual) <= 1e-9
    curves = [evaluate_curve(r, np.array(TIMES)) for r in (found, without)]
    change = abs(curves[1] - curves[1][:, :1]).max()
    # what either may be wrong by
    allowed = 2.0 * settings.time_tolerance * change
    np.testing.assert_allclose(curves[0], curves[1], atol=allowed)


def test_a_guess_is_taken_as_far_as_it_helps(small, shaken_box):
    s = shaken_box
    k = small.elasticity(s.mesh, s.fixed, s.lam, s.mu)
    random, cycle = np.random.default_rng(3), build(k)
    f = random.standard_normal(k.shape) * k.free
    exact = pcg(k, cycle, f, tolerance=1e-12)
    # another sign and size is no harm; nor is what has nothing to do with the solution
    wrong = pcg(k, cycle, f, guess=-30.0 * exact.values, fitted=True, tolerance=1e-8)
    assert wrong.iterations == 0
    useless = 1e6 * random.standard_normal(k.shape) * k.free
    far = pcg(k, cycle, f, guess=useless, fitted=True, tolerance=1e-8)
    assert far.iterations <= pcg(k, cycle, f, tolerance=1e-8).iterations + 1
    nothing = pcg(k, cycle, f, guess=np.zeros_like(f), fitted=True, tolerance=1e-8)
    assert (nothing.relative <= 1e-8).all()


def test_steps_that_are_predicted_are_not_stored_as_guesses(small):
    settings = replace(SETTINGS, integrator="stepping", step=YEAR / 12)
    coarse = model(small)
    keep = Solutions()
    slip = small.patch_slip(coarse.faults["main"])
    prepared = prepare(coarse, settings, "cpu")
    found = prepared.solve(slip, coarse.surface.nodes, keep=keep)
    assert found.solves == 13
    # the elastic solve, and the first step, before which there is no past
    assert sorted(keep.values) == [0, 1]
