"""Creep strain in the viscoelastic elements: state of the relaxation problem.

A state holds the deviatoric strain at the four vertices of every viscoelastic
element, (n_visco, 4, 5, lane), in an orthonormal basis of deviatoric tensors.
Because the strain of a quadratic field is linear in an element, the state space
contains every creep strain that can arise, and nothing is interpolated.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from afterslip_solver.backend import LANES, Backend
from afterslip_solver.backend.base import Tets
from afterslip_solver.model import Float
from afterslip_solver.operators.space import Space


class Creep:
    """Strain, its transpose and the energy inner product on creep strains.

    Parameters
    ----------
    backend, space : as for `Elasticity`.
    mu, viscosity : (n_elem,) float64, Pa and Pa s (inf where elastic), in the
        solver's order of elements.

    Attributes
    ----------
    which : (n_visco,) the solver's numbers of the viscoelastic elements.
    mu : (n_visco,) Pa. rate : (n_visco,) mu / viscosity, 1/s. Both host arrays.
    """

    def __init__(
        self, backend: Backend, space: Space, mu: Float, viscosity: Float
    ) -> None:
        self.backend = backend
        self.n_node = space.n_node
        self.which = np.flatnonzero(np.isfinite(viscosity))
        self.mu = mu[self.which]
        self.rate = self.mu / viscosity[self.which]
        self.tets = Tets(
            backend.asarray(space.elements[self.which]),
            backend.asarray(space.gradients[self.which]),
            backend.asarray(space.volume[self.which]),
        )
        energy = 2.0 * viscosity[self.which] * space.volume[self.which] / 20.0
        self._energy = backend.asarray(energy[:, None, None, None])
        self._row = np.full(len(viscosity), -1, dtype=np.int64)
        self._row[self.which] = np.arange(len(self.which))

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Shape of a state of four lanes."""
        return (len(self.which), 4, 5, LANES)

    @property
    def bytes(self) -> int:
        """Memory of the operator; a state takes ``8 * prod(shape)`` more."""
        return int(self.tets.bytes + self._energy.nbytes)

    def field(self, values: Float) -> Any:
        """Element values (n_visco,) as a factor of states."""
        return self.backend.asarray(values[:, None, None, None])

    def rows(self, elements: NDArray[np.integer]) -> tuple[Any, Any]:
        """Positions among ``elements`` that are viscoelastic, and their rows."""
        rows = self._row[elements]
        inside = np.flatnonzero(rows >= 0)
        return inside, rows[inside]

    def strain(self, u: Any) -> Any:
        """Deviatoric strain of u (n_node, 3, lane)."""
        out = self.backend.xp.empty(self.shape)
        self.backend.strain(self.tets, u, out)
        return out

    def divergence(self, factor: Any, stress: Any) -> Any:
        """Nodal forces int B^T (factor stress) (n_node, 3, lane); factor (n_visco,)."""
        return self.backend.divergence(self.tets, factor, stress, self.n_node)

    def weighted(self, state: Any) -> Any:
        """Riesz representative: dot(a, weighted(b)) = int 2 eta a : b."""
        return self._energy * (state + state.sum(axis=1, keepdims=True))
