"""Parts of a mesh in which increments are predicted on their own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import pymetis
from numpy.typing import NDArray

from afterslip_solver.model import Bool, Int
from afterslip_solver.operators import Space

# unknowns of a part: Murakami et al. (2023), section 4.1
UNKNOWNS = 25745
# groups of one model share its parts
_made: WeakKeyDictionary[Space, dict[int, Subdomains]] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class Subdomains:
    """Non-overlapping parts of the nodes.

    Attributes
    ----------
    part : (n_node,) int32, each node's part.
    members : (longest, n_part) int64, a part's nodes in a column.
    inside : (longest, n_part) bool, False below the end of a column.
    """

    part: NDArray[np.int32]
    members: Int
    inside: Bool

    @property
    def count(self) -> int:
        """Number of parts."""
        return int(self.members.shape[1])


def subdomains(space: Space, unknowns: int = UNKNOWNS) -> Subdomains:
    """Cut a mesh by METIS into parts of about so many unknowns, once for a space.

    Vertices are distributed, and every midpoint follows one end of its edge; a vertex
    weighs as much as the nodes that it takes along.

    Parameters
    ----------
    unknowns : displacement components of a part.
    """
    known = _made.setdefault(space, {})
    if unknowns not in known:
        known[unknowns] = _divided(space, unknowns)
    return known[unknowns]


def _divided(space: Space, unknowns: int) -> Subdomains:
    count = max(1, round(3 * space.n_node / unknowns))
    rows = space.embedding
    ends = np.stack([rows.indices[rows.indptr[:-1]], rows.indices[rows.indptr[1:] - 1]])
    owner = ends[np.arange(space.n_node) % 2, np.arange(space.n_node)]
    part = _cut(space, np.bincount(owner, minlength=len(space.vertices)), count)[owner]
    order = np.argsort(part, kind="stable")
    size = np.bincount(part, minlength=count)
    first = np.cumsum(size) - size
    place = np.arange(size.max())[:, None]
    inside = place < size[None, :]
    members = order[np.where(inside, first[None, :] + place, 0)]
    return Subdomains(part.astype(np.int32), members, inside)


def _cut(space: Space, weight: Int, count: int) -> Int:
    """Part of each vertex."""
    n = len(space.vertices)
    if count == 1:
        return np.zeros(n, dtype=np.int64)
    indptr, indices = space.vertex_pattern
    rows = np.repeat(np.arange(n), np.diff(indptr))
    other = rows != indices
    start = np.concatenate([[0], np.cumsum(np.bincount(rows[other], minlength=n))])
    found = pymetis.part_graph(
        count,
        pymetis.CSRAdjacency(start.astype(np.int32), indices[other].astype(np.int32)),
        vweights=weight.astype(np.int32),
        options=pymetis.Options(seed=0),
    )
    # METIS may leave parts empty where there are hardly more vertices than parts
    _, part = np.unique(np.asarray(found.vertex_part), return_inverse=True)
    return np.asarray(part, dtype=np.int64)


def random_rows(m: int, longest: int) -> Any:
    """(m, 3, longest) normally distributed entries of variance 1/m, always the same."""
    shape = (m, 3, longest)
    return np.random.default_rng(0).standard_normal(shape) / np.sqrt(m)
