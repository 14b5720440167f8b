"""Blocks of elements for the CUDA apply: who owns what, and who adds when.

Elements are cut into compact blocks by recursive bisection of their centres. Inside
a block they are put in tasks that share no node (one warp: eight elements of four
lanes each, or fewer of more lanes); tasks add in turn. A block's nodes are numbered so
that the accesses of a warp fall into different banks of shared memory as far as
possible. After Yamaguchi et al. (2018), who sum forces per block.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from afterslip_solver.array_cache import Arrays
from afterslip_solver.backend.cuda.packing import fill_blocks
from afterslip_solver.jit.compiling import compiled
from afterslip_solver.mesh.tables.bisection import centres, compact_order
from afterslip_solver.mesh.tables.sorting import by_number
from afterslip_solver.model import Bool, Float, Int

NO_NODE = 0xFFFFFFFF
# bits of an entry that number a node; the others say what becomes of it
LARGEST = 2**27 - 1


@dataclass(frozen=True, slots=True)
class Plan:
    """Tables of the kernels ``apply`` and ``join`` in elastic.cu, on the host.

    Attributes
    ----------
    members : (n_task, per_task) int32 elements, -1 where a task has fewer.
    tasks : (n_block + 1,) int32. slots : (n_block + 1,) int32.
    nodes : (n_slot,) uint32 with flags.
    patterns : (n_block,) int32, the first row of a block in ``local``.
    local : (n_row, per_task, 12) uint16.
    shared : (n_shared,) uint32 nodes of several blocks, with flags.
    starts : (n_shared + 1,) int32 into places. places : int32, slots of shared nodes.
    """

    members: NDArray[np.int32]
    tasks: NDArray[np.int32]
    slots: NDArray[np.int32]
    nodes: NDArray[np.uint32]
    patterns: NDArray[np.int32]
    local: NDArray[np.uint16]
    shared: NDArray[np.uint32]
    starts: NDArray[np.int32]
    places: NDArray[np.int32]

    def as_arrays(self) -> Arrays:
        """Return the tables by their names."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


def make_plan(
    elements: NDArray[np.int32],
    nodes: Float,
    fixed: Bool,
    size: int,
    warps: int,
    per_task: int = 8,
) -> Plan:
    """Plan for a mesh with any numbering.

    Parameters
    ----------
    elements : (n_elem, 10) int32. nodes : (n_node, 3) float64, m.
    fixed : (n_node, 3) bool, components without a force.
    size : elements of a block. warps : of a thread block. per_task : elements of a
    warp, 32 over the number of lanes.
    """
    check_count(len(nodes))
    order = compact_order(centres(nodes, elements), size)
    made = fill_blocks(elements, order, size, warps, per_task)
    numbers = made.nodes
    real = numbers >= 0
    times = np.bincount(numbers[real], minlength=len(nodes))
    entries, flags = with_flags(numbers, times, fixed)
    shared = np.flatnonzero(times > 1)
    many = np.flatnonzero(real & (times[numbers] > 1))
    tasks = starts_of(made.n_task)
    return Plan(
        members=made.members,
        tasks=tasks,
        slots=starts_of(made.n_slot),
        nodes=entries,
        patterns=tasks[:-1],
        local=made.local,
        shared=(shared | flags[shared]).astype(np.uint32),
        starts=starts_of(times[shared]),
        places=many[np.argsort(numbers[many], kind="stable")].astype(np.int32),
    )


def check_count(n_node: int) -> None:
    """Refuse more nodes than an entry can number."""
    if n_node > LARGEST:
        message = f"{n_node} nodes; the CUDA kernels number up to {LARGEST}"
        raise ValueError(message)


def with_flags(numbers: Int, times: Int, fixed: Bool) -> tuple[NDArray[np.uint32], Int]:
    """Entries of nodes, -1 for none, in the kernels' tables; and `entries_of`."""
    flags = entries_of(times, fixed)
    real = numbers >= 0
    entries = np.full(numbers.shape, NO_NODE, dtype=np.uint32)
    entries[real] = (numbers[real] | flags[numbers[real]]).astype(np.uint32)
    return entries, flags


def entries_of(times: Int, fixed: Bool) -> Int:
    """(n_node,) flags of nodes in the kernels' tables, see nodes.cuh."""
    held: Int = fixed @ (1 << np.arange(28, 31))
    return held | ((times > 1).astype(np.int64) << 31)


def block_numbering(mesh_elements: Int, centres: Float, size: int) -> tuple[Int, Int]:
    """Orders of nodes and elements that keep a block's data together in memory.

    Returns
    -------
    (n_node,) nodes and (n_elem,) elements, in their new order.
    """
    elements = compact_order(centres, size)
    n_node = int(mesh_elements.max()) + 1
    # nodes of the owner alone come first among its nodes
    place = np.empty(n_node, dtype=np.int64)
    _owner(mesh_elements, elements, size, place)
    return by_number(place, 2 * (-(-len(elements) // size)))[1], elements


@compiled()
def _owner(elements: Any, order: Any, size: int, place: Any) -> None:
    """Twice the first block of each node, and one more where another has it too."""
    place[:] = -1
    for k in range(len(order)):
        block = k // size
        for a in range(elements.shape[1]):
            node = elements[order[k], a]
            if place[node] < 0:
                place[node] = 2 * block
            elif place[node] // 2 != block:
                place[node] |= 1


def starts_of(counts: Int) -> NDArray[np.int32]:
    """(n + 1,) where parts of these sizes begin, and their end."""
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
