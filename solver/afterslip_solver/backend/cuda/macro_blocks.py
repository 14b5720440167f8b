"""Blocks of elements for the CUDA apply that are macro elements.

The elements of a macro element are numbered alike in all of them, whatever its shape
and materials, so that three patterns, one for each diagonal, say which of them share
a warp. Its nodes on the surface alone are shared with other blocks; who finishes them
says a `Colouring`.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from afterslip_solver.backend.cuda.colouring import Colouring
from afterslip_solver.backend.cuda.macro_plan import Macros
from afterslip_solver.backend.cuda.packing import Filled, fill_blocks
from afterslip_solver.backend.cuda.plan import NO_NODE, Plan, starts_of
from afterslip_solver.backend.cuda.stencils import DESCENDANTS, local_nodes
from afterslip_solver.backend.cuda.variants import Shape
from afterslip_solver.model import Int


@cache
def _patterns(warps: int, per_task: int, together: int) -> Filled:
    """Blocks of the three kinds of macro elements, in nodes of the lattice."""
    # as those of a mesh: what takes them is compiled once
    elements = local_nodes().reshape(-1, 10).astype(np.int32)
    order = np.arange(len(elements))
    return fill_blocks(elements, order, DESCENDANTS, warps, per_task, together)


def plan_blocks(macros: Macros, which: Int, colouring: Colouring, shape: Shape) -> Plan:
    """Plan of macro elements whose elements are numbered behind each other.

    Parameters
    ----------
    which : (n_block,) macro elements, all of which were found.
    colouring : of all macro elements. shape : of the kernel's blocks.
    """
    per_task, kinds = shape.per_task, macros.diagonals[which]
    made = _patterns(shape.threads // 32, per_task, shape.together)
    tasks, slots = starts_of(made.n_task[kinds]), starts_of(made.n_slot[kinds])
    rows, places = starts_of(made.n_task), starts_of(made.n_slot)
    members = np.empty((tasks[-1], per_task), dtype=np.int32)
    entries = np.empty(slots[-1], dtype=np.uint32)
    for kind in range(len(made.n_task)):
        mine = np.flatnonzero(kinds == kind)
        own = made.members[rows[kind] : rows[kind + 1]]
        # from the place of the pattern among all kinds to that of each block
        shift = DESCENDANTS * (mine - kind)[:, None, None]
        at = tasks[mine][:, None] + np.arange(len(own))
        members[at] = np.where(own >= 0, own + shift, -1)
        local = made.nodes[places[kind] : places[kind + 1]]
        at = slots[mine][:, None] + np.arange(len(local))
        blocks = which[mine]
        numbers, colours = macros.nodes[blocks][:, local], colouring.colours[blocks]
        found = colouring.entries(numbers, colours)
        entries[at] = np.where(local >= 0, found, NO_NODE)
    none = np.zeros(0, dtype=np.int32)
    return Plan(
        members=members,
        tasks=tasks,
        slots=slots,
        nodes=entries,
        patterns=rows[kinds],
        local=made.local,
        shared=none.astype(np.uint32),
        starts=none,
        places=none,
    )
