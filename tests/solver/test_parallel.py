"""Parts of a model, solved side by side, give what the whole model gives."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from afterslip_common.terms import YEAR
from afterslip_solver import backend as backends
from afterslip_solver.greens import SettingsError, evaluate_curve, prepare
from afterslip_solver.materials import restoring_force
from afterslip_solver.mesh import split_nodes, surface_trace
from afterslip_solver.mesh.imported import imported_fault
from afterslip_solver.mesh.numbering import second_order
from afterslip_solver.mesh.refine import refine_uniformly
from afterslip_solver.model import Materials, Model, SolverSettings
from afterslip_solver.multigrid import local_smoothing
from afterslip_solver.parallel import (
    DistributedModel,
    PartitionError,
    ThreadRankGroup,
    coordinator,
    divide,
    split,
)
from afterslip_solver.parallel.communicator import Meeting, ThreadCommunicator
from afterslip_solver.parallel.halo import Halo
from afterslip_solver.testing.box import box_mesh

ELASTIC = SolverSettings(tolerance=1e-10)
# bases of curves are stored in FP32, and their time error is 1e-6
AGREE = 1e-7


def ranks(size):
    return ThreadRankGroup(size, lambda: backends.get("cpu", threads=1))


def on_ranks(size, work):
    """Results of ``work(endpoint)`` on threads, ranks in order."""
    return ranks(size).call(work, [()] * size, {})


def agree(found, expected, tolerance=AGREE):
    scale = np.abs(expected).max()
    np.testing.assert_allclose(found, expected, atol=tolerance * scale)


def burgers_with_gravity(model):
    m = model.materials
    flows = np.isfinite(m.viscosity)
    restoring, _ = restoring_force(model.mesh, np.where(flows, 3300.0, 2800.0))
    west = flows & (model.mesh.nodes[model.mesh.cells].mean(axis=1)[:, 0] < 0)
    materials = replace(
        m,
        kelvin_viscosity=np.where(west, 1e18, np.inf),
        kelvin_modulus=np.where(west, 4e10, np.inf),
    )
    return replace(model, materials=materials, restoring=restoring)


@pytest.mark.parametrize("size", [2, 4])
def test_parts_hold_every_element_once_and_agree_on_what_they_share(small, size):
    model = small.box_model((8, 8, 4))
    mesh = model.mesh
    member = divide(mesh, size)
    counts = np.bincount(member, minlength=size)
    assert counts.min() > 0.85 * len(member) / size
    parts = split(model, member)
    for part in parts:
        local = part.model.mesh
        np.testing.assert_array_equal(
            part.nodes[local.elements], mesh.elements[member == part.rank]
        )
        assert (part.nodes[: local.n_vertex] < mesh.n_vertex).all()
        for peer, nodes in part.shared.items():
            theirs = parts[peer].nodes[parts[peer].shared[part.rank]]
            np.testing.assert_array_equal(part.nodes[nodes], theirs)
    owned = np.concatenate([part.nodes[part.sharing < 2] for part in parts])
    np.testing.assert_array_equal(np.sort(owned), np.arange(len(mesh.nodes)))
    # a plane across the box would share 17 * 9 nodes; METIS may pay half as much again
    shared = sum(len(nodes) for part in parts for nodes in part.shared.values()) / 2
    assert shared < 1.5 * (size - 1) * 17 * 9


def test_descendants_of_an_element_that_was_halved_three_times_stay_together():
    box = box_mesh((4, 4, 3), (1.0, 1.0, 1.0))
    mesh = second_order(box.nodes[: box.n_vertex], box.cells)
    for _ in range(3):
        mesh, _, _ = refine_uniformly(mesh, {}, {})
    parts = divide(mesh, 2).reshape(-1, 512)
    assert (parts == parts[:, :1]).all()
    assert np.bincount(parts[:, 0]).max() < 1.05 * len(parts) / 2
    # in another order nothing shows what they come from
    mixed = np.random.default_rng(0).permutation(len(mesh.elements))
    shuffled = second_order(mesh.nodes[: mesh.n_vertex], mesh.cells[mixed])
    parts = divide(shuffled, 2)
    assert np.bincount(parts).max() < 1.05 * len(parts) / 2


def test_copies_of_a_shared_node_are_equal_to_the_last_bit(small):
    model = small.box_model()
    parts = split(model, divide(model.mesh, 4))
    rng = np.random.default_rng(0)
    n_node = len(model.mesh.nodes)
    values = [rng.standard_normal((len(part.nodes), 3, 4)) for part in parts]
    meeting = Meeting(4)
    found = [np.full((n_node, 3, 4), np.nan) for _ in parts]

    def work(endpoint):
        rank = endpoint.communicator.rank
        part, talk = parts[rank], ThreadCommunicator(meeting, rank)
        order = np.argsort(part.sharing, kind="stable")
        place = np.argsort(order)
        shared = {peer: place[nodes] for peer, nodes in part.shared.items()}
        owned = int((part.sharing < 2).sum())
        halo = Halo(endpoint.backend, talk, len(order), owned, shared)
        x = values[rank][order]
        halo.sum(x)
        found[rank][part.nodes[order]] = x

    on_ranks(4, work)
    expected = np.zeros((n_node, 3, 4))
    for part, own in zip(parts, values, strict=True):
        expected[part.nodes] += own
    for own in found:
        here = np.isfinite(own)
        np.testing.assert_array_equal(own[here], expected[here])
    assert np.isfinite(found).any(axis=0).all()


@pytest.mark.parametrize("size", [2, 4])
def test_a_solve_takes_the_iterations_of_one_device(small, size):
    model = small.box_model()
    slip = small.patch_slip(model.faults["main"])
    trace = model.surface.nodes
    whole = prepare(model, ELASTIC, "cpu").solve(slip, trace)
    parts = DistributedModel(model, ELASTIC, ranks(size)).solve(slip, trace)
    assert parts.outcome == "converged"
    assert abs(parts.iterations - whole.iterations) <= 1
    agree(parts.response, whole.response, 1e-9)


def refined(model, held_sides):
    """Halve all edges of a model of one fault."""
    ((name, fault),) = model.faults.items()
    m = model.materials
    mesh, triangles, _ = refine_uniformly(
        model.mesh, {name: fault.triangles[:, :3]}, {}
    )
    fine = imported_fault(mesh, name, triangles[name])
    eight = (np.repeat(v, 8) for v in (m.lam, m.mu, m.rho, m.viscosity))
    return Model(
        mesh,
        Materials(*eight),
        held_sides(mesh.nodes),
        surface_trace(mesh),
        {name: fine},
        {name: split_nodes(mesh, fine)},
    )


def test_parts_of_a_refined_model_descend_through_its_parents(small):
    model = refined(small.box_model(), small.held_sides)
    rho = np.where(np.isfinite(model.materials.viscosity), 3300.0, 2800.0)
    model = replace(model, restoring=restoring_force(model.mesh, rho)[0])
    slip = small.patch_slip(model.faults["main"])
    trace = model.surface.nodes
    whole = prepare(model, ELASTIC, "cpu")
    assert len(whole.space.parents) == 1
    one = whole.solve(slip, trace)
    parts = DistributedModel(model, ELASTIC, ranks(3)).solve(slip, trace)
    assert parts.outcome == "converged"
    assert abs(parts.iterations - one.iterations) <= 1
    agree(parts.response, one.response, 1e-9)


def test_local_smoothing_agrees_too(small, monkeypatch):
    def largest(energy, most):
        return energy >= np.quantile(energy, 1.0 - most)

    for module in (local_smoothing, coordinator):
        monkeypatch.setattr(module, "concentrated", largest)
    model = small.box_model()
    slip = small.patch_slip(model.faults["main"])
    trace = model.surface.nodes
    whole = prepare(model, ELASTIC, "cpu").solve(slip, trace)
    parts = DistributedModel(model, ELASTIC, ranks(4)).solve(slip, trace)
    assert abs(parts.iterations - whole.iterations) <= 1
    agree(parts.response, whole.response, 1e-9)


@pytest.mark.parametrize(
    ("size", "changes"),
    [
        (2, {"scheme": "polynomial"}),
        (4, {"scheme": "polynomial"}),
        (3, {"scheme": "shift_invert"}),
        (2, {"integrator": "stepping", "step": YEAR / 3}),
    ],
)
def test_whole_curves_agree(small, size, changes):
    """Burgers bodies and springs too: every operator that is summed over parts."""
    model = burgers_with_gravity(small.box_model())
    slip = small.patch_slip(model.faults["main"])
    settings = SolverSettings(times=(0.0, YEAR), until=YEAR, tolerance=1e-10, **changes)
    trace = model.surface.nodes
    whole = prepare(model, settings, "cpu").solve(slip, trace)
    parts = DistributedModel(model, settings, ranks(size)).solve(slip, trace)
    assert parts.solves == whole.solves
    times = YEAR * np.array([0.0, 0.1, 0.5, 1.0])
    agree(evaluate_curve(parts, times), evaluate_curve(whole, times))
    steps = [h["iterations"] for h in whole.history]
    for one, other in zip(parts.history, steps, strict=True):
        assert abs(one["iterations"] - other) <= 1


def test_parts_without_creep_or_fault_take_part(small):
    """A thin weak body in one corner, far from the fault: most parts have neither."""
    model = small.box_model()
    centre = model.mesh.nodes[model.mesh.cells].mean(axis=1)
    corner = (centre[:, 0] > 15e3) & (centre[:, 1] > 15e3) & (centre[:, 2] < -20e3)
    weak = replace(model.materials, viscosity=np.where(corner, 1e18, np.inf))
    model = replace(model, materials=weak)
    slip = small.patch_slip(model.faults["main"])
    settings = SolverSettings(times=(YEAR,), until=YEAR, tolerance=1e-10)
    trace = model.surface.nodes
    whole = prepare(model, settings, "cpu").solve(slip, trace)
    parts = DistributedModel(model, settings, ranks(4)).solve(slip, trace)
    assert parts.solves == whole.solves
    times = np.array(settings.times)
    agree(evaluate_curve(parts, times), evaluate_curve(whole, times))


class Shelf:
    """Keeps the last state; a `Checkpointer`."""

    def __init__(self, state=None):
        self.state = state

    def load(self):
        return self.state

    def due(self):
        return True

    def save(self, state):
        self.state = {key: np.array(value) for key, value in state.items()}


def test_a_stopped_curve_goes_on_from_its_parts_states(small):
    model = small.box_model()
    slip = small.patch_slip(model.faults["main"])
    settings = SolverSettings(times=(YEAR,), until=YEAR)
    trace = model.surface.nodes
    parts = DistributedModel(model, settings, ranks(2))
    whole = parts.solve(slip, trace)
    shelf, reports = Shelf(), []
    stopped = parts.solve(
        slip, trace, reports.append, lambda: reports[-1]["solve"] >= 3, shelf
    )
    assert stopped.outcome == "stopped"
    resumed = parts.solve(slip, trace, checkpointer=Shelf(shelf.state))
    assert resumed.solves == whole.solves
    np.testing.assert_array_equal(resumed.response, whole.response)


def test_a_failure_in_one_rank_ends_the_job_on_all(small):
    def work(endpoint):
        if endpoint.communicator.rank == 1:
            raise ValueError("rank one")
        endpoint.communicator.all_reduce(np.zeros(4))

    with pytest.raises(ValueError, match="rank one"):
        on_ranks(3, work)


def test_what_cannot_be_divided_is_refused(small):
    model = small.box_model((4, 4, 3))
    with pytest.raises(PartitionError, match="too few"):
        DistributedModel(model, ELASTIC, ranks(2))
    settings = SolverSettings(
        until=YEAR, integrator="stepping", step=YEAR, predictor="dmd"
    )
    with pytest.raises(SettingsError, match="dmd"):
        DistributedModel(model, settings, ranks(2))
