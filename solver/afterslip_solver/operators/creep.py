"""Creep strain in the viscoelastic elements: state of the relaxation problem.

A state holds the deviatoric strain at the four vertices of every viscoelastic
element, (n_visco, 4, 5, lane), in an orthonormal basis of deviatoric tensors.
Because the strain of a quadratic field is linear in an element, the state space
contains every creep strain that can arise, and nothing is interpolated.

A Burgers body creeps by its Maxwell dashpot and by its Kelvin element, strains e_m
and e_k. Elements with a Kelvin element come first among the viscoelastic ones, and
their e_k are further rows of the state behind all e_m. With the total creep
e = e_m + e_k and d the deviatoric strain of the elastic response to it,

    A (e_m, e_k) = (mu/eta_m (e - d), mu/eta_k (e - d) + mu_k/eta_k e_k)

is self-adjoint and non-negative in <a, b> = int 2 eta_m a_m : b_m
+ 2 eta_k a_k : b_k, because <a, A b> = int 2 mu a : (b - d_b) + 2 mu_k a_k : b_k.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from afterslip_solver.backend import LANES, Backend
from afterslip_solver.backend.base import Tets
from afterslip_solver.model import Float
from afterslip_solver.operators.space import Space
from afterslip_solver.rheology import RelaxationRates


class Creep:
    """Strain, its transpose and the energy inner product on creep strains.

    Parameters
    ----------
    backend, space : as for `Elasticity`.
    mu, viscosity : (n_elem,) float64, Pa and Pa s (inf where elastic), in the
        solver's order of elements.
    kelvin : (n_elem,) modulus, Pa, and viscosity, Pa s, of the Kelvin elements; inf
        where there is none.

    Attributes
    ----------
    which : (n_visco,) the solver's numbers of the viscoelastic elements.
    n_kelvin : how many of them, the first ones, have a Kelvin element.
    mu : (n_visco,) Pa. rate : (n_visco,) mu / viscosity, 1/s. Both host arrays.
    delayed, back : (n_kelvin,) mu and Kelvin modulus over Kelvin viscosity, 1/s.
    """

    def __init__(
        self,
        backend: Backend,
        space: Space,
        mu: Float,
        viscosity: Float,
        kelvin: tuple[Float, Float] | None = None,
    ) -> None:
        self.backend = backend
        self.n_node = space.n_node
        self.which = np.flatnonzero(np.isfinite(viscosity))
        delays = np.empty(0, dtype=np.int64)
        if kelvin is not None:
            has = np.isfinite(kelvin[0]) & np.isfinite(kelvin[1])
            delays = self.which[has[self.which]]
            self.which = np.concatenate([delays, self.which[~has[self.which]]])
        self.n_kelvin = len(delays)
        self.mu = mu[self.which]
        self.rate = self.mu / viscosity[self.which]
        self.tets = Tets(
            backend.asarray(space.elements[self.which]),
            backend.asarray(space.gradients[self.which]),
            backend.asarray(space.volume[self.which]),
        )
        energy = 2.0 * viscosity[self.which] * space.volume[self.which] / 20.0
        self.delayed = self.back = np.empty(0)
        if kelvin is not None:
            modulus, slow = kelvin[0][delays], kelvin[1][delays]
            self.delayed, self.back = mu[delays] / slow, modulus / slow
            energy = np.append(energy, 2.0 * slow * space.volume[delays] / 20.0)
        creep, recovery = [self.rate], [np.zeros_like(self.rate)]
        if self.n_kelvin:
            creep, recovery = [*creep, self.delayed], [*recovery, self.back]
        self._rates = RelaxationRates(creep, recovery)
        self._energy = backend.asarray(energy)
        self._rate = backend.asarray(self.rate)
        self._row = np.full(len(viscosity), -1, dtype=np.int64)
        self._row[self.which] = np.arange(len(self.which))

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Shape of a state of four lanes."""
        return (len(self.which) + self.n_kelvin, 4, 5, LANES)

    @property
    def anywhere(self) -> bool:
        """Whether anything creeps at all."""
        return len(self.which) > 0

    @property
    def fastest(self) -> float:
        """See `RelaxingBody`."""
        return self._rates.fastest

    def softening(self, shift: float) -> float:
        """See `RelaxingBody`."""
        return self._rates.softening(shift)

    @property
    def bytes(self) -> int:
        """Memory of the operator; a state takes ``8 * prod(shape)`` more."""
        return int(self.tets.bytes + self._energy.nbytes + self._rate.nbytes)

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
        if self.n_kelvin == 0:
            return own
        delayed = self.field(self.delayed) * strain[: self.n_kelvin]
        return self.backend.xp.concatenate([own, delayed])

    def total(self, state: Any) -> Any:
        """Creep strain e_m + e_k (n_visco, 4, 5, lane); may be the state itself."""
        if self.n_kelvin == 0:
            return state
        n = len(self.which)
        out = state[:n].astype(np.float64)
        out[: self.n_kelvin] += state[n:]
        return out

    def blended(self, keep: Any, state: Any, gain: Any, u: Any) -> Any:
        """Return keep state + gain strain(u), factors (n_visco,) on the backend."""
        out = self.backend.xp.empty((len(self.which), *self.shape[1:]))
        self.backend.blend_strain(self.tets, u, keep, state, gain, out)
        return out

    def relaxation(self, state: Any, u: Any) -> Any:
        """Return A state, from the elastic response u to it."""
        if self.n_kelvin == 0:
            return self.blended(self._rate, state, -self._rate, u)
        n = len(self.which)
        out = self.driven(self.total(state) - self.strain(u))
        out[n:] += self.field(self.back) * state[n:]
        return out


class Resolvent:
    """S = (1 + shift A)^-1 around one elastic solve with the softened K^v.

    With theta = shift mu/eta_m, theta_k = shift mu/eta_k and kappa = 1 + shift
    mu_k/eta_k, eliminating e_k leaves the Maxwell form with
    Theta = theta + theta_k/kappa and q = q_m + q_k/kappa: K^v w = int B^T 2 mu^v q
    with mu^v = mu/(1 + Theta), and w is the elastic response of S q.

    Parameters
    ----------
    creep : the states. shift : s.

    Attributes
    ----------
    softened : (n_visco,) Pa, mu^v, on the host.
    """

    def __init__(self, creep: Creep, shift: float) -> None:
        self._creep = creep
        theta = shift * creep.rate
        self._own = creep.field(theta)
        backend = creep.backend
        self._delayed = creep.field(shift * creep.delayed)
        kappa = 1.0 + shift * creep.back
        self._kappa = creep.field(kappa)
        theta = theta.copy()
        theta[: creep.n_kelvin] += shift * creep.delayed / kappa
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
        k, n = creep.n_kelvin, len(creep.which)
        if k == 0:
            return creep.blended(self._state_part, q, self._strain_part, u)
        lag = self._merged(q)
        lag -= creep.strain(u)
        lag *= self._state_part[:, None, None, None]
        out = q.astype(np.float64)
        out[:n] -= self._own * lag
        out[n:] -= self._delayed * lag[:k]
        out[n:] /= self._kappa
        return out

    def _merged(self, q: Any) -> Any:
        k, n = self._creep.n_kelvin, len(self._creep.which)
        if k == 0:
            return q
        out = q[:n].astype(np.float64)
        out[:k] += q[n:] / self._kappa
        return out
