"""Who computes which row of a macro element in macro.cu, and where its nodes lie.

A thread computes one or two rows of a class. Rows inside are centrally symmetric, so
a block serves a neighbour and the one opposite. Nodes lie in shared memory so that
threads side by side read different banks, eight that read 16 bytes each and sixteen
that read 8: the bank is linear in the coordinates of a lattice, so the same nodes suit
all neighbours of a class.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

from afterslip_solver.backend.cuda.stencils import (
    StencilClass,
    classes,
    lattice_nodes,
    node_numbers,
)
from afterslip_solver.model import Int

# a thread of a warp without a row
NOTHING = 0xFFFF
# kinds of a task: rows of any class, or one or two rows of a symmetric one
ANY, SYMMETRIC, TWICE = 0, 1, 2
# banks of 16 bytes, and of 8; coordinates' weights in the latter, the best of those
# whose accesses were counted
_BANKS, _HALVES = 8, 16
_WEIGHTS = (2, 3, 5)
_WARP = 32
# threads that use neighbouring rows of classes this small share a warp
_SMALL = 8
# bytes of a place: four lanes in FP32, or two in FP64
_PLACE = 16


@dataclass(frozen=True, eq=False, slots=True)
class Tasks:
    """Tables of macro.cu that suit every macro element.

    Attributes
    ----------
    places : (969,) uint16 place in shared memory by rank; ranks count the nodes inside
        first, in the order of their rows. zero : a place of zeros. n_place : of all.
    nodes : (969,) lattice node by rank. n_inner : number inside.
    matrices : (9, n_block) float64 S of the blocks that are made.
    tasks : (n_task, 4) int32: first entry in ``reads``, steps, kind, entry in ``rows``.
    first : (warps + 1,) int32 tasks of a warp.
    reads : (n, 4) uint16 bytes from the start of a plane, four for a thread and step.
    rows : (n, 32) uint32, rank and first block << 16 of a thread's row.
    """

    places: NDArray[np.uint16]
    zero: int
    n_place: int
    nodes: Int
    n_inner: int
    matrices: NDArray[np.float64]
    tasks: NDArray[np.int32]
    first: NDArray[np.int32]
    reads: NDArray[np.uint16]
    rows: NDArray[np.uint32]


@dataclass(slots=True)
class _Task:
    """Rows of one warp: ``nodes`` (m, threads), what they read, their first blocks."""

    kind: int
    nodes: Int
    neighbours: Int
    blocks: Int
    cost: float


@cache
def make_tasks(warps: int) -> Tasks:
    """Divide the rows of a macro element among the warps of a thread block."""
    builder = _Builder()
    for one in classes():
        if one.inner:
            builder.symmetric(one)
        elif len(one.members) > _SMALL:
            builder.any([one])
    small = [c for c in classes() if not c.inner and len(c.members) <= _SMALL]
    small.sort(key=lambda c: (len(c.members) < _SMALL, -len(c.offsets)))
    for k in range(0, len(small), _WARP // _SMALL):
        builder.any(small[k : k + _WARP // _SMALL])
    return builder.tables(warps)


def _bank_of_nodes() -> Int:
    """(969,) banks of 8 bytes, chosen so that they hold about equally many."""
    nodes = lattice_nodes()
    kinds = (nodes & 1) @ np.array([1, 2, 4])
    banks = (nodes >> 1) @ np.array(_WEIGHTS) % _HALVES
    held = np.zeros(_HALVES, dtype=np.int64)
    out = np.empty(len(nodes), dtype=np.int64)
    for kind in range(8):
        mine = kinds == kind
        counts = np.bincount(banks[mine], minlength=_HALVES)
        most = [(held + np.roll(counts, k)).max() for k in range(_HALVES)]
        shift = int(np.argmin(most))
        held += np.roll(counts, shift)
        out[mine] = (banks[mine] + shift) % _HALVES
    return out


class _Builder:
    def __init__(self) -> None:
        self.banks = _bank_of_nodes()
        self.places = np.empty(len(self.banks), dtype=np.int64)
        for bank in range(_HALVES):
            mine = np.flatnonzero(self.banks == bank)
            self.places[mine] = _HALVES * np.arange(len(mine)) + bank
        self.zero = int(self.places.max()) + 1
        self.matrices: list[NDArray[np.float64]] = []
        self.n_block = 0
        self.made: list[_Task] = []

    def _blocks(self, matrices: NDArray[np.float64], steps: int) -> int:
        first, more = self.n_block, steps - len(matrices)
        self.matrices += [matrices, np.zeros((more, 3, 3))]
        self.n_block += steps
        return first

    def symmetric(self, one: StencilClass) -> None:
        """Add rows whose block is the same for opposite neighbours."""
        offsets = [tuple(offset) for offset in one.offsets.tolist()]
        opposite = [offsets.index((-x, -y, -z)) for x, y, z in offsets]
        pairs = [(s, q) for s, q in enumerate(opposite) if s <= q]
        each = 1 if len(offsets) > _WARP else 2
        steps = -(-len(pairs) * each // 2) * 2 // each
        # the node itself comes twice
        halved = np.array([0.5 if s == q else 1.0 for s, q in pairs])
        own = one.matrices[[s for s, _ in pairs]] * halved[:, None, None]
        first = self._blocks(own, steps)
        reads = self._neighbours(one.members, one.offsets)
        reads = np.column_stack([reads, np.full(len(reads), self.zero)])
        ends = np.full((steps, 2), len(offsets))
        ends[: len(pairs)] = pairs
        reads = reads[:, ends]
        count = len(one.members)
        parts = -(-count // (_WARP * each))
        threads = -(-count // (parts * each))
        order = self._apart(one.members, threads, parts * each)
        for k in range(parts):
            own = order[k * each * threads : (k + 1) * each * threads]
            nodes = np.full(each * threads, -1)
            nodes[: len(own)] = one.members[own]
            # places without a row compute the first ones again
            own = np.resize(own, each * threads).reshape(each, threads)
            kind = SYMMETRIC if each == 1 else TWICE
            blocks = np.full(own.shape, first)
            cost = steps * (12 * each + 0.5 * (24 * each + 5))
            self.made.append(
                _Task(kind, nodes.reshape(own.shape), reads[own], blocks, cost)
            )

    def any(self, together: list[StencilClass]) -> None:
        """Add rows of any classes that share a warp."""
        steps = -(-max(len(one.offsets) for one in together) // 4) * 4
        nodes, reads, blocks = list[Int](), list[Int](), list[Int]()
        for one in together:
            first = self._blocks(one.matrices, steps)
            order = self._apart(one.members, len(one.members), 1)
            mine = one.members[order]
            own = self._neighbours(mine, one.offsets)
            spare = np.repeat(own[:, :1], steps - own.shape[1], axis=1)
            nodes.append(mine)
            reads.append(np.concatenate([own, spare], axis=1))
            blocks.append(np.full(len(mine), first))
        neighbours = np.concatenate(reads)[None, :, :, None]
        rows = np.concatenate(nodes)[None], neighbours, np.concatenate(blocks)[None]
        self.made.append(_Task(ANY, *rows, steps * (9 + 0.35 * 16)))

    def _neighbours(self, nodes: Int, offsets: Int) -> Int:
        """(n, k) places of neighbours."""
        found = lattice_nodes()[nodes][:, None] + offsets
        return np.asarray(self.places[node_numbers(found)])

    def _apart(self, members: Int, threads: int, slices: int) -> Int:
        """Order members so that eight in a row of a slice lie in different banks.

        Two eights have different banks of half the size, where there are such nodes.
        """
        banks = self.banks[members]
        left = [np.flatnonzero(banks == half).tolist() for half in range(_HALVES)]

        def rest(bank: int) -> int:
            return len(left[bank]) + len(left[bank + _BANKS])

        out = list[int]()
        for _ in range(slices):
            begin, stop = len(out), min(len(out) + threads, len(members))
            used = set[int]()
            while len(out) < stop:
                if (len(out) - begin) % _HALVES == 0:
                    used.clear()
                fullest = sorted(range(_BANKS), key=rest, reverse=True)
                for bank in fullest[: stop - len(out)]:
                    one = bank if rest(bank) else max(range(_BANKS), key=rest)
                    halves = [half for half in (one, one + _BANKS) if left[half]]
                    half = max(halves, key=lambda h: (h not in used, len(left[h])))
                    used.add(half)
                    out.append(left[half].pop())
        return np.array(out)

    def _ranked(self, order: list[_Task]) -> tuple[Int, int]:
        """Nodes in the order of their rows, those inside first; their number."""
        nodes = np.concatenate([task.nodes.ravel() for task in order])
        nodes = nodes[nodes >= 0]
        inside = np.zeros(len(nodes), dtype=np.bool_)
        for one in classes():
            inside[one.members] = one.inner
        inner, outer = nodes[inside[nodes]], nodes[~inside[nodes]]
        return np.concatenate([inner, outer]), len(inner)

    def tables(self, warps: int) -> Tasks:
        """Give the longest tasks to the least busy warps."""
        loads = [(0.0, warp, list[_Task]()) for warp in range(warps)]
        for task in sorted(self.made, key=lambda task: -task.cost):
            load, warp, own = heappop(loads)
            heappush(loads, (load + task.cost, warp, [*own, task]))
        loads.sort(key=lambda item: item[1])
        order = [task for _, _, own in loads for task in own]
        nodes, n_inner = self._ranked(order)
        # a place without a row takes the last
        rank = np.full(len(nodes) + 1, NOTHING, dtype=np.int64)
        rank[nodes] = np.arange(len(nodes))
        table, reads, rows = list[Int](), list[Int](), list[Int]()
        start = row = 0
        for task in order:
            table.append(np.array([start, task.neighbours.shape[2], task.kind, row]))
            reads.append(_reads(task))
            out = np.full((len(task.nodes), _WARP), NOTHING, dtype=np.int64)
            out[:, : task.nodes.shape[1]] = rank[task.nodes] | task.blocks << 16
            rows.append(out)
            start, row = start + len(reads[-1]), row + len(out)
        return Tasks(
            places=self.places[nodes].astype(np.uint16),
            zero=self.zero,
            n_place=self.zero + 1,
            nodes=nodes,
            n_inner=n_inner,
            matrices=np.concatenate(self.matrices).reshape(-1, 9).T.copy(),
            tasks=np.array(table, dtype=np.int32),
            first=np.cumsum([0, *(len(own) for _, _, own in loads)]).astype(np.int32),
            reads=np.concatenate(reads).astype(np.uint16),
            rows=np.concatenate(rows).astype(np.uint32),
        )


def _reads(task: _Task) -> Int:
    """(n, 4) places, 32 threads after each other; idle threads read nothing."""
    rows, threads, steps, both = task.neighbours.shape
    together = 4 // (rows * both)
    # step by step, row by row, then opposite neighbours
    by_thread = task.neighbours.transpose(1, 2, 0, 3).reshape(threads, -1, 4)
    out = np.zeros((steps // together, _WARP, 4), dtype=np.int64)
    out[:, :threads] = by_thread.transpose(1, 0, 2)
    return out.reshape(-1, 4) * _PLACE
