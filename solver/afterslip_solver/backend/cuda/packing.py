"""Elements of a block in tasks that share no node, and places of its nodes.

Compiled functions do without NumPy's sorting, which takes seconds to compile.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from afterslip_solver.jit.compiling import compiled
from afterslip_solver.jit.threads import over
from afterslip_solver.mesh.tables.sorting import by_number
from afterslip_solver.model import Int

# place of a node of an element that is not there
ABSENT = 0xFFFF
# times that tasks of several warps are packed again
_ROUNDS = 100


@dataclass(frozen=True, slots=True)
class Filled:
    """Blocks behind each other: members and local as in `Plan`.

    Attributes
    ----------
    nodes : (n_slot,) int64, -1 where a slot has none.
    n_task, n_slot : (n_block,).
    """

    members: NDArray[np.int32]
    local: NDArray[np.uint16]
    nodes: Int
    n_task: Int
    n_slot: Int


def fill_blocks(
    elements: NDArray[np.integer],
    order: Int,
    size: int,
    warps: int,
    per_task: int,
    together: int = 1,
) -> Filled:
    """Cut elements in this order into blocks of ``size``, and arrange their tasks.

    Parameters
    ----------
    together : tasks behind each other that shall share no node, to add at once.
    """
    n_block = -(-len(elements) // size)
    members = np.empty((n_block, size, per_task), dtype=np.int32)
    local = np.empty((n_block, size, per_task, 12), dtype=np.uint16)
    most = per_task * (-(-10 * size // per_task) + 2)
    table = np.empty((n_block, most), dtype=np.int64)
    n_task, n_slot = (np.empty(n_block, dtype=np.int64) for _ in range(2))

    def fill(start: int, stop: int) -> None:
        own = elements[order[start * size : stop * size]]
        behind = np.iinfo(elements.dtype).max
        met = np.full((stop - start, size * 10), behind, dtype=elements.dtype)
        met.ravel()[: own.size] = own.ravel()
        met.sort(axis=1)
        _fill(
            start, stop, met, elements, order, size, warps, per_task, together,
            members, local, table, n_task, n_slot,
        )  # fmt: skip

    over(n_block, fill, few=1)
    used = np.arange(size) < n_task[:, None]
    nodes = table[np.arange(most) < n_slot[:, None]]
    return Filled(members[used], local[used], nodes, n_task, n_slot)


@compiled()
def _busiest_first(le: Any, n_node: int) -> Any:
    """Order elements by how many others share their most shared vertex."""
    n_elem = le.shape[0]
    valence = np.zeros(n_node, np.int64)
    for e in range(n_elem):
        for a in range(10):
            valence[le[e, a]] += 1
    rank = np.zeros(n_elem, np.int64)
    for e in range(n_elem):
        for a in range(4):
            rank[e] = max(rank[e], valence[le[e, a]])
        rank[e] = n_elem - rank[e]
    return by_number(rank, n_elem + 1)[1]


@compiled()
def _touches(touched: Any, nodes: Any) -> bool:
    found = False
    for a in range(10):
        found |= touched[nodes[a]]
    return found


@compiled()
def _pack(le: Any, order: Any, per_task: int, task_of: Any, touched: Any) -> int:
    """First-fit: elements in this order into tasks without a common node."""
    touched[:] = False
    count = np.zeros(le.shape[0], np.int64)
    n_task = 0
    for e in order:
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
def _pack_again(le: Any, per_task: int, task_of: Any, touched: Any, n_task: int) -> int:
    """Empty some tasks by first-fit in other orders.

    With one task after the other there are never more (Culberson & Luo 1996). Orders
    that mix tasks lead on from where that gets stuck, if at the price of a task.
    """
    for k in range(_ROUNDS):
        if n_task <= -(-le.shape[0] // per_task):
            break
        # the last task first; in turn with elements of the fullest tasks first
        rank = np.zeros(n_task, np.int64)
        for t in range(n_task):
            rank[t] = n_task - 1 - t if k % 2 == 0 else per_task
        if k % 2 == 1:
            for e in range(le.shape[0]):
                rank[task_of[e]] -= 1
        of_element = np.empty(le.shape[0], np.int64)
        for e in range(le.shape[0]):
            of_element[e] = rank[task_of[e]]
        order = by_number(of_element, max(n_task, per_task + 1))[1]
        n_task = _pack(le, order, per_task, task_of, touched)
    return n_task


@compiled()
def _split(per_task: int, together: int, task_of: Any) -> int:
    """Divide tasks of ``together`` times as many elements; returns their number."""
    count = np.zeros(len(task_of), np.int64)
    n_task = 0
    for e in range(len(task_of)):
        whole = task_of[e]
        task_of[e] = together * whole + count[whole] // per_task
        count[whole] += 1
        n_task = max(n_task, task_of[e] + 1)
    return n_task


@compiled()
def _accesses(le: Any, n_node: int, task_of: Any) -> tuple[Any, Any]:
    """List the accesses (ten per task, one per local node) to each node."""
    start, access = by_number(le.ravel(), n_node)
    for k in range(len(access)):
        e, a = divmod(access[k], 10)
        access[k] = 10 * task_of[e] + a
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
    colour = np.zeros(n_node, np.int64)
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
    most = 0
    for n in range(n_node):
        slot[n] = per_task * following[colour[n]] + colour[n]
        following[colour[n]] += 1
        most = max(most, following[colour[n]])
    return per_task * most


@compiled()
def _numbered(met: Any, elements: Any, mine: Any) -> tuple[Any, Any]:
    """Nodes of some elements in rising order, and (n, 10) their places among them.

    Parameters
    ----------
    met : the nodes of each of the elements behind each other, sorted; others follow.
    """
    found = np.empty(10 * len(mine), np.int64)
    count = 0
    for k in range(len(found)):
        if k == 0 or met[k] != met[k - 1]:
            found[count] = met[k]
            count += 1
    le = np.empty((len(mine), 10), np.int64)
    for e in range(len(mine)):
        for a in range(10):
            low, high = 0, count
            while high - low > 1:
                middle = (low + high) // 2
                if found[middle] <= elements[mine[e], a]:
                    low = middle
                else:
                    high = middle
            le[e, a] = low
    return found[:count], le


@compiled()
def _fill(
    first: int, last: int, met: Any, elements: Any, order: Any, size: int, warps: int,
    per_task: int, together: int,
    members: Any, local: Any, table: Any, n_task: Any, n_slot: Any,
) -> None:  # fmt: skip
    """Make the tables of the blocks first..last.

    Parameters
    ----------
    met : (last - first, 10 size) nodes of each block's elements, sorted.
    """
    for b in range(first, last):
        mine = order[b * size : min((b + 1) * size, len(order))]
        m = len(mine)
        nodes, le = _numbered(met[b - first], elements, mine)
        task_of = np.empty(m, np.int64)
        touched = np.zeros((m, len(nodes)), np.bool_)
        first_fit = _busiest_first(le, len(nodes))
        tasks = _pack(le, first_fit, per_task * together, task_of, touched)
        if together > 1:
            most = per_task * together
            tasks = _pack_again(le, most, task_of, touched, tasks)
            tasks = _split(per_task, together, task_of)
        slot = np.empty(len(nodes), np.int64)
        n_slot[b] = _banks(le, len(nodes), per_task, task_of, tasks, slot)
        table[b, : n_slot[b]] = -1
        for n in range(len(nodes)):
            table[b, slot[n]] = nodes[n]
        n_task[b] = -(-tasks // warps) * warps
        members[b, : n_task[b]] = -1
        local[b, : n_task[b]] = ABSENT
        count = np.zeros(n_task[b], np.int64)
        for e in range(m):
            t = task_of[e]
            members[b, t, count[t]] = mine[e]
            for a in range(10):
                local[b, t, count[t], a] = slot[le[e, a]]
            count[t] += 1
