"""Who finishes the nodes of macro elements that are done in several launches."""

from __future__ import annotations

import numpy as np
import pytest

from afterslip_solver.backend.cuda import colouring, macro_plan, stencils
from afterslip_solver.backend.cuda.plan import LARGEST
from afterslip_solver.mesh.numbering import second_order
from afterslip_solver.mesh.refine import refine_uniformly
from afterslip_solver.testing.box import box_mesh

ORDERED, ADDED = 1 << 27, 1 << 31


@pytest.fixture(scope="module")
def macros():
    """Ninety-six macro elements of a box."""
    box = box_mesh((2, 4, 2), (1.0, 1.5, 1.0))
    mesh = second_order(box.nodes[: box.n_vertex], box.cells)
    for _ in range(stencils.TIMES):
        mesh, _, _ = refine_uniformly(mesh, {}, {})
    found = macro_plan.find_macros(mesh.elements)
    assert found is not None
    return found


@pytest.fixture(scope="module")
def fixed(macros):
    rng = np.random.default_rng(0)
    return rng.random((int(macros.nodes.max()) + 1, 3)) < 0.1


@pytest.fixture
def coloured(macros, fixed, monkeypatch):
    monkeypatch.setattr(colouring, "MANY", 0)
    return colouring.Colouring.of(macros, fixed)


def test_a_node_is_stored_once_and_finished_later_or_added_by_all(macros, coloured):
    entries = coloured.entries(macros.nodes, coloured.colours)
    np.testing.assert_array_equal(entries & LARGEST, macros.nodes)
    order = np.argsort(macros.nodes.ravel(), kind="stable")
    starts = np.flatnonzero(np.diff(macros.nodes.ravel()[order], prepend=-1))
    colours = np.repeat(coloured.colours, macros.nodes.shape[1])[order]
    flags = entries.ravel()[order] & (ORDERED | ADDED)
    added = []
    for group in np.split(np.arange(len(order)), starts[1:]):
        mine, when = flags[group], colours[group]
        if len(group) == 1:
            assert mine[0] == 0
        elif len(group) == 2 and when[0] != when[1]:
            first, last = np.argsort(when)
            assert mine[first] == ORDERED | ADDED
            assert mine[last] == ORDERED
        else:
            assert (mine == ADDED).all()
            added.append(macros.nodes.ravel()[order[group[0]]])
    np.testing.assert_array_equal(coloured.added() & LARGEST, added)


def test_held_components_are_marked_in_every_entry(macros, fixed, coloured):
    entries = coloured.entries(macros.nodes, coloured.colours)
    held = (entries[..., None] >> np.arange(28, 31)) & 1
    np.testing.assert_array_equal(held.astype(bool), fixed[macros.nodes])
    nodes = coloured.added() & LARGEST
    held = (coloured.added()[:, None] >> np.arange(28, 31)) & 1
    np.testing.assert_array_equal(held.astype(bool), fixed[nodes])


def test_few_neighbours_have_the_same_colour(macros, coloured):
    corners = np.sort(macro_plan.node_of_corners(macros), axis=1)
    faces = {}
    for macro, own in enumerate(corners.tolist()):
        for k in range(4):
            faces.setdefault((*own[:k], *own[k + 1 :]), []).append(macro)
    pairs = np.array([pair for pair in faces.values() if len(pair) == 2])
    assert len(pairs) > len(corners)
    same = coloured.colours[pairs[:, 0]] == coloured.colours[pairs[:, 1]]
    assert same.mean() < 0.03
    assert (np.bincount(coloured.colours) > len(corners) // 6).all()


def test_few_macro_elements_are_done_in_one_launch(macros, fixed):
    found = colouring.Colouring.of(macros, fixed)
    assert found.count == 1
    assert not found.colours.any()
    assert not (found.flags & ORDERED).any()


def test_nodes_that_entries_cannot_number_are_refused(macros):
    many = np.broadcast_to(np.zeros(3, dtype=bool), (LARGEST + 1, 3))
    with pytest.raises(ValueError, match="134217728 nodes; the CUDA kernels number"):
        colouring.Colouring.of(macros, many)
