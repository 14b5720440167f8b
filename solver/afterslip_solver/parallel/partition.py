"""A model cut into parts, one per device.

Elements belong to one part each; a part has all nodes of its elements, so nodes on
the cuts belong to several. Of those the part of lowest rank is the owner, which
counts them in inner products.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np
import pymetis
from numpy.typing import NDArray
from scipy.sparse import csr_array

from afterslip_common.errors import InputError
from afterslip_solver.backend.cuda.stencils import DESCENDANTS, TIMES
from afterslip_solver.mesh.lattice import CHILDREN, corners_of_children
from afterslip_solver.mesh.tables.bisection import centres, compact_order
from afterslip_solver.model import (
    Bool,
    Float,
    Int,
    Materials,
    Model,
    Restoring,
    SplitNodes,
    Surface,
    TetMesh,
)

# METIS sees the graph of compact clusters of elements, at most this many
_CLUSTERS = 1 << 15
# macro elements a part from which shares of the work are equal to about one per cent
_ENOUGH = 100
# partitions that are compared where some elements are more work than others
_TRIES = 8


class PartitionError(InputError, ValueError):
    """The mesh cannot be cut into so many parts; the message says why."""


@dataclass(frozen=True, eq=False, slots=True)
class Part:
    """One device's share of a model.

    Attributes
    ----------
    rank : of the part.
    model : elements of the part in the part's own numbering; faults are whole, their
        split nodes those of the part's elements, and the surface is left out.
    nodes : (n_node,) the whole mesh's number of each of the part's nodes, ascending.
    sharing : (n_node,) int8, 0 where no other part has the node, 1 where this part
        owns a shared one, 2 where another does.
    shared : by peer, the part's nodes that it has too, in the whole mesh's order.
    whole : elements of the whole mesh.
    """

    rank: int
    model: Model
    nodes: Int
    sharing: NDArray[np.int8]
    shared: dict[int, Int]
    whole: int


def divide(mesh: TetMesh, n_part: int, work: Float | None = None) -> Int:
    """Part of every element, by METIS (Karypis & Kumar 1998).

    The graph's vertices are clusters of elements of equal size: of a mesh that was
    refined three times the descendants of an element, which a GPU's products take
    together, else compact ones. An edge weighs what the cut costs, the number of mesh
    vertices that both clusters have.

    Parts meet after every product and after every step of local smoothing, so each of
    the two should take all parts the same time: a part with fewer elements, of which
    more are smoothed, would be waited for and wait. Parts have equal numbers of
    elements, and of several such partitions that is taken whose most loaded part has
    least work beyond them.

    Parameters
    ----------
    n_part : number of parts.
    work : (n_elem,) of each element, near one; the same for all where left out.

    Returns
    -------
    (n_elem,) int64.

    Raises
    ------
    PartitionError
        If the mesh has too few elements for a part to be left with any.
    """
    n_elem = len(mesh.elements)
    cluster = _clusters(mesh, n_part)
    n_cluster = int(cluster.max()) + 1
    touch = csr_array(
        (
            np.ones(4 * n_elem, dtype=np.int32),
            (np.repeat(cluster, 4), mesh.cells.ravel()),
        ),
        shape=(n_cluster, mesh.n_vertex),
    )
    touch.data[:] = 1
    graph = (touch @ touch.T).tocsr()
    graph.setdiag(0)
    graph.eliminate_zeros()
    size = np.bincount(cluster)
    more = np.bincount(cluster, work) - size

    def cut(seed: int) -> Int:
        _, member = pymetis.part_graph(
            n_part,
            pymetis.CSRAdjacency(graph.indptr, graph.indices),
            eweights=graph.data,
            vweights=size,
            options=pymetis.Options(seed=seed),
        )
        return np.asarray(member, dtype=np.int64)

    def cost(member: Int) -> float:
        each = [np.bincount(member, w, n_part).max() for w in (size, more)]
        return float(sum(each))

    tries = range(_TRIES if more.any() else 1)
    parts = min(map(cut, tries), key=cost)[cluster]
    if len(np.unique(parts)) < n_part:
        message = f"{n_elem} elements cannot be cut into {n_part} parts"
        raise PartitionError(message)
    return parts


def _clusters(mesh: TetMesh, n_part: int) -> Int:
    """Cluster of every element: what it was refined from, or compact ones.

    Children of an element are never divided: parts of the mesh that a model was refined
    from then have the parents of the model's parts.
    """
    n_elem = len(mesh.elements)
    many = n_elem >= DESCENDANTS * _ENOUGH * n_part
    if many and _parents(mesh.cells, TIMES) is not None:
        return np.asarray(np.arange(n_elem) // DESCENDANTS)
    parents = _parents(mesh.cells, 1)
    if parents is not None:
        return np.repeat(_compact(mesh.nodes, parents), CHILDREN)
    return _compact(mesh.nodes, mesh.cells)


def _compact(nodes: Float, cells: Int) -> Int:
    """Compact cluster of every element."""
    size = -(-len(cells) // _CLUSTERS)
    order = compact_order(centres(nodes, cells), size)
    cluster = np.empty(len(cells), dtype=np.int64)
    cluster[order] = np.arange(len(cells)) // size
    return cluster


def _parents(cells: Int, times: int) -> Int | None:
    """Cells (n, 4) that were halved so often, or None."""
    for _ in range(times):
        corners = corners_of_children(cells)
        if corners is None:
            return None
        cells = np.ascontiguousarray(corners[:, np.arange(4), np.arange(4)])
    return cells


def split(model: Model, membership: NDArray[np.integer]) -> list[Part]:
    """Cut a model into the parts that ``membership`` (n_elem,) names."""
    mesh, n_part = model.mesh, int(membership.max()) + 1
    n_node = len(mesh.nodes)
    own = [np.flatnonzero(membership == rank) for rank in range(n_part)]
    has = np.zeros((n_part, n_node), dtype=np.bool_)
    for rank, elements in enumerate(own):
        has[rank, mesh.elements[elements].ravel()] = True
    count = has.sum(axis=0, dtype=np.int8)
    owner = has.argmax(axis=0)
    parts = []
    for rank, elements in enumerate(own):
        nodes = np.flatnonzero(has[rank])
        number = np.full(n_node, -1, dtype=np.int64)
        number[nodes] = np.arange(len(nodes))
        sharing = np.where(owner[nodes] == rank, 1, 2).astype(np.int8)
        sharing[count[nodes] == 1] = 0
        shared = {
            peer: number[both]
            for peer in range(n_part)
            if peer != rank and len(both := np.flatnonzero(has[rank] & has[peer]))
        }
        local = _local_model(model, elements, nodes, number)
        parts.append(Part(rank, local, nodes, sharing, shared, len(membership)))
    return parts


def _local_model(model: Model, elements: Int, nodes: Int, number: Int) -> Model:
    mesh = model.mesh
    inside = np.full(len(mesh.elements), -1, dtype=np.int64)
    inside[elements] = np.arange(len(elements))
    local = TetMesh(
        mesh.nodes[nodes],
        number[mesh.elements[elements]],
        int(np.searchsorted(nodes, mesh.n_vertex)),
        mesh.tags[elements],
        mesh.tag_names,
    )
    none = np.empty(0, dtype=np.int64)
    return replace(
        model,
        mesh=local,
        materials=_local_materials(model.materials, elements),
        fixed=model.fixed[nodes],
        surface=Surface(none, none.reshape(0, 6)),
        splits={name: _local_split(s, inside) for name, s in model.splits.items()},
        restoring=_local_restoring(model.restoring, inside, number),
    )


def _local_materials(materials: Materials, elements: Int) -> Materials:
    """Materials of some elements, whatever properties they have."""
    values = {item.name: getattr(materials, item.name) for item in fields(materials)}
    known = {name: v[elements] for name, v in values.items() if v is not None}
    return replace(materials, **known)


def _local_split(whole: SplitNodes, inside: Int) -> SplitNodes:
    mine: Bool = inside[whole.elements] >= 0
    return SplitNodes(inside[whole.elements[mine]], whole.index[mine], whole.sign[mine])


def _local_restoring(
    whole: Restoring | None, inside: Int, number: Int
) -> Restoring | None:
    if whole is None:
        return None
    mine = inside[whole.owners] >= 0
    return Restoring(
        number[whole.faces[mine]],
        whole.stiffness[mine],
        inside[whole.owners[mine]],
        None if whole.up is None else whole.up[mine],
    )
