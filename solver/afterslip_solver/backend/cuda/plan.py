"""Blocks of elements for the CUDA apply: who owns what, and who adds when.

Elements are cut into compact blocks by recursive bisection of their centres. Inside
a block they are put in tasks that share no node (one warp: eight elements of four
lanes each, or fewer of more lanes); tasks that run side by side and do share nodes add
in different phases. A block's nodes are numbered so that the accesses of a warp fall
into different banks of shared memory as far as possible. After Yamaguchi et al.
(2018), who sum forces per block.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from afterslip_solver.array_cache import Arrays
from afterslip_solver.jit.compiling import compiled
from afterslip_solver.jit.threads import over
from afterslip_solver.mesh.tables.bisection import centres, compact_order
from afterslip_solver.mesh.tables.sorting import by_number
from afterslip_solver.model import Bool, Float, Int

ABSENT = 0xFFFF
NO_NODE = 0xFFFFFFFF
_LARGEST = 2**28 - 1


@dataclass(frozen=True, slots=True)
class Plan:
    """Tables of the kernels ``apply`` and ``join`` in elastic.cu, on the host.

    Attributes
    ----------
    members : (n_task, per_task) int32 elements, -1 where a task has fewer.
    tasks : (n_block + 1,) int32. slots : (n_block + 1,) int32.
    nodes : (n_slot,) uint32 with flags. local : (n_task, per_task, 12) uint16.
    phases : (n_task,) uint8.
    shared : (n_shared,) uint32 nodes of several blocks, with flags.
    starts : (n_shared + 1,) int32 into places. places : int32, slots of shared nodes.
    """

    members: NDArray[np.int32]
    tasks: NDArray[np.int32]
    slots: NDArray[np.int32]
    nodes: NDArray[np.uint32]
    local: NDArray[np.uint16]
    phases: NDArray[np.uint8]
    shared: NDArray[np.uint32]
    starts: NDArray[np.int32]
    places: NDArray[np.int32]

    def touches(self, n_node: int) -> Int:
        """(n_node,) blocks that have each node."""
        there = self.nodes[self.nodes != NO_NODE]
        return np.bincount(there & _LARGEST, minlength=n_node)

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
    also: Int | None = None,
) -> Plan:
    """Plan for a mesh with any numbering.

    Parameters
    ----------
    elements : (n_elem, 10) int32. nodes : (n_node, 3) float64, m.
    fixed : (n_node, 3) bool, components without a force.
    size : elements of a block. warps : of a thread block. per_task : elements of a
    warp, 32 over the number of lanes. also : (n_node,) times that nodes are shared with
    what is not in the plan; sums in a fixed order know nothing of these.
    """
    if len(nodes) > _LARGEST:
        message = f"{len(nodes)} nodes; the CUDA kernels number up to {_LARGEST}"
        raise ValueError(message)
    order = compact_order(centres(nodes, elements), size)
    n_block = -(-len(elements) // size)
    members = np.empty((n_block, size, per_task), dtype=np.int32)
    local = np.empty((n_block, size, per_task, 12), dtype=np.uint16)
    phases = np.empty((n_block, size), dtype=np.uint8)
    most = per_task * (-(-10 * size // per_task) + 2)
    table = np.empty((n_block, most), dtype=np.int64)
    n_task, n_slot = (np.empty(n_block, dtype=np.int64) for _ in range(2))

    def fill(start: int, stop: int) -> None:
        _fill(
            start, stop, elements, order, size, warps, per_task,
            members, local, phases, table, n_task, n_slot,
        )  # fmt: skip

    over(n_block, fill, few=1)
    used = np.arange(size) < n_task[:, None]
    numbers = table[np.arange(most) < n_slot[:, None]]
    real = numbers >= 0
    own = np.bincount(numbers[real], minlength=len(nodes))
    times = own if also is None else own + also
    flags = entries_of(times, fixed)
    entries = np.full(len(numbers), NO_NODE, dtype=np.uint32)
    entries[real] = (numbers[real] | flags[numbers[real]]).astype(np.uint32)
    shared = np.flatnonzero((times > 1) & (own > 0))
    many = np.flatnonzero(real & (times[numbers] > 1))
    return Plan(
        members=members[used],
        tasks=_starts(n_task),
        slots=_starts(n_slot),
        nodes=entries,
        local=local[used],
        phases=phases[used],
        shared=(shared | flags[shared]).astype(np.uint32),
        starts=_starts(own[shared]),
        places=many[np.argsort(numbers[many], kind="stable")].astype(np.int32),
    )


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


def _starts(counts: Int) -> NDArray[np.int32]:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)


@compiled()
def _busiest_first(le: Any, n_node: int) -> Any:
    """Order elements by how many others share their most shared vertex."""
    valence = np.bincount(le.ravel(), minlength=n_node)
    weight = np.zeros(le.shape[0], np.int64)
    for e in range(le.shape[0]):
        for a in range(4):
            weight[e] = max(weight[e], valence[le[e, a]])
    return np.argsort(-weight, kind="mergesort")


@compiled()
def _touches(touched: Any, nodes: Any) -> bool:
    found = False
    for a in range(10):
        found |= touched[nodes[a]]
    return found


@compiled()
def _pack(le: Any, n_node: int, per_task: int, task_of: Any, touched: Any) -> int:
    """First-fit: elements into tasks without a common node."""
    count = np.zeros(le.shape[0], np.int64)
    n_task = 0
    for e in _busiest_first(le, n_node):
        t = 0
        while t < n_task and (count[t] == per_task or _touches(touched[t], le[e])):
            t += 1
        n_task = max(n_task, t + 1)
        task_of[e] = t
        count[t] += 1
        for a in range(10):
            touched[t, le[e, a]] = True
    return n_task


@compiled()
def _phase(touched: Any, n_task: int, warps: int, phases: Any) -> int:
    """Phases of the tasks of each batch; returns the padded number of tasks."""
    padded = -(-n_task // warps) * warps
    for first in range(0, padded, warps):
        most = 0
        for t in range(first, first + warps):
            phases[t] = 0
            if t >= n_task:
                continue
            s = first
            while s < t:
                clash = False
                if phases[s] == phases[t]:
                    for n in range(touched.shape[1]):
                        if touched[s, n] and touched[t, n]:
                            clash = True
                            break
                if clash:
                    phases[t] += 1
                    s = first
                else:
                    s += 1
            most = max(most, phases[t])
        for t in range(first, first + warps):
            phases[t] += 16 * (most + 1)
    return padded


@compiled()
def _accesses(le: Any, n_node: int, task_of: Any) -> tuple[Any, Any]:
    """List the accesses (ten per task, one per local node) to each node."""
    start = np.zeros(n_node + 1, np.int64)
    start[1:] = np.cumsum(np.bincount(le.ravel(), minlength=n_node))
    at = start[:-1].copy()
    access = np.empty(le.size, np.int64)
    for e in range(le.shape[0]):
        for a in range(10):
            n = le[e, a]
            access[at[n]] = 10 * task_of[e] + a
            at[n] += 1
    return start, access


@compiled()
def _banks(
    le: Any, n_node: int, per_task: int, task_of: Any, n_task: int, slot: Any
) -> int:
    """Find numbers for nodes that let a warp's accesses differ modulo their number."""
    start, access = _accesses(le, n_node, task_of)
    load = np.zeros((10 * n_task, per_task), np.int64)
    cap = -(-n_node // per_task) + 1
    held = np.zeros(per_task, np.int64)
    colour = np.full(n_node, -1, np.int64)
    for sweep in range(3):
        for n in range(n_node):
            mine = access[start[n] : start[n + 1]]
            if sweep > 0:
                held[colour[n]] -= 1
                for k in mine:
                    load[k, colour[n]] -= 1
            best, least = 0, np.int64(1 << 60)
            for c in range(per_task):
                cost = held[c] if held[c] < cap else least
                for k in mine:
                    cost += 1000 * load[k, c]
                if cost < least:
                    best, least = c, cost
            colour[n] = best
            held[best] += 1
            for k in mine:
                load[k, best] += 1
    following = np.zeros(per_task, np.int64)
    for n in range(n_node):
        slot[n] = per_task * following[colour[n]] + colour[n]
        following[colour[n]] += 1
    return int(per_task * following.max())


@compiled()
def _fill(
    first: int, last: int, elements: Any, order: Any, size: int, warps: int,
    per_task: int,
    members: Any, local: Any, phases: Any, table: Any, n_task: Any, n_slot: Any,
) -> None:  # fmt: skip
    """Make the tables of the blocks first..last."""
    for b in range(first, last):
        mine = order[b * size : min((b + 1) * size, len(order))]
        m = len(mine)
        found = np.empty(10 * m, np.int64)
        for e in range(m):
            for a in range(10):
                found[10 * e + a] = elements[mine[e], a]
        nodes = np.unique(found)
        le = np.searchsorted(nodes, found).reshape(m, 10)
        task_of = np.empty(m, np.int64)
        touched = np.zeros((m, len(nodes)), np.bool_)
        tasks = _pack(le, len(nodes), per_task, task_of, touched)
        slot = np.empty(len(nodes), np.int64)
        n_slot[b] = _banks(le, len(nodes), per_task, task_of, tasks, slot)
        table[b, : n_slot[b]] = -1
        for n in range(len(nodes)):
            table[b, slot[n]] = nodes[n]
        n_task[b] = _phase(touched, tasks, warps, phases[b])
        members[b, : n_task[b]] = -1
        local[b, : n_task[b]] = ABSENT
        count = np.zeros(n_task[b], np.int64)
        for e in range(m):
            t = task_of[e]
            members[b, t, count[t]] = mine[e]
            for a in range(10):
                local[b, t, count[t], a] = slot[le[e, a]]
            count[t] += 1
