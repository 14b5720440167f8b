"""Rows as macro.cu computes them, from its tables, against the elements' product."""

from __future__ import annotations

import numpy as np
import pytest

from afterslip_solver import backend as backends
from afterslip_solver.backend.base import LANES, Tets
from afterslip_solver.backend.cuda import macro_plan, stencils
from afterslip_solver.backend.cuda.macro_tasks import ANY, NOTHING, TWICE, make_tasks
from afterslip_solver.mesh.numbering import second_order
from afterslip_solver.mesh.refine import refine_uniformly
from afterslip_solver.operators import Space
from afterslip_solver.testing.box import box_mesh

WARPS = 16
PLACE = 16


@pytest.fixture(scope="module")
def refined():
    """Twelve elements of any shape that were halved three times."""
    box = box_mesh((1, 2, 1), (1.0, 1.5, 1.0))
    vertices = box.nodes[: box.n_vertex]
    rng = np.random.default_rng(0)
    mesh = second_order(vertices + 0.15 * rng.uniform(-1, 1, vertices.shape), box.cells)
    for _ in range(stencils.TIMES):
        mesh, _, _ = refine_uniformly(mesh, {}, {})
    return mesh


def macros_of(elements):
    """Macro elements; they are there."""
    found = macro_plan.find_macros(elements)
    assert found is not None
    return found


@pytest.fixture(scope="module")
def numbered(refined):
    macros = macros_of(refined.elements)
    numbering = macro_plan.macro_numbering(refined.nodes, macros, WARPS)
    fixed = np.zeros(refined.nodes.shape, dtype=bool)
    return Space.build(refined, fixed, numbering)


def blocks_of(tasks, gradients, lam, mu):
    """Stencil blocks (n_block, 3, 3) of one macro element."""
    matrices = tasks.matrices.T.reshape(-1, 3, 3)
    b = np.einsum("ma,bmn,nx->bax", gradients, matrices, gradients)
    trace = np.trace(b, axis1=1, axis2=2)[:, None, None]
    return lam * b + mu * b.swapaxes(1, 2) + mu * trace * np.eye(3)


def rows_by_tasks(tasks, blocks, u):
    """K u (969, 3, lane) by rank as the threads of macro.cu compute it."""
    planes = np.zeros((tasks.n_place, 3, LANES))
    planes[tasks.places] = u
    out = np.full(u.shape, np.nan)
    for start, steps, kind, first in tasks.tasks:
        each, both = (2 if kind == TWICE else 1), (1 if kind == ANY else 2)
        for m in range(each):
            row = tasks.rows[first + m]
            threads = np.flatnonzero((row & 0xFFFF) != NOTHING)
            # where a thread of the warp reads in each step, and opposite
            k = (np.arange(steps)[:, None] * each + m) * both + np.arange(both)
            entry = start + k // 4 * 32 + threads[:, None, None]
            places = tasks.reads[entry, k % 4] // PLACE
            values = planes[places].sum(axis=2)
            own = blocks[(row[threads] >> 16)[:, None] + np.arange(steps)]
            ranks = row[threads] & 0xFFFF
            assert np.isnan(out[ranks]).all()
            out[ranks] = np.einsum("tsax,tsxl->tal", own, values)
    assert not np.isnan(out).any()
    return out


def test_rows_by_stencils_sum_to_the_product_of_the_elements(numbered):
    space, rng = numbered, np.random.default_rng(1)
    macros = macros_of(space.elements)
    gradients, straight = macro_plan.shapes(space, macros)
    assert straight.all()
    n = len(straight)
    lam, mu = rng.uniform(1.0, 2.0, (2, n))
    tasks = make_tasks(WARPS)
    u = rng.standard_normal((space.n_node, 3, LANES))
    found = np.zeros_like(u)
    for k in range(n):
        own = macros.nodes[k, tasks.nodes]
        volume = space.volume[k * stencils.DESCENDANTS]
        blocks = volume * blocks_of(tasks, gradients[k], lam[k], mu[k])
        # a macro element has a node once
        found[own] += rows_by_tasks(tasks, blocks, u[own])
    cpu = backends.get("cpu")
    tets = Tets(space.elements, space.gradients, space.volume)
    lam, mu = (np.repeat(values, stencils.DESCENDANTS) for values in (lam, mu))
    exact = cpu.elastic_forces(tets, lam, mu, u)
    np.testing.assert_allclose(found, exact, atol=1e-13 * np.abs(exact).max())


def test_macro_elements_are_found_in_the_order_of_refinement_only(refined, small):
    found = macros_of(refined.elements)
    assert found.found.all()
    corners = np.sort(macro_plan.node_of_corners(found), axis=1)
    # the vertices of the mesh before refinement keep their numbers
    box = box_mesh((1, 2, 1), (1.0, 1.5, 1.0))
    np.testing.assert_array_equal(corners, np.sort(box.cells, axis=1))
    shuffled = np.random.default_rng(0).permutation(len(refined.elements))
    assert macro_plan.find_macros(refined.elements[shuffled]) is None
    assert macro_plan.find_macros(refined.elements[8:]) is None
    other = small.box_mesh((8, 8, 8), (1.0, 1.0, 1.0))
    assert len(other.elements) % stencils.DESCENDANTS == 0
    assert macro_plan.find_macros(other.elements) is None


def test_a_macro_element_with_a_moved_vertex_is_not_straight(refined):
    macros = macros_of(refined.elements)
    inside = set(macros.nodes[4].tolist()) - set(np.delete(macros.nodes, 4, 0).ravel())
    vertex = next(n for n in sorted(inside) if n < refined.n_vertex)
    vertices = refined.nodes[: refined.n_vertex].copy()
    vertices[vertex] += 1e-4
    moved = second_order(vertices, refined.cells)
    space = Space.build(
        moved,
        np.zeros(moved.nodes.shape, dtype=bool),
        (np.arange(len(moved.nodes)), np.arange(len(moved.elements))),
    )
    again = macros_of(space.elements)
    gradients, straight = macro_plan.shapes(space, again)
    assert np.flatnonzero(~straight).tolist() == [4]
    assert not gradients[4].any()


def test_materials_are_uniform_or_not():
    values = np.repeat([1.0, 2.0, 3.0], stencils.DESCENDANTS)
    values[stencils.DESCENDANTS + 7] += 1e-12
    assert macro_plan.uniform(values).tolist() == [True, False, True]


def test_nodes_inside_a_macro_element_follow_each_other(refined, numbered):
    assert sorted(numbered.order) == list(range(len(refined.nodes)))
    assert sorted(numbered.element_order) == list(range(len(refined.elements)))
    tasks = make_tasks(WARPS)
    macros = macros_of(numbered.elements)
    inside = macros.nodes[:, tasks.nodes[: tasks.n_inner]]
    assert (np.diff(inside, axis=1) == 1).all()
    times = np.bincount(macros.nodes.ravel())
    assert (times[inside] == 1).all()


def test_threads_side_by_side_read_different_banks():
    """Bank conflicts: at most a tenth more than one access for eight threads."""
    tasks = make_tasks(WARPS)
    accesses = groups = 0
    for start, steps, kind, first in tasks.tasks:
        each, both = (2 if kind == TWICE else 1), (1 if kind == ANY else 2)
        length = steps * each * both // 4 * 32
        places = tasks.reads[start : start + length].reshape(-1, 4, 8, 4) // PLACE
        there = ((tasks.rows[first] & 0xFFFF) != NOTHING).reshape(4, 8)
        for octet in range(4):
            for step in places[:, octet][:, there[octet]]:
                for read in step.T:
                    banks = np.bincount(np.unique(read) % 8, minlength=1)
                    accesses += banks.max() if len(read) else 0
                    groups += len(read) > 0
    assert accesses <= 1.1 * groups
