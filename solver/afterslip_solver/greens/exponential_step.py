"""One exponential step of the stress at a point, exact for a constant strain rate.

Maxwell: with x = dt mu/eta the deviatoric stress becomes s e^-x + 2 mu^v dev B du,
mu^v = mu (1 - e^-x)/x, so that balance asks for K^v du = int B^T (1 - e^-x) s.

Burgers: the stress s and the Kelvin spring's share k = 2 mu_k e_k of it obey
(s, k)' = M (s, k) + (2 mu d', 0), M = [[-a - b, b], [c, -c]] with a = mu/eta_m,
b = mu/eta_k, c = mu_k/eta_k. With E = exp(dt M) and F = phi_1(dt M) they become
E (s, k) + F (2 mu dev B du, 0); mu^v = mu F_11 and the load is s - (E (s, k))_1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from afterslip_solver.model import Float
from afterslip_solver.operators import Creep


def softened_modulus(mu: Float, rate: Float, step: float) -> Float:
    """mu^v = mu (1 - e^-x)/x with x = step * rate.

    Parameters
    ----------
    mu : Pa. rate : 1/s, mu / viscosity. step : s.
    """
    return mu * _mean_decay(step * rate)


def _mean_decay(x: Float) -> Float:
    safe = np.where(x > 1e-12, x, 1.0)
    return np.where(x > 1e-12, -np.expm1(-safe) / safe, 1.0 - 0.5 * x)


def burgers_step(
    own: Float, delayed: Float, back: Float, step: float
) -> tuple[Float, Float]:
    """E - 1 and F of the module's description.

    M is similar to a symmetric matrix, whose eigenvalues are negative.

    Parameters
    ----------
    own, delayed, back : (n,) 1/s, a, b and c. step : s.

    Returns
    -------
    (n, 2, 2) float64, (n, 2, 2) float64.
    """
    coupling = np.sqrt(delayed * back)
    matrix = np.stack([own + delayed, -coupling, -coupling, back], axis=1)
    rates, vectors = np.linalg.eigh(matrix.reshape(-1, 2, 2))
    x = step * np.maximum(rates, 0.0)
    scale = np.ones((len(own), 2, 2))
    scale[:, 0, 1] = np.sqrt(delayed / back)
    scale[:, 1, 0] = 1.0 / scale[:, 0, 1]
    change, mean = (
        scale * np.einsum("nij,nj,nkj->nik", vectors, values, vectors)
        for values in (np.expm1(-x), _mean_decay(x))
    )
    return change, mean


class ExponentialStep:
    """Stresses at the points of a model, moved by one step length.

    A state is the deviatoric stress of all viscoelastic elements, followed by the
    Kelvin springs' share of it in Burgers bodies, like a state of `Creep`; Pa.

    Parameters
    ----------
    creep : the points. step : s.

    Attributes
    ----------
    softened : (n_visco,) Pa, mu^v, on the host.
    """

    def __init__(self, creep: Creep, step: float) -> None:
        self._creep = creep
        k = creep.n_kelvin
        change, mean = burgers_step(creep.rate[:k], creep.delayed, creep.back, step)
        x = step * creep.rate
        lost, decay = -np.expm1(-x), np.exp(-x)
        lost[:k], decay[:k] = -change[:, 0, 0], 1.0 + change[:, 0, 0]
        self.softened = softened_modulus(creep.mu, creep.rate, step)
        self.softened[:k] = creep.mu[:k] * mean[:, 0, 0]
        self._lost = creep.backend.asarray(lost)
        self._decay = creep.backend.asarray(decay)
        self._twice = creep.backend.asarray(2.0 * self.softened)
        self._release = creep.field(change[:, 0, 1] / lost[:k])
        self._gain = creep.field(change[:, 0, 1])
        self._filling = creep.field(change[:, 1, 0])
        self._keeping = creep.field(1.0 + change[:, 1, 1])
        self._share = creep.field(2.0 * creep.mu[:k] * mean[:, 1, 0])

    def start(self, strain: Any) -> Any:
        """State right after the deviatoric strain (n_visco, 4, 5, lane)."""
        creep = self._creep
        stress = creep.field(2.0 * creep.mu) * strain
        if creep.n_kelvin == 0:
            return stress
        xp = creep.backend.xp
        return xp.concatenate([stress, xp.zeros_like(stress[: creep.n_kelvin])])

    def load(self, state: Any) -> Any:
        """Nodal forces that the next increment has to balance."""
        creep = self._creep
        k, n = creep.n_kelvin, len(creep.which)
        stress = state
        if k:
            stress = state[:n].copy()
            stress[:k] -= self._release * state[n:]
        return creep.divergence(self._lost, stress)

    def advance(self, state: Any, strain: Any) -> None:
        """Move a state by a step in which the strain grows by ``strain``."""
        creep = self._creep
        k, n = creep.n_kelvin, len(creep.which)
        if k:
            before = state[:k].copy()
            gain = self._gain * state[n:]
            state[n:] *= self._keeping
            state[n:] += self._filling * before
            state[n:] += self._share * strain[:k]
        state[:n] *= self._decay[:, None, None, None]
        state[:n] += self._twice[:, None, None, None] * strain
        if k:
            state[:k] += gain

    def follow(self, state: Any, increment: Any) -> None:
        """Move a state by a step with the displacement's increment."""
        creep = self._creep
        if creep.n_kelvin:
            self.advance(state, creep.strain(increment))
            return
        creep.backend.blend_strain(
            creep.tets, increment, self._decay, state, self._twice, state
        )
