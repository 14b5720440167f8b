"""Creep strain in the viscoelastic elements: state of the relaxation problem.

A state holds the deviatoric strain at the four vertices of every viscoelastic
element, (n_visco, 4, 5, lane), in an orthonormal basis of deviatoric tensors.
Because the strain of a quadratic field is linear in an element, the state space
contains every creep strain that can arise, and nothing is interpolated.

A body creeps by the branches of its rheology, strains e_i. Elements with more branches
come first among the viscoelastic ones; their second branches are further rows of the
state behind all first ones, and so on. With the total creep e = sum e_i and d the
deviatoric strain of the elastic response to it,

    (A e)_i = mu/eta_i (e - d) + mu_i/eta_i e_i

is self-adjoint and non-negative in <a, b> = sum_i int 2 eta_i a_i : b_i, because
<a, A b> = int 2 mu a : (b - d_b) + sum_i 2 mu_i a_i : b_i.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from afterslip_solver.backend import LANES, Backend
from afterslip_solver.backend.base import Tets
from afterslip_solver.jit.threads import take_rows
from afterslip_solver.model import Float
from afterslip_solver.operators.space import Space
from afterslip_solver.rheology import Branch, RelaxationRates


@dataclass(frozen=True, slots=True)
class BranchRows:
    """A branch of the rheology in states; the first ``count`` elements have it.

    Attributes
    ----------
    rows : of a state. count : number of elements.
    rate : (count,) 1/s, mu over its viscosity.
    recovery : (count,) 1/s, modulus of its spring over its viscosity.
    """

    rows: slice
    count: int
    rate: Float
    recovery: Float

    @property
    def sprung(self) -> bool:
        """Whether any dashpot of it has a spring beside it."""
        return bool((self.recovery > 0.0).any())


class Creep:
    """Strain, its transpose and the energy inner product on creep strains.

    Parameters
    ----------
    backend, space : as for `Elasticity`.
    mu : (n_elem,) float64, Pa, in the solver's order of elements.
    branches : the rheology, in the same order.

    Attributes
    ----------
    which : (n_visco,) the solver's numbers of the viscoelastic elements.
    branches : their branches, one at least, by falling number of elements.
    mu : (n_visco,) Pa. rate : (n_visco,) 1/s, of the first branch. Both host arrays.
    """

    def __init__(
        self, backend: Backend, space: Space, mu: Float, branches: Sequence[Branch]
    ) -> None:
        self.backend = backend
        self.n_node = space.n_node
        viscosity, modulus = _present_first(branches)
        count = np.isfinite(viscosity).sum(axis=0)
        self.which = np.flatnonzero(count)
        self.which = self.which[np.argsort(-count[self.which], kind="stable")]
        self.mu = mu[self.which]
        arrays = space.elements, space.gradients, space.volume
        self.tets = Tets(*(backend.asarray(take_rows(a, self.which)) for a in arrays))
        found, energy, start = list[BranchRows](), list[Float](), 0
        for k in range(len(viscosity)):
            own = self.which[count[self.which] > k]
            if k and not len(own):
                break
            eta, rows = viscosity[k, own], slice(start, start + len(own))
            rates = mu[own] / eta, modulus[k, own] / eta
            found.append(BranchRows(rows, len(own), *rates))
            energy.append(2.0 * eta * space.volume[own] / 20.0)
            start = rows.stop
        self.branches = tuple(found)
        self.rate = found[0].rate
        self._rates = RelaxationRates(
            [branch.rate for branch in found], [branch.recovery for branch in found]
        )
        self._n_row = start
        # one dashpot alone: operations on states are single passes
        self.single = len(found) == 1 and not found[0].sprung
        self._energy = backend.asarray(np.concatenate(energy))
        self._rate = backend.asarray(self.rate)
        self._twice_mu = backend.asarray(2.0 * self.mu)
        self._row = np.full(len(mu), -1, dtype=np.int64)
        self._row[self.which] = np.arange(len(self.which))

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Shape of a state of four lanes."""
        return (self._n_row, 4, 5, LANES)

    @property
    def further_rows(self) -> int:
        """Rows of a state behind those of the first branch."""
        return self._n_row - len(self.which)

    @property
    def anywhere(self) -> bool:
        """Whether anything creeps at all."""
        return len(self.which) > 0

    @property
    def fastest(self) -> float:
        """See `RelaxingBody`."""
        return self._fastest

    @cached_property
    def _fastest(self) -> float:
        # of all elements, and asked for by every group
        return self._rates.fastest

    def softening(self, shift: float) -> float:
        """See `RelaxingBody`."""
        return self._rates.softening(shift)

    @property
    def bytes(self) -> int:
        """Memory of the operator; a state takes ``8 * prod(shape)`` more."""
        fields = self._energy, self._rate, self._twice_mu
        return int(self.tets.bytes + sum(own.nbytes for own in fields))

    def field(self, values: Float) -> Any:
        """Element values (n_visco,) as a factor of states."""
        return self.backend.asarray(values[:, None, None, None])

    def rows(self, elements: NDArray[np.integer]) -> NDArray[np.integer]:
        """Rows of elements in a state, -1 where one does not creep."""
        found: NDArray[np.integer] = self._row[elements]
        return found

    def strain(self, u: Any) -> Any:
        """Deviatoric strain (n_visco, 4, 5, lane) of u (n_node, 3, lane)."""
        out = self.backend.xp.empty((len(self.which), *self.shape[1:]))
        self.backend.strain(self.tets, u, out)
        return out

    def divergence(self, factor: Any, stress: Any) -> Any:
        """Nodal forces int B^T (factor stress) (n_node, 3, lane); factor (n_visco,)."""
        return self.backend.divergence(self.tets, factor, stress, self.n_node)

    def load(self, state: Any) -> Any:
        """Nodal forces (n_node, 3, lane) whose elastic response is that to a state."""
        return self.divergence(self._twice_mu, self.total(state))

    def weighted(self, state: Any) -> Any:
        """Riesz representative: dot(a, weighted(b)) = int 2 eta a : b."""
        total = state + state.sum(axis=1, keepdims=True)
        return self._energy[:, None, None, None] * total

    def energy_dots(self, basis: Sequence[Any], state: Any) -> Float:
        """Inner products int 2 eta a : state, (m, lane), with the states of a list."""
        return self.backend.energy_dots(self._energy, basis, state)

    def norm(self, state: Any) -> Float:
        """(lane,) square root of int 2 eta state : state."""
        return np.asarray(np.sqrt(np.maximum(self.energy_dots([state], state)[0], 0)))

    def driven(self, strain: Any) -> Any:
        """Rate of a state where the deviatoric stress is 2 mu strain (n_visco, ...)."""
        own = self._rate[:, None, None, None] * strain
        if len(self.branches) == 1:
            return own
        others = [self.field(b.rate) * strain[: b.count] for b in self.branches[1:]]
        return self.backend.xp.concatenate([own, *others])

    def total(self, state: Any) -> Any:
        """Creep strain of all branches (n_visco, 4, 5, lane); may be the state."""
        if len(self.branches) == 1:
            return state
        out = state[: len(self.which)].astype(np.float64)
        for branch in self.branches[1:]:
            out[: branch.count] += state[branch.rows]
        return out

    def blended(self, keep: Any, state: Any, gain: Any, u: Any) -> Any:
        """Return keep state + gain strain(u), factors (n_visco,) on the backend."""
        out = self.backend.xp.empty((len(self.which), *self.shape[1:]))
        self.backend.blend_strain(self.tets, u, keep, state, gain, out)
        return out

    def relaxation(self, state: Any, u: Any) -> Any:
        """Return A state, from the elastic response u to it."""
        if self.single:
            return self.blended(self._rate, state, -self._rate, u)
        out = self.driven(self.total(state) - self.strain(u))
        for branch in self.branches:
            if branch.sprung:
                out[branch.rows] += self.field(branch.recovery) * state[branch.rows]
        return out


def _present_first(branches: Sequence[Branch]) -> tuple[Float, Float]:
    """Viscosity and modulus (n_branch, n_elem), absent branches of an element last."""
    if len(branches) == 1:
        # as they are: copies of all elements take as long as the rest of a set-up
        return branches[0].viscosity[None], branches[0].springs[None]
    viscosity = np.stack([branch.viscosity for branch in branches])
    modulus = np.stack([branch.springs for branch in branches])
    there = np.isfinite(viscosity)
    if (there[1:] <= there[:-1]).all():
        return viscosity, modulus
    order = np.argsort(~there, axis=0, kind="stable")
    along = np.take_along_axis
    return along(viscosity, order, axis=0), along(modulus, order, axis=0)


class Resolvent:
    """S = (1 + shift A)^-1 around one elastic solve with the softened K^v.

    With theta_i = shift mu/eta_i and kappa_i = 1 + shift mu_i/eta_i, the strain of
    the whole creep has the Maxwell form with Theta = sum theta_i/kappa_i and
    q = sum q_i/kappa_i: K^v w = int B^T 2 mu^v q with mu^v = mu/(1 + Theta), and w is
    the elastic response of S q.

    Parameters
    ----------
    creep : the states. shift : s.

    Attributes
    ----------
    softened : (n_visco,) Pa, mu^v, on the host.
    """

    def __init__(self, creep: Creep, shift: float) -> None:
        self._creep = creep
        backend, branches = creep.backend, creep.branches
        self._theta = [creep.field(shift * branch.rate) for branch in branches]
        self._kappa = [
            creep.field(1.0 + shift * b.recovery) if b.sprung else None
            for b in branches
        ]
        theta = np.zeros(len(creep.which))
        for branch in branches:
            kappa = 1.0 + shift * branch.recovery
            theta[: branch.count] += shift * branch.rate / kappa
        self.softened = creep.mu / (1.0 + theta)
        self._factor = backend.asarray(2.0 * creep.mu / (1.0 + theta))
        self._strain_part = backend.asarray(theta / (1.0 + theta))
        self._state_part = backend.asarray(1.0 / (1.0 + theta))

    def load(self, q: Any) -> Any:
        """Right-hand side of the solve with K^v, (n_node, 3, lane)."""
        return self._creep.divergence(self._factor, self._merged(q))

    def state(self, q: Any, u: Any) -> Any:
        """S q from the result u of the solve."""
        creep = self._creep
        if creep.single:
            return creep.blended(self._state_part, q, self._strain_part, u)
        lag = self._merged(q)
        lag -= creep.strain(u)
        lag *= self._state_part[:, None, None, None]
        out = q.astype(np.float64)
        parts = zip(creep.branches, self._theta, self._kappa, strict=True)
        for branch, theta, kappa in parts:
            out[branch.rows] -= theta * lag[: branch.count]
            if kappa is not None:
                out[branch.rows] /= kappa
        return out

    def _merged(self, q: Any) -> Any:
        creep = self._creep
        if creep.single:
            return q
        out = q[: len(creep.which)].astype(np.float64)
        if self._kappa[0] is not None:
            out /= self._kappa[0]
        for branch, kappa in zip(creep.branches[1:], self._kappa[1:], strict=True):
            own = q[branch.rows]
            out[: branch.count] += own if kappa is None else own / kappa
        return out
