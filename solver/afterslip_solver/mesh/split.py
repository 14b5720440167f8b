"""Sides of a fault by topology (split nodes, Melosh & Raefsky 1981)."""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from afterslip_common.errors import MeshError
from afterslip_solver.mesh.topology import (
    TET_FACES_P2,
    any_corner,
    cell_faces,
    face_keys,
    is_even_permutation,
)
from afterslip_solver.model import Bool, FaultMesh, Int, SplitNodes, TetMesh


def split_nodes(mesh: TetMesh, fault: FaultMesh) -> SplitNodes:
    """Elements that touch the fault, and the side on which they see it.

    The elements around each fault node are joined through their common faces,
    except those on the fault. A node inside the surface is left with two such
    groups, named by the elements whose face lies on the fault. Around a node of
    the rim everything stays joined: it carries no offset. The rule needs no
    geometry, so it holds for curved surfaces and for traces on a free surface.

    Returns
    -------
    SplitNodes. Raises MeshError where the surface has no two sides.
    """
    place = np.full(len(mesh.nodes), -1, dtype=np.int64)
    place[fault.nodes] = np.arange(len(fault.nodes))
    # who has a midpoint of the fault has its edge's ends, too
    touching = np.flatnonzero(any_corner(mesh.cells, place[: mesh.n_vertex] >= 0))
    index = place[mesh.elements[touching]]
    # a (element, local node) pair per offset that has to be decided
    pair = np.full(index.shape, -1, dtype=np.int64)
    pair[index >= 0] = np.arange(int((index >= 0).sum()))
    n_pair = int(pair.max()) + 1

    first, second, triangle, positive = _matched_faces(mesh, fault, touching)
    on_fault = triangle >= 0
    joined = pair.reshape(-1)
    faces = np.array(TET_FACES_P2)
    cut = on_fault[first]
    left = joined[(first // 4 * 10)[:, None] + _sorted_nodes(mesh, touching, first)]
    right = joined[(second // 4 * 10)[:, None] + _sorted_nodes(mesh, touching, second)]
    link = ~cut[:, None] & (left >= 0)
    graph = coo_matrix(
        (np.ones(int(link.sum()), dtype=np.int8), (left[link], right[link])),
        shape=(n_pair, n_pair),
    )
    count, group = connected_components(graph, directed=False)

    seed = np.flatnonzero(on_fault)
    seeds = joined[(seed // 4 * 10)[:, None] + faces[seed % 4]]
    plus = np.zeros(count, dtype=np.bool_)
    minus = np.zeros(count, dtype=np.bool_)
    plus[group[seeds[positive[seed]]]] = True
    minus[group[seeds[~positive[seed]]]] = True
    if not np.all(plus | minus):
        raise MeshError(
            f"fault {fault.name}: the elements around a node of the fault do not "
            "hang together; the mesh is not a proper volume there"
        )
    of_group = 0.5 * (plus.astype(np.float64) - minus.astype(np.float64))
    sign = np.zeros(index.shape)
    sign[index >= 0] = of_group[group]
    _check_two_sides(fault, index, sign)
    return SplitNodes(elements=touching, index=index, sign=sign)


def _sorted_nodes(mesh: TetMesh, touching: Int, face: Int) -> Int:
    """(n, 6) local nodes of element faces, by rising node number.

    Two elements that share a face then list its nodes in the same order.
    """
    local = np.array(TET_FACES_P2)[face % 4]
    nodes = mesh.elements[touching[face // 4][:, None], local]
    return np.take_along_axis(local, np.argsort(nodes, axis=1), axis=1)


def _matched_faces(
    mesh: TetMesh, fault: FaultMesh, touching: Int
) -> tuple[Int, Int, Int, Bool]:
    """Pair up the faces of the touching elements, and find those on the fault.

    Returns
    -------
    first, second : (n_pair,) face numbers (4 * position in touching + local).
    triangle : (4 n_touch,) the fault's triangle that the face is, or -1.
    positive : (4 n_touch,) the element lies on the + side of that face.
    """
    faces = cell_faces(mesh.elements[touching]).reshape(-1, 3)
    corners = fault.triangles[:, :3]
    keys = face_keys(np.concatenate([faces, corners]), mesh.n_vertex)
    face_key, fault_key = keys[: len(faces)], keys[len(faces) :]

    order = np.argsort(fault_key)
    spot = np.searchsorted(fault_key[order], face_key).clip(max=len(order) - 1)
    triangle = order[spot]
    on_fault = fault_key[triangle] == face_key
    counted = np.bincount(triangle[on_fault], minlength=len(corners))
    if not np.all(counted == 2):
        raise MeshError(
            f"fault {fault.name}: {int((counted != 2).sum())} of its triangles do not "
            "lie between two tetrahedra; the mesh must conform to the fault and the "
            "fault must lie inside the domain"
        )
    # an element's outward face runs against a triangle whose normal enters it
    positive = np.zeros(len(faces), dtype=np.bool_)
    positive[on_fault] = ~is_even_permutation(
        faces[on_fault], corners[triangle[on_fault]]
    )
    order = np.argsort(face_key, kind="stable")
    equal = np.flatnonzero(face_key[order][1:] == face_key[order][:-1])
    triangle = np.where(on_fault, triangle, -1)
    return order[equal], order[equal + 1], triangle, positive


def elements_beside(mesh: TetMesh, fault: FaultMesh) -> Int:
    """(n_tri, 2) int64 elements on the + and on the - side of each triangle."""
    on_fault = np.zeros(len(mesh.nodes), dtype=np.bool_)
    on_fault[fault.nodes] = True
    touching = np.flatnonzero(any_corner(mesh.cells, on_fault[: mesh.n_vertex], 3))
    _, _, triangle, positive = _matched_faces(mesh, fault, touching)
    face = np.flatnonzero(triangle >= 0)
    beside = np.empty((len(fault.triangles), 2), dtype=np.int64)
    side = np.where(positive[face], 0, 1)
    beside[triangle[face], side] = touching[face // 4]
    return beside


def _check_two_sides(fault: FaultMesh, index: Int, sign: np.ndarray) -> None:
    """Every node with elements on one side must have some on the other as well."""
    touched = np.zeros((len(fault.nodes), 2), dtype=np.bool_)
    touched[index[sign > 0.0], 0] = True
    touched[index[sign < 0.0], 1] = True
    if np.any(touched[:, 0] != touched[:, 1]):
        raise MeshError(
            f"fault {fault.name}: {int((touched[:, 0] != touched[:, 1]).sum())} of "
            "its nodes have only one side; its triangles are not oriented alike"
        )
    if not touched.any():
        raise MeshError(
            f"fault {fault.name}: it has no inner node, so nothing can slip; "
            "make elements on the fault smaller"
        )
