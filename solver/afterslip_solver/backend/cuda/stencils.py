"""Stencils of the quadratic nodes of a tetrahedron that was halved three times.

All 512 descendants of a tetrahedron are cells of one lattice (`mesh.lattice`), and
so the stiffness has few different rows. In coordinates of the lattice the integral of
the gradients of two nodes' shapes is a 3 x 3 matrix S that depends on no mesh. With
the gradients Gamma of the lattice's coordinates and the volume V of a descendant the
block of the stiffness is V (lam B + mu B^T + mu tr(B) I), B = Gamma^T S Gamma.
Nodes on the surface get a macro element's part, which others complete.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from afterslip_solver.mesh.lattice import lattice_of_descendants
from afterslip_solver.model import TET_EDGES, Float, Int

# halvings, descendants, and steps between quadratic nodes along an edge
TIMES = 3
DESCENDANTS = 8**TIMES
STEPS = 2 ** (TIMES + 1)
_ROUNDED = 9


@dataclass(frozen=True, eq=False, slots=True)
class StencilClass:
    """Nodes whose rows are alike.

    Attributes
    ----------
    inner : whether they lie inside the macro element, which makes rows complete.
    members : (n,) nodes, see `lattice_nodes`. offsets : (k, 3) to their neighbours,
        itself first.
    matrices : (k, 3, 3) S of each neighbour.
    """

    inner: bool
    members: Int
    offsets: Int
    matrices: Float


@cache
def lattice_nodes() -> Int:
    """(969, 3) coordinates of the quadratic nodes on the lattice."""
    found = np.unique(lattice_of_descendants(TIMES)[0].reshape(-1, 3), axis=0)
    return np.asarray(found)


def node_numbers(coordinates: Int) -> Int:
    """Find the numbers (...) of lattice nodes (..., 3)."""
    size = STEPS + 1
    table = np.full(size**3, -1, dtype=np.int64)
    weights = np.array([size * size, size, 1])
    nodes = lattice_nodes()
    table[nodes @ weights] = np.arange(len(nodes))
    found: Int = table[coordinates @ weights]
    return found


@cache
def local_nodes() -> Int:
    """(3, 512, 10) lattice node of the descendants' nodes, by first diagonal."""
    return node_numbers(lattice_of_descendants(TIMES))


def _gradient_integrals() -> Float:
    """(10, 10, 4, 4) mean of dN_a/dL_p dN_b/dL_q over an element."""
    slopes = np.zeros((4, 10, 4))
    for corner in range(4):
        at = np.eye(4)[corner]
        for a in range(4):
            slopes[corner, a, a] = 4.0 * at[a] - 1.0
        for k, (a, b) in enumerate(TET_EDGES):
            slopes[corner, 4 + k, a] = 4.0 * at[b]
            slopes[corner, 4 + k, b] = 4.0 * at[a]
    # exact for products of linear functions
    weights = (np.ones((4, 4)) + np.eye(4)) / 20.0
    return np.asarray(np.einsum("ij,iap,jbq->abpq", weights, slopes, slopes))


@cache
def classes() -> tuple[StencilClass, ...]:
    """Return all classes, those inside first, then the larger ones."""
    nodes, local = lattice_nodes(), local_nodes()[0]
    corners = nodes[local[:, :4]] / 2.0
    inverse = np.linalg.inv(corners[:, 1:] - corners[:, :1])
    slopes = np.concatenate([-inverse.sum(2, keepdims=True), inverse], axis=2)
    parts = np.einsum(
        "abpq,emp,enq->eabmn", _gradient_integrals(), slopes, slopes, optimize=True
    )
    pairs = local[:, :, None] * len(nodes) + local[:, None, :]
    keys, place = np.unique(pairs.ravel(), return_inverse=True)
    matrices = np.zeros((len(keys), 3, 3))
    np.add.at(matrices, place, parts.reshape(-1, 3, 3))
    row, column = np.divmod(keys, len(nodes))
    offsets = nodes[column] - nodes[row]
    alike: dict[tuple[bool, bytes], list[int]] = {}
    ends = np.searchsorted(row, np.arange(len(nodes) + 1))
    inner = (nodes.min(axis=1) > 0) & (nodes.sum(axis=1) < STEPS)
    for k in range(len(nodes)):
        own = slice(ends[k], ends[k + 1])
        rounded = np.round(matrices[own], _ROUNDED) + 0.0
        key = offsets[own].tobytes() + rounded.tobytes()
        alike.setdefault((bool(inner[k]), key), []).append(k)
    out = []
    for (inside, _), members in alike.items():
        own = slice(ends[members[0]], ends[members[0] + 1])
        order = _in_order(nodes[members[0]], offsets[own])
        arrays = offsets[own][order], matrices[own][order]
        out.append(StencilClass(inside, np.array(members), *arrays))
    return tuple(sorted(out, key=lambda c: (not c.inner, -len(c.members))))


def _in_order(node: Int, offsets: Int) -> Int:
    """Itself first, then neighbours of one parity of coordinates after another."""
    parity = (node + offsets) & 1
    x, y, z = offsets.T
    return np.lexsort((x, y, z, *parity.T, offsets.any(axis=1)))
