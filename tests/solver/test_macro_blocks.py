"""Blocks that are macro elements: their plan has every element, and adds safely."""

from __future__ import annotations

import numpy as np
import pytest

from afterslip_solver.backend.cuda import macro_plan, stencils, variants
from afterslip_solver.backend.cuda.colouring import Colouring
from afterslip_solver.backend.cuda.macro_blocks import plan_blocks
from afterslip_solver.backend.cuda.plan import LARGEST, NO_NODE
from afterslip_solver.mesh.numbering import second_order
from afterslip_solver.mesh.refine import refine_uniformly
from afterslip_solver.testing.box import box_mesh

SHAPE = variants.MACRO_SHAPE
WARPS = SHAPE.threads // 32


@pytest.fixture(scope="module")
def planned():
    """Plan of four of six macro elements, cut along all three diagonals."""
    box = box_mesh((1, 1, 1), (1.0, 1.2, 1.5))
    vertices = box.nodes[: box.n_vertex]
    rng = np.random.default_rng(0)
    mesh = second_order(vertices + 0.25 * rng.uniform(-1, 1, vertices.shape), box.cells)
    for _ in range(stencils.TIMES):
        mesh, _, _ = refine_uniformly(mesh, {}, {})
    macros = macro_plan.find_macros(mesh.elements)
    assert macros is not None
    assert set(macros.diagonals[[0, 2, 3, 5]].tolist()) == {0, 1, 2}
    which = np.array([0, 2, 3, 5])
    fixed = np.repeat(mesh.nodes[:, 2:] < 0.2, 3, axis=1)
    plan = plan_blocks(macros, which, Colouring.of(macros, fixed), SHAPE)
    elements = mesh.elements.reshape(-1, stencils.DESCENDANTS, 10)[which]
    others = np.unique(macros.nodes[[1, 4]])
    return elements.reshape(-1, 10), fixed, others, plan


def rows_of(plan):
    """(n_task,) row of each task in the tables that blocks share."""
    count = np.diff(plan.tasks)
    shift = np.repeat(plan.patterns - plan.tasks[:-1], count)
    return np.arange(plan.tasks[-1]) + shift, np.repeat(plan.slots[:-1], count)


def test_every_element_is_there_once_with_its_nodes(planned):
    elements, fixed, _, plan = planned
    there = plan.members >= 0
    members = plan.members[there]
    assert sorted(members.tolist()) == list(range(len(elements)))
    rows, first = rows_of(plan)
    slot = first[:, None, None] + plan.local[rows][:, :, :10].astype(int)
    entries = plan.nodes[slot[there]]
    np.testing.assert_array_equal(entries & LARGEST, elements[members])
    held = (entries[..., None] >> np.arange(28, 31)) & 1
    np.testing.assert_array_equal(held.astype(bool), fixed[elements[members]])


def test_products_in_fp16_have_room_for_all_places(planned):
    plan = planned[-1]
    assert np.diff(plan.slots).max() <= variants.MACRO_SLOTS


def test_tasks_that_add_at_once_share_no_node(planned):
    elements, _, _, plan = planned
    # every warp has eight elements, and two of them add at once
    assert len(plan.members) * SHAPE.per_task == len(elements)
    assert SHAPE.together == 2
    assert (np.diff(plan.tasks) % WARPS == 0).all()
    for first in range(0, len(plan.members), SHAPE.together):
        members = plan.members[first : first + SHAPE.together]
        nodes = elements[members.ravel()].ravel()
        assert len(nodes) == len(set(nodes.tolist()))


def test_nodes_of_other_macro_elements_are_added_and_those_inside_are_not(planned):
    elements, fixed, others, plan = planned
    real = plan.nodes[plan.nodes != NO_NODE]
    numbers = real & LARGEST
    blocks = elements.reshape(-1, stencils.DESCENDANTS * 10)
    there = [np.isin(np.arange(len(fixed)), block) for block in blocks]
    times = np.sum(there, axis=0)
    np.testing.assert_array_equal(np.bincount(numbers, minlength=len(times)), times)
    # so few macro elements are all done at once
    added = (times[numbers] > 1) | np.isin(numbers, others)
    np.testing.assert_array_equal(real >> 31, added)
    assert not (real >> 27 & 1).any()
