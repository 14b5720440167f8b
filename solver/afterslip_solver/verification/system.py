"""The solver's matrix, loads and solution on a mesh, in the mesh's own numbering."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from afterslip_solver import multigrid
from afterslip_solver.backend import LANES, Backend, get
from afterslip_solver.backend.base import Tets
from afterslip_solver.krylov import pcg
from afterslip_solver.model import (
    Bool,
    Float,
    Materials,
    Restoring,
    SplitNodes,
    TetMesh,
)
from afterslip_solver.operators import Elasticity, Space, Springs
from afterslip_solver.verification.direct import solve_directly


@dataclass(frozen=True, slots=True)
class System:
    """Elastic operator of a mesh; vectors are (n_node, 3, 1 to 4 lanes).

    Attributes
    ----------
    space, elasticity, backend : the solver's objects.
    """

    space: Space
    elasticity: Elasticity
    backend: Backend

    @classmethod
    def build(
        cls,
        mesh: TetMesh,
        materials: Materials,
        fixed: Bool,
        restoring: Restoring | None = None,
    ) -> System:
        """Assemble on the CPU."""
        backend = get("cpu")
        space = Space.build(mesh, fixed)
        tets = Tets(space.elements, space.gradients, space.volume)
        order = space.element_order
        springs = Springs(backend, space, restoring) if restoring else None
        elasticity = Elasticity(
            backend, space, tets, materials.lam[order], materials.mu[order], springs
        )
        return cls(space, elasticity, backend)

    def apply(self, u: Float) -> Float:
        """K u by the assembled matrix, N."""
        out = np.zeros(self.elasticity.shape)
        self.elasticity.apply(self._lanes(u), out)
        return self._back(out, u)

    def apply_elements(self, u: Float) -> Float:
        """K u element by element, N."""
        lanes = self._lanes(u)
        return -self._back(self.elasticity.check(lanes, np.zeros_like(lanes)), u)

    def offset_load(self, split: SplitNodes, slip: Float) -> Float:
        """Nodal forces (N) of slip (n_fault_node, 3, n_lane), m."""
        padded = np.zeros((*slip.shape[:2], LANES))
        padded[..., : slip.shape[2]] = slip
        load = self.backend.offset_forces(
            self.elasticity.tets,
            self.space.element_rank[split.elements],
            self.elasticity.lam,
            self.elasticity.mu,
            np.ascontiguousarray(split.offsets(padded)),
            self.space.n_node,
        )
        if self.elasticity.springs is not None:
            offsets = split.offsets(padded)
            self.elasticity.springs.add_offset_load(split.elements, offsets, load)
        return self._back(load, slip)

    def solve(self, load: Float, tolerance: float = 1e-10) -> Float:
        """Displacement by the solver's own multigrid conjugate gradients.

        Raises
        ------
        ArithmeticError
            Where they do not converge: a verification has then failed.
        """
        right = self._lanes(load) * self.elasticity.free
        cycle = multigrid.build(self.elasticity)
        found = pcg(self.elasticity, cycle, right, tolerance=tolerance)
        if found.outcome != "converged":
            raise ArithmeticError(found.advice)
        return self._back(found.values, load)

    def factorised(self, load: Float) -> Float:
        """Displacement by a direct factorisation, independent of the solver."""
        host, n = self.elasticity.host, 3 * self.space.n_node
        matrix = sp.bsr_matrix((host.data, host.indices, host.indptr), shape=(n, n))
        if self.elasticity.springs is not None:
            vertical = sp.csr_matrix(np.diag([0.0, 0.0, 1.0]))
            matrix = matrix + sp.kron(self.elasticity.springs.host, vertical)
        right = (self._lanes(load) * self.elasticity.free).reshape(n, LANES)
        nodes = self.space.nodes
        position = np.repeat(nodes[:, np.argmax(np.ptp(nodes, axis=0))], 3)
        values = solve_directly(sp.csr_matrix(matrix), position, right)
        return self._back(values.reshape(-1, 3, LANES), load)

    def _lanes(self, u: Float) -> Float:
        out = np.zeros(self.elasticity.shape)
        out[..., : u.shape[2]] = u[self.space.order]
        return out

    def _back(self, f: Float, like: Float) -> Float:
        return np.asarray(f[self.space.rank][..., : like.shape[2]])
