"""One exponential step of the stress at a point, exact for a constant strain rate.

Maxwell: with x = dt mu/eta the deviatoric stress becomes s e^-x + 2 mu^v dev B du,
mu^v = mu (1 - e^-x)/x, so that balance asks for K^v du = int B^T (1 - e^-x) s.

With branches that have springs, the stress s and the springs' shares k_j = 2 mu_j e_j
of it obey (s, k)' = M (s, k) + (2 mu d', 0): s' = -sum_i a_i s + sum_j a_j k_j and
k_j' = c_j (s - k_j) with a_i = mu/eta_i and c_j = mu_j/eta_j. With E = exp(dt M) and
F = phi_1(dt M) they become E (s, k) + F (2 mu dev B du, 0); mu^v = mu F_11 and the load
is s - (E (s, k))_1.
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


def chain_step(
    own: Float, creep: Float, recovery: Float, step: float
) -> tuple[Float, Float]:
    """E - 1 and F of the module's description.

    M is similar to a symmetric matrix, whose eigenvalues are not positive.

    Parameters
    ----------
    own : (n,) 1/s, sum of a_i of the branches without a spring.
    creep, recovery : (n, m) 1/s, a_j and c_j of the others; 0 where absent.
    step : s.

    Returns
    -------
    (n, 1 + m, 1 + m) float64, (n, 1 + m, 1 + m) float64.
    """
    n, m = creep.shape
    coupling, linked = np.sqrt(creep * recovery), recovery > 0.0
    matrix = np.zeros((n, 1 + m, 1 + m))
    matrix[:, 0, 0] = own
    for j in range(m):
        matrix[:, 0, 0] += creep[:, j]
        matrix[:, 1 + j, 1 + j] = recovery[:, j]
    matrix[:, 0, 1:] = matrix[:, 1:, 0] = -coupling
    rates, vectors = np.linalg.eigh(matrix)
    x = step * np.maximum(rates, 0.0)
    size = np.ones((n, 1 + m))
    ratio = np.where(linked, creep, 1.0) / np.where(linked, recovery, 1.0)
    size[:, 1:] = np.sqrt(ratio)
    scale = size[:, None, :] / size[:, :, None]
    change, mean = (
        scale * np.einsum("nij,nj,nkj->nik", vectors, values, vectors)
        for values in (np.expm1(-x), _mean_decay(x))
    )
    return change, mean


class _Spring:
    """What a step does to the share of one branch's springs; rows as in states.

    Attributes
    ----------
    rows : of a state. count : elements, the first ones.
    release, gain : of the stress. filling, keeping, share : of the spring's share.
    """

    def __init__(
        self, creep: Creep, k: int, count: int, rows: slice, change: Float, mean: Float
    ) -> None:
        self.count, self.rows = count, rows
        change, mean = change[:count], mean[:count]
        self.release = creep.field(change[:, 0, k] / -change[:, 0, 0])
        self.gain = creep.field(change[:, 0, k])
        self.filling = creep.field(change[:, k, 0])
        self.keeping = creep.field(1.0 + change[:, k, k])
        self.share = creep.field(2.0 * creep.mu[:count] * mean[:, k, 0])


class ExponentialStep:
    """Stresses at the points of a model, moved by one step length.

    A state is the deviatoric stress of all viscoelastic elements, followed by the
    shares of it in the springs of each branch that has any; Pa.

    Parameters
    ----------
    creep : the points. step : s.

    Attributes
    ----------
    softened : (n_visco,) Pa, mu^v, on the host.
    """

    def __init__(self, creep: Creep, step: float) -> None:
        self._creep = creep
        own = np.zeros_like(creep.rate)
        sprung = [branch for branch in creep.branches if branch.sprung]
        for branch in creep.branches:
            if not branch.sprung:
                own[: branch.count] += branch.rate
        x = step * own
        lost, decay = -np.expm1(-x), np.exp(-x)
        self.softened = softened_modulus(creep.mu, own, step)
        self._springs: list[_Spring] = []
        self._between: dict[tuple[int, int], Any] = {}
        if sprung:
            n = sprung[0].count
            rates = np.zeros((2, n, len(sprung)))
            for j, branch in enumerate(sprung):
                rates[0, : branch.count, j] = branch.rate
                rates[1, : branch.count, j] = branch.recovery
            change, mean = chain_step(own[:n], rates[0], rates[1], step)
            lost[:n], decay[:n] = -change[:, 0, 0], 1.0 + change[:, 0, 0]
            self.softened[:n] = creep.mu[:n] * mean[:, 0, 0]
            start = len(creep.which)
            for j, branch in enumerate(sprung):
                rows = slice(start, start + branch.count)
                spring = _Spring(creep, 1 + j, branch.count, rows, change, mean)
                self._springs.append(spring)
                start = rows.stop
            for i, one in enumerate(sprung):
                for j, other in enumerate(sprung):
                    both = min(one.count, other.count)
                    if i != j:
                        part = creep.field(change[:both, 1 + i, 1 + j])
                        self._between[i, j] = part
        self._lost = creep.backend.asarray(lost)
        self._decay = creep.backend.asarray(decay)
        self._twice = creep.backend.asarray(2.0 * self.softened)

    def start(self, strain: Any) -> Any:
        """State right after the deviatoric strain (n_visco, 4, 5, lane)."""
        creep = self._creep
        stress = creep.field(2.0 * creep.mu) * strain
        if not self._springs:
            return stress
        xp = creep.backend.xp
        rows = sum(spring.count for spring in self._springs)
        return xp.concatenate([stress, xp.zeros((rows, *stress.shape[1:]))])

    def load(self, state: Any) -> Any:
        """Nodal forces that the next increment has to balance."""
        stress = state
        if self._springs:
            stress = state[: len(self._creep.which)].copy()
            for spring in self._springs:
                stress[: spring.count] -= spring.release * state[spring.rows]
        return self._creep.divergence(self._lost, stress)

    def advance(self, state: Any, strain: Any) -> None:
        """Move a state by a step in which the strain grows by ``strain``."""
        n, springs = len(self._creep.which), self._springs
        gains = [spring.gain * state[spring.rows] for spring in springs]
        shares = [state[s.rows].copy() for s in springs] if self._between else []
        if springs:
            before = state[: springs[0].count].copy()
        for i, spring in enumerate(springs):
            own = state[spring.rows]
            own *= spring.keeping
            own += spring.filling * before[: spring.count]
            for j, share in enumerate(shares):
                if j != i:
                    part = self._between[i, j]
                    own[: len(part)] += part * share[: len(part)]
            own += spring.share * strain[: spring.count]
        state[:n] *= self._decay[:, None, None, None]
        state[:n] += self._twice[:, None, None, None] * strain
        for spring, gain in zip(springs, gains, strict=True):
            state[: spring.count] += gain

    def follow(self, state: Any, increment: Any) -> None:
        """Move a state by a step with the displacement's increment."""
        creep = self._creep
        if self._springs:
            self.advance(state, creep.strain(increment))
            return
        creep.backend.blend_strain(
            creep.tets, increment, self._decay, state, self._twice, state
        )
