"""Parts get equal shares of each kind of work."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from afterslip_solver.backend.cpu.backend import CpuBackend
from afterslip_solver.greens import prepare
from afterslip_solver.mesh.imported import imported_fault
from afterslip_solver.mesh.refine import refine_uniformly
from afterslip_solver.mesh.split import split_nodes
from afterslip_solver.mesh.trace import surface_trace
from afterslip_solver.model import Materials, SolverSettings
from afterslip_solver.multigrid import MultigridSettings, local_smoothing
from afterslip_solver.multigrid import settings as multigrid_settings
from afterslip_solver.parallel import (
    DistributedModel,
    ThreadRankGroup,
    coordinator,
    divide,
    rank_hierarchy,
)
from afterslip_solver.parallel.distributed_model import FINE, expected_work


@pytest.fixture
def fine(small):
    """A box whose edges were halved once."""
    model = small.box_model((4, 4, 4))
    ((name, fault),) = model.faults.items()
    m = model.materials
    surfaces = {name: fault.triangles[:, :3]}
    mesh, triangles, _ = refine_uniformly(model.mesh, surfaces, {})
    found = imported_fault(mesh, name, triangles[name])
    fields = (np.repeat(v, 8) for v in (m.lam, m.mu, m.rho, m.viscosity))
    return replace(
        model,
        mesh=mesh,
        materials=Materials(*fields),
        fixed=small.held_sides(mesh.nodes),
        surface=surface_trace(mesh),
        faults={name: found},
        splits={name: split_nodes(mesh, found)},
    )


def largest(energy, most):
    return energy >= np.quantile(energy, 1.0 - most)


@pytest.mark.parametrize("n", [2, 4, 8])
def test_parts_have_equal_elements_and_share_the_work_beyond_them(small, n):
    mesh = small.box_model((8, 8, 8)).mesh
    depth = -mesh.nodes[mesh.cells].mean(axis=1)[:, 2]
    more = np.where(depth < np.quantile(depth, 0.2), 2.0, 0.0)

    def most(parts):
        return np.bincount(parts, more).max() * n / more.sum()

    parts, blind = divide(mesh, n, 1.0 + more), divide(mesh, n)
    for found in (parts, blind):
        # METIS allows three per cent, and clusters of one element are whole
        assert np.bincount(found).max() < 1.05 * len(more) / n
    assert most(parts) < most(blind)


def test_work_is_predicted_from_what_a_mesh_was_refined_from(small, fine, monkeypatch):
    monkeypatch.setattr(local_smoothing, "concentrated", largest)
    ranks = ThreadRankGroup(2, lambda: CpuBackend(1))
    assert expected_work(small.box_model(), ranks) is None
    work = expected_work(fine, ranks)
    assert work is not None
    assert len(work) == len(fine.mesh.elements)
    by_parent = work.reshape(-1, 8)
    assert (by_parent == by_parent[:, :1]).all()
    share = (work > 1.0).mean()
    assert 0.05 < share < 0.15


def test_balanced_parts_find_what_one_device_finds(small, fine, monkeypatch):
    for module in (local_smoothing, coordinator):
        monkeypatch.setattr(module, "concentrated", largest)
    slip = small.patch_slip(fine.faults["main"])
    trace, settings = fine.surface.nodes, SolverSettings()
    one = prepare(fine, settings, "cpu").solve(slip, trace)
    parts = DistributedModel(fine, settings, ThreadRankGroup(3, lambda: CpuBackend(1)))
    found = parts.solve(slip, trace)
    assert abs(found.iterations - one.iterations) <= 1
    # both to 1e-8 of the load
    size = np.abs(one.response).max()
    np.testing.assert_allclose(found.response, one.response, atol=1e-8 * size)


def test_parts_of_a_large_mesh_have_the_settings_of_large_ones(fine, monkeypatch):
    monkeypatch.setattr(multigrid_settings, "LARGE", len(fine.mesh.elements))
    expected = MultigridSettings.suiting(len(fine.mesh.elements))
    assert expected != MultigridSettings()
    used = []

    def energy(operator, cycle, start, cycles):
        used.append(cycles)
        return local_smoothing.slow_energy(operator, cycle, start, cycles)

    def concentrated(energies, most):
        used.append(most)
        return local_smoothing.concentrated(energies, most)

    monkeypatch.setattr(rank_hierarchy, "slow_energy", energy)
    monkeypatch.setattr(coordinator, "concentrated", concentrated)
    ranks = ThreadRankGroup(2, lambda: CpuBackend(1))
    DistributedModel(fine, SolverSettings(), ranks)
    cycles, share = expected.local_cycles, expected.local_share
    assert sorted(used) == [share, cycles, cycles]


def visits(cycle):
    return [level.visits for level in cycle.levels]


def visits_of(endpoint):
    return visits(endpoint.stored[FINE].elastic.system.cycle)


def test_parts_visit_aggregates_as_often_as_one_device(small, monkeypatch):
    few = MultigridSettings(max_coarse=8)
    monkeypatch.setattr(MultigridSettings, "suiting", lambda _: few)
    model = small.box_model((8, 8, 8))
    one = visits(prepare(model, SolverSettings(), "cpu").elastic.system.cycle)
    assert one[2] == few.visits > 1
    ranks = ThreadRankGroup(2, lambda: CpuBackend(1))
    DistributedModel(model, SolverSettings(), ranks)
    assert ranks.call(visits_of, [()] * 2, {}) == [one] * 2
