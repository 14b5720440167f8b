"""Lockstep conjugate gradients against a direct solver, and how they end."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import bsr_array
from scipy.sparse.linalg import spsolve

from afterslip_solver.krylov import SurfaceErrorCriterion, pcg
from afterslip_solver.krylov.iteration import Iterate
from afterslip_solver.multigrid import build


@pytest.fixture
def system(small, shaken_box):
    s = shaken_box
    k = small.elasticity(s.mesh, s.fixed, 1e10 * s.lam, 1e10 * s.mu)
    f = np.random.default_rng(0).standard_normal(k.shape) * k.free
    return k, build(k), f * np.array([1.0, 1e-6, 1e12, 3.0])


def direct(k, f):
    matrix = bsr_array((k.host.data, k.host.indices, k.host.indptr)).tocsc()
    return spsolve(matrix, f.reshape(-1, 4)).reshape(f.shape)


def test_solution_equals_direct_solver(system):
    k, cycle, f = system
    result = pcg(k, cycle, f, tolerance=1e-10)
    expected = direct(k, f)
    scale = np.abs(expected).max(axis=(0, 1))
    assert result.outcome == "converged"
    assert (np.abs(result.values - expected).max(axis=(0, 1)) < 1e-8 * scale).all()


def test_reported_residual_is_the_true_one(system):
    k, cycle, f = system
    result = pcg(k, cycle, f, tolerance=1e-8)
    matrix = bsr_array((k.host.data, k.host.indices, k.host.indptr))
    r = f.reshape(-1, 4) - matrix @ result.values.reshape(-1, 4)
    true = np.linalg.norm(r, axis=0) / np.linalg.norm(f.reshape(-1, 4), axis=0)
    np.testing.assert_allclose(result.relative, true, rtol=1e-4)
    assert (true <= 1e-8).all()


def test_idle_lanes_cost_nothing_and_stay_zero(system):
    k, cycle, f = system
    f[:, :, [1, 3]] = 0.0
    result = pcg(k, cycle, f)
    assert result.outcome == "converged"
    assert np.abs(result.values[:, :, [1, 3]]).max() == 0.0
    assert result.relative[1] == 0.0
    nothing = pcg(k, cycle, np.zeros_like(f))
    assert (nothing.outcome, nothing.iterations) == ("converged", 0)


def test_a_lane_does_not_depend_on_the_others(system):
    k, cycle, f = system
    together = pcg(k, cycle, f)
    alone = np.zeros_like(f)
    alone[:, :, 2] = f[:, :, 2]
    single = pcg(k, cycle, alone)
    size = np.abs(single.values[:, :, 2]).max()
    np.testing.assert_allclose(
        together.values[:, :, 2], single.values[:, :, 2], atol=1e-7 * size
    )


def test_good_guess_needs_no_iteration(system):
    k, cycle, f = system
    first = pcg(k, cycle, f, tolerance=1e-10)
    again = pcg(k, cycle, f, guess=first.values, tolerance=1e-9)
    assert (again.outcome, again.iterations) == ("converged", 0)


def test_residual_is_measured_against_the_reference(system, small):
    k, cycle, f = system
    norm = np.sqrt(small.backend.dot(f, f))
    loose = pcg(k, cycle, f, reference=1e4 * norm, tolerance=1e-8)
    tight = pcg(k, cycle, f, tolerance=1e-8)
    assert loose.iterations < tight.iterations
    assert (loose.relative <= 1e-8).all()


def test_running_out_of_iterations_is_an_outcome(system):
    k, cycle, f = system
    result = pcg(k, cycle, f, max_iterations=3)
    assert result.outcome == "not_converged"
    assert result.iterations == 3
    assert "max_iterations" in result.advice
    assert (result.relative > 1e-8).any()


def test_unreachable_tolerance_ends(system):
    k, cycle, f = system
    result = pcg(k, cycle, f, tolerance=1e-30, max_iterations=60)
    assert result.outcome == "not_converged"


def test_rounding_that_keeps_the_residual_up_is_named(system):
    k, cycle, f = system
    result = pcg(k, cycle, f, tolerance=1e-30, max_iterations=400)
    assert (result.outcome, result.ending) == ("not_converged", "stagnated")
    assert "rounding" in result.advice
    assert result.iterations < 400


def test_an_operator_without_energy_is_named(small):
    mesh = small.box_mesh((3, 3, 3), (1.0, 1.0, 1.0))
    mu = np.ones(len(mesh.elements))
    good = small.elasticity(mesh, small.held_sides(mesh.nodes), mu, mu)
    bad = small.elasticity(mesh, small.held_sides(mesh.nodes), -mu, -mu)
    f = np.random.default_rng(0).standard_normal(good.shape) * good.free
    result = pcg(bad, build(good), f)
    assert (result.outcome, result.ending) == ("not_converged", "indefinite")
    assert "energy" in result.advice
    assert result.iterations == 0


def test_not_a_number_is_an_outcome(system):
    k, cycle, f = system
    f[5, 1, 2] = np.nan
    result = pcg(k, cycle, f)
    assert result.outcome == "nan"
    assert result.advice


def test_watch_can_stop_a_solve(system):
    k, cycle, f = system
    reports = []

    def watch(iteration, relative):
        reports.append((iteration, relative.max()))
        return True

    result = pcg(k, cycle, f, tolerance=1e-13, watch=watch)
    assert result.outcome == "stopped"
    assert [i for i, _ in reports] == [10]


def test_history_has_one_entry_per_iteration(system):
    k, cycle, f = system
    result = pcg(k, cycle, f)
    assert len(result.history) == result.iterations
    assert max(result.history[-1]) <= 1e-8


@pytest.fixture
def found(system):
    """System, positions of a trace and a function that makes a criterion of it."""
    k, cycle, f = system
    top = k.space.nodes[:, 2].max()
    trace = np.flatnonzero(k.space.nodes[:, 2] > top - 1e-9)

    def criterion(part):
        def allowed(size):
            return part * size

        return SurfaceErrorCriterion(k.backend, trace, allowed)

    return k, cycle, f, trace, criterion


def off_trace(u, exact, trace):
    return np.abs(u[trace] - exact[trace]).max(axis=(0, 1))


def test_estimated_error_on_the_trace_covers_the_true_one(found):
    k, cycle, f, trace, criterion = found
    exact = pcg(k, cycle, f, tolerance=1e-13).values
    for part in (0.1, 1e-2, 1e-3, 1e-5, 1e-7):
        watcher = criterion(part)
        result = pcg(k, cycle, f, tolerance=1e-12, criterion=watcher)
        true = off_trace(result.values, exact, trace)
        size = np.abs(exact[trace]).max(axis=(0, 1))
        assert result.outcome == "converged"
        assert (true <= watcher.error).all()
        assert (watcher.error <= 30.0 * true).all()
        # and it ends within an iteration or two of where it might
        assert (true <= part * size).all()
        assert (true >= 1e-3 * part * size).all()


def test_estimated_error_of_a_lane_that_stays_is_not_rounding(found):
    k, _, _, trace, _ = found
    u = np.random.default_rng(0).standard_normal(k.shape)
    watcher = SurfaceErrorCriterion(k.backend, trace, lambda size: 1e-3 * size)
    watcher.begin(np.zeros_like(u), np.ones(4))
    watcher.look(Iterate(u))
    assert not watcher.enough(np.full(4, 0.1), np.ones(4, dtype=bool)).any()
    before = watcher.error.copy()
    assert np.isfinite(before).all()
    # two lanes have stopped, and their sum of two parts was rounded anew
    near = u * (1.0 + 2.0**-52)
    near[:, :, :2] *= 1.001
    watcher.look(Iterate(near))
    watcher.enough(np.full(4, 0.01), np.array([True, True, False, False]))
    assert (watcher.error[2:] == before[2:]).all()
    assert (watcher.error[:2] < 0.1 * before[:2]).all()


def test_judge_ends_lanes_one_by_one(found):
    k, cycle, f, _, criterion = found
    f = f.copy()
    f[:, :, 0] *= np.linspace(0.0, 1.0, len(f))[:, None]
    together = pcg(k, cycle, f, criterion=criterion(1e-4))
    for lane in range(4):
        alone = np.zeros_like(f)
        alone[:, :, lane] = f[:, :, lane]
        single = pcg(k, cycle, alone, criterion=criterion(1e-4))
        same = single.values[:, :, lane] == together.values[:, :, lane]
        assert same.all()


def test_who_allows_nothing_gets_the_tolerance(found):
    k, cycle, f, _, criterion = found
    plain = pcg(k, cycle, f, tolerance=1e-9)
    result = pcg(k, cycle, f, tolerance=1e-9, criterion=criterion(0.0))
    assert result.iterations == plain.iterations
    assert (result.relative <= 1e-9).all()


def test_judge_of_a_lane_without_a_load_waits_for_nothing(found):
    k, cycle, f, _, criterion = found
    f[:, :, [1, 3]] = 0.0
    watcher = criterion(1e-3)
    result = pcg(k, cycle, f, criterion=watcher)
    assert result.outcome == "converged"
    assert (watcher.error[[1, 3]] == 0.0).all()
    assert np.abs(result.values[:, :, [1, 3]]).max() == 0.0
