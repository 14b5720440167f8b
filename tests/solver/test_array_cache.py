"""A set-up taken from a shelf is the set-up."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from afterslip_solver.array_cache import NO_CACHE, digest
from afterslip_solver.backend import get
from afterslip_solver.backend.cuda.plan import Plan, make_plan
from afterslip_solver.greens import prepare
from afterslip_solver.mesh.refine import refine_uniformly
from afterslip_solver.model import SolverSettings
from afterslip_solver.multigrid import MultigridSettings
from afterslip_solver.multigrid.coarse_levels import HostLevels, host_levels
from afterslip_solver.operators import Space
from afterslip_solver.parallel import DistributedModel, ThreadRankGroup


class Memory:
    """A shelf that counts what is made; what it returns has been copied."""

    def __init__(self):
        self.held, self.made = {}, []

    def get(self, name, make):
        if name not in self.held:
            self.made.append(name)
            self.held[name] = make()
        return self.find(name)

    def find(self, name):
        if name not in self.held:
            return None
        return {key: np.array(value) for key, value in self.held[name].items()}

    @property
    def kinds(self):
        return sorted(name.split("-")[0] for name in self.made)


ELASTIC = SolverSettings(times=(0.0,), until=0.0)
CURVE = SolverSettings(times=(0.0, 3e8), until=3e8, scheme="shift_invert")


def solved(model, small, settings, shelf=None):
    (fault,) = model.faults.values()
    made = prepare(model, settings, "cpu", shelf)
    return made.solve([small.patch_slip(fault)], model.surface.nodes)


def test_second_set_up_computes_nothing_of_it_and_solves_to_the_same_bits(small):
    model, shelf = small.box_model(), Memory()
    plain = solved(model, small, CURVE)
    first = solved(model, small, CURVE, shelf)
    # the elastic stiffness and the softened one have levels of their own
    assert shelf.kinds == ["levels", "levels", "numbering", "slow", "slow"]
    shelf.made.clear()
    second = solved(model, small, CURVE, shelf)
    assert shelf.made == []
    for one in (first, second):
        assert one.iterations == plain.iterations
        assert np.array_equal(one.response, plain.response)


def solved_in_parts(model, small, settings, shelf=None):
    (fault,) = model.faults.values()
    ranks = ThreadRankGroup(3, lambda: get("cpu", threads=1))
    made = DistributedModel(model, settings, ranks, cache=shelf)
    return made.solve([small.patch_slip(fault)], model.surface.nodes)


@pytest.fixture(scope="module")
def stored_parts(small):
    """What a set-up in parts stores, and what is solved without and with that."""
    model, shelf = small.box_model(), Memory()
    plain = solved_in_parts(model, small, CURVE)
    return model, shelf, plain, solved_in_parts(model, small, CURVE, shelf)


@pytest.mark.parametrize("lost", ["nothing", "levels", "slow", "numbering", "parts"])
def test_parts_of_a_model_are_set_up_from_what_is_stored(small, stored_parts, lost):
    model, stored, plain, first = stored_parts
    whole = ["levels", "levels", *["numbering"] * 3, "parts", "slow", "slow"]
    assert stored.kinds == whole
    shelf = Memory()
    shelf.held.update(stored.held)
    gone = [name for name in shelf.held if name.startswith(lost)]
    # one rank's numbering; the others' are there
    for name in gone[:1] if lost == "numbering" else gone:
        del shelf.held[name]
    second = solved_in_parts(model, small, CURVE, shelf)
    again = [lost] if lost == "numbering" else [k for k in whole if k == lost]
    assert shelf.kinds == again
    for one in (first, second):
        assert one.iterations == plain.iterations
        assert np.array_equal(one.response, plain.response)


@pytest.mark.parametrize("what", ["mu", "fixed"])
def test_parts_of_another_model_share_nothing_that_depends_on_it(small, what):
    model, shelf = small.box_model(), Memory()
    solved_in_parts(model, small, ELASTIC, shelf)
    shelf.made.clear()
    if what == "mu":
        mu = model.materials.mu.copy()
        # of one element, so of one part
        mu[-1] *= 1.0 + 1e-12
        other = replace(model, materials=replace(model.materials, mu=mu))
    else:
        fixed = model.fixed.copy()
        fixed[np.flatnonzero(~fixed.any(axis=1))[0], 1] = True
        other = replace(model, fixed=fixed)
    solved_in_parts(other, small, ELASTIC, shelf)
    assert shelf.kinds == ["levels", "parts", "slow"]


@pytest.mark.parametrize("what", ["mu", "lam", "nodes", "fixed"])
def test_another_model_shares_nothing_that_depends_on_it(small, what):
    model, shelf = small.box_model(), Memory()
    prepare(model, ELASTIC, "cpu", shelf)
    shelf.made.clear()
    if what == "nodes":
        mesh = replace(model.mesh, nodes=model.mesh.nodes * 1.001)
        other = replace(model, mesh=mesh)
    elif what == "fixed":
        fixed = model.fixed.copy()
        fixed[np.flatnonzero(~fixed.any(axis=1))[0], 1] = True
        other = replace(model, fixed=fixed)
    else:
        values = getattr(model.materials, what).copy()
        values[-1] *= 1 + 1e-12
        other = replace(model, materials=replace(model.materials, **{what: values}))
    prepare(other, ELASTIC, "cpu", shelf)
    numbering = ["numbering"] if what == "nodes" else []
    assert shelf.kinds == ["levels", *numbering, "slow"]


def test_other_settings_of_time_share_what_is_elastic(small):
    model, shelf = small.box_model(), Memory()
    prepare(model, CURVE, "cpu", shelf)
    shelf.made.clear()
    prepare(model, replace(CURVE, scheme="polynomial", times=(1e8,)), "cpu", shelf)
    assert shelf.made == []


@pytest.mark.parametrize("times", [0, 1])
def test_levels_are_whole_after_a_round_trip(small, times):
    mesh = small.box_mesh((4, 4, 4), (1.0, 1.0, 1.0))
    for _ in range(times):
        mesh, _, _ = refine_uniformly(mesh, {}, {})
    mu = 1.0 + np.random.default_rng(0).random(len(mesh.elements))
    k = small.elasticity(mesh, small.held_sides(mesh.nodes), 2.0 * mu, mu)
    found = host_levels(k, MultigridSettings(max_coarse=8), 1.0, np.float32, NO_CACHE)
    assert len(found.sizes) == times + 1
    assert found.below
    again = HostLevels.of_arrays(found.as_arrays()).as_arrays()
    assert again.keys() == found.as_arrays().keys()
    for name, array in found.as_arrays().items():
        assert again[name].dtype == array.dtype
        assert np.array_equal(again[name], array)


def test_plan_is_whole_after_a_round_trip(small):
    mesh = small.box_mesh((4, 4, 4), (1.0, 1.0, 1.0))
    space = Space.build(mesh, small.held_sides(mesh.nodes))
    plan = make_plan(space.elements, space.nodes, space.fixed, 48, 2)
    again = Plan(**plan.as_arrays())
    for name, table in plan.as_arrays().items():
        assert getattr(again, name) is table


def test_without_a_shelf_nothing_is_digested(small):
    assert NO_CACHE.keyed(object()) is NO_CACHE
    assert NO_CACHE.get("a", lambda: {"x": np.ones(1)})["x"] == 1


def test_digest_sees_each_block_and_the_form_of_an_array():
    large = np.zeros(5_000_000)
    found = {digest(large), digest(large.astype(">f8")), digest(large.reshape(-1, 5))}
    for at in (0, 1_500_000, -1):
        other = large.copy()
        other[at] = 1.0
        found.add(digest(other))
    found |= {digest(), digest(large[:0]), digest(large, large[:0])}
    assert len(found) == 9
    assert digest(np.zeros((5, 1_000_000)).T.reshape(-1)) == digest(large)
