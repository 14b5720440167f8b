"""The isostatic restoring force as vertical springs, a symmetric part of K.

A horizontal density jump that moves by u_z is pulled back with the traction
-(rho_below - rho_above) g u_z; on the free surface nothing is above. Its form
int drho g u_z w_z dA is integrated exactly on the faces of the mesh. On a sphere u_z
is the component along the vertical of each node, and A the area across it.

The springs act beside the elastic matrix and enter the preconditioner from the linear
elements down: what they change is long-waved, and the smoother of the quadratic
elements does not see it. Leaving them out there keeps the V-cycle positive.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import coo_array, csr_array

from afterslip_solver.backend import Backend
from afterslip_solver.model import Bool, Float, Int, Restoring
from afterslip_solver.operators.space import Space

# mass matrices of a triangle of unit area; quadratic: 3 vertices, then midpoints of
# (0,1), (1,2), (2,0)
LINEAR = (np.ones((3, 3)) + np.eye(3)) / 12.0
QUADRATIC = (
    np.array(
        [
            [6, -1, -1, 0, -4, 0],
            [-1, 6, -1, 0, 0, -4],
            [-1, -1, 6, -4, 0, 0],
            [0, 0, -4, 32, 16, 16],
            [-4, 0, 0, 16, 32, 16],
            [0, -4, 0, 16, 16, 32],
        ],
        dtype=np.float64,
    )
    / 180.0
)


class Springs:
    """Vertical springs on one mesh.

    Parameters
    ----------
    backend : where vectors live. space : numbering.
    restoring : faces and their stiffness, in the mesh's numbering.

    Attributes
    ----------
    host : (n_node, n_node) N/m, between the nodes' vertical components; rows and
        columns of fixed ones are empty.
    up : (n_node, 3) verticals of the nodes, 0 in fixed components; None where z.
    """

    def __init__(self, backend: Backend, space: Space, restoring: Restoring) -> None:
        self._backend = backend
        self._space = space
        self._restoring = restoring
        faces = space.rank[restoring.faces]
        self.up: Float | None = None
        free: Bool = ~space.fixed[:, 2]
        if restoring.up is not None:
            self.up = np.zeros((space.n_node, 3))
            self.up[faces] = restoring.up
            self.up[space.fixed] = 0.0
            free = np.asarray(self.up.any(axis=1))
        self._weight = restoring.stiffness * _projected_area(space, restoring)
        self.host = self._matrix(faces, QUADRATIC, space.n_node, free)
        # rows of equal length suit every kind of array
        count = np.diff(self.host.indptr)
        rows = np.flatnonzero(count)
        width = int(count.max(initial=0))
        place = np.arange(self.host.nnz) - np.repeat(self.host.indptr[:-1], count)
        columns = np.zeros((len(rows), width), dtype=np.int64)
        values = np.zeros((len(rows), width))
        at = np.repeat(np.arange(len(rows)), count[rows]), place
        columns[at], values[at] = self.host.indices, self.host.data
        self._rows = backend.asarray(rows)
        self._columns = backend.asarray(columns)
        self._values = backend.asarray(values)
        self._up = None if self.up is None else backend.asarray(self.up[:, :, None])

    @property
    def bytes(self) -> int:
        """Memory on the backend."""
        return int(self._columns.nbytes + self._values.nbytes + self._rows.nbytes)

    def add(self, u: Any, out: Any) -> None:
        """Add the springs' forces on u (n_node, 3, lane) to out."""
        if len(self._rows) == 0:
            return
        z = u[:, 2] if self._up is None else (self._up * u).sum(axis=1)
        total = self._values[:, :1] * z[self._columns[:, 0]]
        for k in range(1, self._columns.shape[1]):
            total += self._values[:, k : k + 1] * z[self._columns[:, k]]
        if self._up is None:
            out[self._rows, 2] += total
        else:
            out[self._rows] += self._up[self._rows] * total[:, None]

    def add_linear(self, indptr: Any, indices: Any, data: Float) -> None:
        """Add the form on linear elements to 3 x 3 blocks of the vertices' matrix."""
        space = self._space
        number = np.full(space.n_node, -1, dtype=np.int64)
        number[space.vertices] = np.arange(len(space.vertices))
        corners = number[space.rank[self._restoring.faces[:, :3]]]
        up = None if self.up is None else self.up[space.vertices]
        free = ~space.fixed[space.vertices, 2] if up is None else up.any(axis=1)
        own = self._matrix(corners, LINEAR, len(space.vertices), free).tocoo()
        shape = (len(space.vertices), len(space.vertices))
        slots = csr_array((np.arange(1, len(indices) + 1), indices, indptr), shape)
        if own.nnz == 0:
            return
        at = np.asarray(slots[own.row, own.col]) - 1
        if up is None:
            data[at, 2, 2] += own.data
        else:
            pairs = up[own.row][:, :, None] * up[own.col][:, None, :]
            data[at] += own.data[:, None, None] * pairs

    def add_offset_load(self, elements: Int, offsets: Any, f: Any) -> None:
        """Take the springs' forces on offsets of a fault's sides from f.

        Parameters
        ----------
        elements : (n,) that see the offsets. offsets : (n, 10, 3, lane) of them.
        f : (n_node, 3, lane).
        """
        if len(elements) == 0:
            return
        faces, owners = self._restoring.faces, self._restoring.owners
        order = np.argsort(elements)
        place = np.searchsorted(elements[order], owners)
        touching = order[np.minimum(place, len(order) - 1)]
        mine = np.flatnonzero(elements[touching] == owners)
        if len(mine) == 0:
            return
        rows = touching[mine]
        local = self._local(owners[mine], faces[mine])
        motion = self._backend.to_host(offsets[self._backend.asarray(rows)])
        if self.up is None:
            motion = motion[:, :, 2]
        else:
            members = self._space.elements[self._space.element_rank[owners[mine]]]
            motion = np.einsum("nkc,nkcl->nkl", self.up[members], motion)
        moved = np.take_along_axis(motion, local[:, :, None], axis=1)
        force = np.einsum("f,ij,fjl->fil", self._weight[mine], QUADRATIC, moved)
        nodes, inverse = np.unique(
            self._space.rank[faces[mine]].ravel(), return_inverse=True
        )
        total = np.zeros((len(nodes), force.shape[2]))
        np.add.at(total, inverse, force.reshape(-1, force.shape[2]))
        if self.up is None:
            f[self._backend.asarray(nodes), 2] -= self._backend.asarray(total)
        else:
            pull = self.up[nodes][:, :, None] * total[:, None]
            f[self._backend.asarray(nodes)] -= self._backend.asarray(pull)

    def _local(self, owners: Int, faces: Int) -> Int:
        """Positions (n, 6) of a face's nodes in its element's nodes."""
        space = self._space
        nodes = space.elements[space.element_rank[owners]]
        same = nodes[:, None, :] == space.rank[faces][:, :, None]
        return np.asarray(np.argmax(same, axis=2))

    def _matrix(self, faces: Int, mass: Float, size: int, free: Any) -> csr_array:
        values = self._weight[:, None, None] * mass
        rows = np.broadcast_to(faces[:, :, None], values.shape)
        columns = np.broadcast_to(faces[:, None, :], values.shape)
        keep = free[rows] & free[columns] & (values != 0.0)
        entries = (values[keep], (rows[keep], columns[keep]))
        return coo_array(entries, shape=(size, size)).tocsr()


def _projected_area(space: Space, restoring: Restoring) -> Float:
    """(n_face,) m2, area of the faces along their vertical."""
    sides = np.diff(space.nodes[space.rank[restoring.faces[:, :3]]], axis=1)
    if restoring.up is not None:
        up = restoring.up[:, :3].mean(axis=1)
        normal = np.cross(sides[:, 0], sides[:, 1])
        return np.asarray(0.5 * np.abs(np.einsum("ij,ij->i", normal, up)))
    a, b = sides[:, 0, :2], sides[:, 1, :2]
    return np.asarray(0.5 * np.abs(a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]))
