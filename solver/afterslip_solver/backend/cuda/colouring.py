"""Macro elements in a few launches, so that few of their sums need atomic additions.

Neighbours get different colours, and a launch has those of one colour. Of the two that
meet in a face the first one stores its sums of the nodes on it, and the other one adds
them to its own and finishes these nodes as if they were inside. Edges and vertices
have more macro elements: their nodes are cleared, added to atomically and finished by
a launch of their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from afterslip_solver.backend.cuda.macro_plan import Macros, node_of_corners
from afterslip_solver.backend.cuda.plan import check_count, entries_of
from afterslip_solver.jit.compiling import compiled
from afterslip_solver.jit.threads import over
from afterslip_solver.mesh.tables.sorting import by_number
from afterslip_solver.mesh.topology import cell_faces, face_keys
from afterslip_solver.model import Bool, Int

COLOURS = 3
# macro elements from which there are enough for a launch of each colour
MANY = 4000
# times that each is given the best colour; a hundredth of the faces stays between two
# of one colour
_SWEEPS = 3
# flag of a node that two of different colours have, and of what is added or stored
_ORDERED, _ADDED = 1 << 27, 1 << 31


@dataclass(frozen=True, eq=False, slots=True)
class Colouring:
    """Colours of macro elements, and what they do with their nodes.

    Attributes
    ----------
    colours : (n_macro,) int8. count : of colours.
    flags : (n_node,) uint32 of nodes, see nodes.cuh.
    first : (n_node,) int8, the colour that stores its sum of a node, -1 if none does.
    """

    colours: NDArray[np.int8]
    count: int
    flags: NDArray[np.uint32]
    first: NDArray[np.int8]

    @classmethod
    def of(cls, macros: Macros, fixed: Bool) -> Colouring:
        """Colour all macro elements of a mesh; fixed (n_node, 3)."""
        check_count(len(fixed))
        n = len(macros.nodes)
        count = COLOURS if n > MANY else 1
        colours = np.full(n, -1, dtype=np.int8)
        _colour(*_neighbours(node_of_corners(macros)), count, _SWEEPS, colours)
        times = np.zeros(len(fixed), dtype=np.int32)
        first = np.full(len(fixed), -1, dtype=np.int8)
        _meet(macros.nodes, colours, times, first)
        first[times != 2] = -1
        ordered = first >= 0
        flags = entries_of(np.where(ordered, 1, times), fixed)
        flags[ordered] |= _ORDERED
        return cls(colours, count, flags.astype(np.uint32), first)

    def added(self) -> NDArray[np.uint32]:
        """(n,) entries of the nodes whose sums are added atomically."""
        nodes = np.flatnonzero(self.flags & _ADDED)
        return nodes.astype(np.uint32) | self.flags[nodes]

    def entries(
        self, nodes: NDArray[np.integer], colours: NDArray[np.int8]
    ) -> NDArray[np.uint32]:
        """Entries (n, k) of nodes (n, k) of macro elements of some colours (n,)."""
        out = np.empty(nodes.shape, dtype=np.uint32)
        table = nodes, colours, self.flags, self.first, _ADDED
        over(len(nodes), partial(_entries, *table, out), few=1)
        return out


def _neighbours(corners: NDArray[np.integer]) -> tuple[Int, Int]:
    """(n + 1,) starts and (m,) macro elements that share a face, by macro element."""
    n_vertex = int(corners.max()) + 1
    faces = cell_faces(corners.astype(np.int64)).reshape(-1, 3)
    keys = face_keys(faces, n_vertex)
    order = np.argsort(keys, kind="stable")
    same = np.flatnonzero(np.diff(keys[order]) == 0)
    one, other = order[same] // 4, order[same + 1] // 4
    starts, by_macro = by_number(np.concatenate([one, other]), len(corners))
    return starts, np.concatenate([other, one])[by_macro]


@compiled()
def _colour(
    starts: Any, neighbours: Any, count: int, sweeps: int, colours: Any
) -> None:
    """Give each the colour that fewest of its neighbours have; -1 is none yet."""
    have = np.zeros(count, np.int64)
    for _ in range(sweeps):
        for m in range(len(colours)):
            have[:] = 0
            for k in range(starts[m], starts[m + 1]):
                colour = colours[neighbours[k]]
                if colour >= 0:
                    have[colour] += 1
            best = max(colours[m], 0)
            for colour in range(count):
                if have[colour] < have[best]:
                    best = colour
            colours[m] = best


@compiled()
def _meet(nodes: Any, colours: Any, times: Any, first: Any) -> None:
    """Count who has each node, and find the first colour; -1 where one comes twice."""
    for m in range(len(nodes)):
        for k in range(nodes.shape[1]):
            node, before = nodes[m, k], first[nodes[m, k]]
            times[node] += 1
            if times[node] == 1:
                first[node] = colours[m]
            elif before == colours[m]:
                first[node] = -1
            else:
                first[node] = min(before, colours[m])


@compiled()
def _entries(
    nodes: Any, colours: Any, flags: Any, first: Any, added: int, out: Any,
    start: int, stop: int,
) -> None:  # fmt: skip
    for m in range(start, stop):
        for k in range(nodes.shape[1]):
            node = nodes[m, k]
            entry = np.int64(node) | np.int64(flags[node])
            if first[node] == colours[m]:
                entry |= added
            out[m, k] = entry
