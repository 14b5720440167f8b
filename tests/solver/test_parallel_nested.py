"""A model on several devices is guessed from the mesh that it was refined from."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from test_parallel import agree, ranks, refined

from afterslip_common.terms import YEAR
from afterslip_solver.greens import evaluate_curve, prepare
from afterslip_solver.greens.nested_guess import NestedGuess, Solutions
from afterslip_solver.materials import restoring_force
from afterslip_solver.mesh import coarsened
from afterslip_solver.model import SolverSettings
from afterslip_solver.parallel import (
    DistributedModel,
    PartitionError,
    PartNestedGuess,
    divide,
)
from afterslip_solver.parallel.distributed_model import COARSE, FINE
from afterslip_solver.parallel.rank_model import GUESS, SOLUTIONS

SETTINGS = SolverSettings(times=(0.0, YEAR), until=YEAR, tolerance=1e-9)


@pytest.fixture(scope="module")
def models(small):
    """A coarse model and the one that was refined from it."""
    fine = refined(small.box_model((6, 6, 4)), small.held_sides)
    coarse = coarsened(fine, restoring_force)
    assert coarse is not None
    return coarse, fine


def slips(small, models):
    """Slip on the coarse fault, and the same on the fine one."""
    return [small.patch_slip(model.faults["main"]) for model in models]


@pytest.mark.parametrize("size", [2, 3])
def test_guesses_are_those_of_one_device(small, models, size):
    coarse, fine = models
    on_coarse, on_fine = slips(small, models)
    trace = fine.surface.nodes
    one, other = (prepare(model, SETTINGS, "cpu") for model in models)
    keep = Solutions()
    one.solve(on_coarse, coarse.surface.nodes, keep=keep)
    guesses = NestedGuess(one.elastic, other.elastic).guesses(keep)
    expected = other.solve(on_fine, trace, guesses=guesses)
    whole = DistributedModel(fine, SETTINGS, ranks(size))
    parts = whole.beside(coarse, SETTINGS, nested=True)
    nested = PartNestedGuess(parts, whole)
    stored = Solutions()
    parts.solve(on_coarse, coarse.surface.nodes, keep=stored)
    found = whole.solve(on_fine, trace, guesses=nested.guesses(stored))
    assert found.solves == expected.solves
    for here, there in zip(found.history, expected.history, strict=True):
        assert abs(here["iterations"] - there["iterations"]) <= 1
        # bases are other ones from the second mode on
        if here["phase"] == "elastic":
            np.testing.assert_allclose(here["initial"], there["initial"], rtol=1e-3)
    without = whole.solve(on_fine, trace)
    assert found.iterations < without.iterations
    times = np.array([0.0, 0.3 * YEAR, YEAR])
    agree(evaluate_curve(found, times), evaluate_curve(expected, times), 1e-6)
    agree(evaluate_curve(found, times), evaluate_curve(without, times), 1e-6)


def guess_of(endpoint):
    """Return a part's guess of the first solve, with the nodes of the whole mesh."""
    fine, nested = endpoint.stored[FINE], endpoint.stored[GUESS]
    keep = Solutions()
    coarse = endpoint.stored[COARSE]
    n = coarse.space.n_node
    random = np.random.default_rng(coarse.elastic._part.rank)
    values = np.empty((n, 3, 4))
    # one value a node, as a solution has it, in digits that round
    values[...] = random.standard_normal((n, 3, 1))
    coarse.elastic.agree(values)
    keep.add(coarse.backend, 0, values)
    part = fine.elastic._part
    return part.nodes[fine.space.order], nested.guesses(keep)(0)


def test_copies_of_a_guess_are_equal_to_the_last_bit(models):
    coarse, fine = models
    group = ranks(3)
    whole = DistributedModel(fine, SolverSettings(), group)
    PartNestedGuess(whole.beside(coarse, SolverSettings(), nested=True), whole)
    found = np.full((len(fine.mesh.nodes), 3, 4), np.nan)
    shared = 0
    for nodes, values in group.call(guess_of, [()] * 3, {}):
        known = np.isfinite(found[nodes, 0, 0])
        shared += known.sum()
        np.testing.assert_array_equal(found[nodes[known]], values[known])
        found[nodes] = values
    assert shared > 100
    assert np.isfinite(found).all()
    assert abs(found).max() > 0.0


@pytest.mark.parametrize("size", [2, 3, 5])
def test_children_of_an_element_stay_together(models, size):
    membership = divide(models[1].mesh, size)
    assert (membership.reshape(-1, 8) == membership[::8, None]).all()
    counts = np.bincount(membership)
    assert len(counts) == size
    assert counts.min() > 0.8 * counts.max()


def test_a_coarse_mesh_that_was_built_has_parts_of_its_own(small, models):
    fine = models[1]
    built = small.box_model((8, 8, 4))
    whole = DistributedModel(fine, SETTINGS, ranks(2))
    parts = whole.beside(built, SETTINGS, nested=False)
    slip, trace = small.patch_slip(built.faults["main"]), built.surface.nodes
    found = parts.solve(slip, trace)
    expected = prepare(built, SETTINGS, "cpu").solve(slip, trace)
    agree(found.response[:, 0], expected.response[:, 0], 1e-7)


def test_ranks_outlive_a_coarse_mesh_that_is_too_small_for_them(small, models):
    fine = models[1]
    tiny = small.box_model((2, 2, 2))
    whole = DistributedModel(fine, replace(SETTINGS, until=0.0, times=()), ranks(2))
    with pytest.raises(PartitionError, match="too few for several devices"):
        whole.beside(tiny, SETTINGS, nested=False)
    slip = small.patch_slip(fine.faults["main"])
    assert whole.solve(slip, fine.surface.nodes).outcome == "converged"


def stored_solutions(endpoint):
    """Return which solves' solutions a rank holds."""
    return sorted(endpoint.stored[SOLUTIONS].values)


def test_ranks_hold_solutions_from_the_coarse_solve_to_the_fine_one(small, models):
    coarse, fine = models
    on_coarse, on_fine = slips(small, models)
    group = ranks(2)
    whole = DistributedModel(fine, SETTINGS, group)
    parts = whole.beside(coarse, SETTINGS, nested=True)
    nested = PartNestedGuess(parts, whole)

    def held():
        first, second = group.call(stored_solutions, [()] * 2, {})
        assert first == second
        return first

    traces, keep = (coarse.surface.nodes, fine.surface.nodes), Solutions()
    solves = parts.solve(on_coarse, traces[0], keep=keep).solves
    assert held() == list(range(solves))
    assert keep.values == {}
    whole.solve(on_fine, traces[1], guesses=nested.guesses(keep))
    assert held() == []
    # a group that was cancelled leaves nothing either
    stopped = parts.solve(on_coarse, traces[0], should_stop=lambda: True, keep=keep)
    assert stopped.outcome == "stopped"
    assert held() == []
    parts.solve(on_coarse, traces[0], keep=keep)
    whole.solve(on_fine, traces[1])
    assert held() == []
