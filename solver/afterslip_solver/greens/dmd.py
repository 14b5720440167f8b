"""The data-driven predictor of Murakami et al. (2023), sections 3.1 and 4.1.

An increment is its extrapolation from the last two plus a remainder x. In every
subdomain the newest remainders X = [x(i-2), x(i-3), ...] and their successors
Y = [x(i-1), x(i-2), ...] tell how x(i-1) goes on: x(i) = Y a, where X a comes closest
to x(i-1). Lengths are measured behind a random matrix of few rows, and a comes from
modified Gram-Schmidt, P = Q X U with orthonormal P: a = U P^T Q x(i-1), equation (7).
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from afterslip_solver.greens.checkpoint import State, pack, unpack
from afterslip_solver.greens.subdomains import UNKNOWNS, random_rows, subdomains
from afterslip_solver.operators import Elasticity

# a column this small against what it was before orthogonalisation is rounding
_DEPENDENT = 1e-9


class DynamicModes:
    """Predict remainders per subdomain from those of past steps; see `Predictor`.

    Parameters
    ----------
    operator : K^v, for its backend and mesh.
    steps : s, remainders used at most. rows : m of the random matrix.
    unknowns : of a subdomain.
    """

    def __init__(
        self,
        operator: Elasticity,
        steps: int = 16,
        rows: int = 96,
        unknowns: int = UNKNOWNS,
    ) -> None:
        self._operator = operator
        self._backend = operator.backend
        self._steps = steps
        self._rows = rows
        self._unknowns = unknowns
        self._increments: list[Any] = []
        # newest remainders in a ring, and all their compressions, newest first
        self._past = self._backend.xp.zeros((0, *operator.shape))
        self._short: list[Any] = []
        self._learnt = 0

    @cached_property
    def _parts(self) -> tuple[Any, Any, Any, Any]:
        """Members, their mask, each node's part, and the random matrix."""
        found = subdomains(self._operator.space, self._unknowns)
        random = random_rows(self._rows, len(found.members))
        tables = found.members, found.inside[:, :, None], found.part, random
        members, inside, part, matrix = map(self._backend.asarray, tables)
        return members, inside, part, matrix

    @property
    def bytes(self) -> int:
        """Memory of what was learnt and of the tables."""
        parts = self._parts if self._learnt else ()
        arrays = [self._past, *self._increments, *self._short, *parts]
        return int(sum(array.nbytes for array in arrays))

    def guess(self, f: Any) -> Any:
        """See `Predictor`."""
        del f
        if len(self._increments) < 2:
            return self._increments[-1] if self._increments else None
        out = self._trend()
        if len(self._short) > 1:
            weights = self.weights()
            ring = self._backend.xp.zeros((len(self._past), *weights.shape[1:]))
            for age, weight in enumerate(weights[::-1]):
                ring[(self._learnt - 1 - age) % len(self._past)] = weight
            self._backend.blend(self._past, self._parts[2], ring, out)
        return out

    def learn(self, increment: Any) -> None:
        """See `Predictor`."""
        if len(self._increments) == 2:
            self._remember(increment - self._trend())
        self._increments = [*self._increments[-1:], increment]

    def _trend(self) -> Any:
        """2 du(i-1) - du(i-2), equation (5) for increments."""
        out = 2.0 * self._increments[-1]
        out -= self._increments[-2]
        return out

    def _ring(self) -> Any:
        return self._backend.xp.zeros((self._steps, *self._operator.shape))

    def _remember(self, x: Any) -> None:
        if self._learnt == 0:
            self._past = self._ring()
        self._past[self._learnt % self._steps] = x
        self._short = [self.compressed(x), *self._short][: self._steps + 1]
        self._learnt += 1

    def compressed(self, x: Any) -> Any:
        """Q x, (m, n_part, lane)."""
        xp = self._backend.xp
        members, inside, _, random = self._parts
        n_part, lanes = members.shape[1], x.shape[2]
        out = xp.zeros((self._rows, n_part * lanes))
        for component in range(3):
            values = x[:, component][members]
            values *= inside
            out += random[:, component] @ values.reshape(len(members), -1)
        return out.reshape(self._rows, n_part, lanes)

    def weights(self) -> Any:
        """Factors a of the remainders, oldest first, (n_pair, n_part, lane).

        Gram-Schmidt begins with the oldest, in which what decays fast is largest.
        """
        xp = self._backend.xp
        target, columns = self._short[0], xp.stack(self._short[:0:-1])
        n = len(columns)
        before = xp.sqrt((columns**2).sum(axis=1))
        shape = (n, n, *before.shape[1:])
        u = xp.zeros(shape)
        u[xp.arange(n), xp.arange(n)] = 1.0
        out = xp.zeros(before.shape)
        for j in range(n):
            norm = xp.sqrt((columns[j] ** 2).sum(axis=0))
            keep = norm > _DEPENDENT * before[j]
            factor = xp.where(keep, 1.0 / xp.where(keep, norm, 1.0), 0.0)
            p = columns[j] * factor
            u[j] *= factor
            part = (columns[j + 1 :] * p).sum(axis=1)
            columns[j + 1 :] -= part[:, None] * p
            # u[j] is the column of U that makes p from the columns of X
            u[j + 1 :] -= part[:, None] * u[j]
            out += u[j] * (p * target).sum(axis=0)
        return out

    def packed(self) -> State:
        """See `Predictor`."""
        backend = self._backend
        ring = list(self._past[: self._learnt])
        return {
            **pack(backend, "predictor.increments", self._increments),
            **pack(backend, "predictor.remainders", ring),
            **pack(backend, "predictor.compressed", self._short),
            "predictor.learnt": np.array(self._learnt),
        }

    def restore(self, state: State) -> None:
        """See `Predictor`."""
        backend = self._backend
        self._increments = unpack(backend, "predictor.increments", state)
        self._short = unpack(backend, "predictor.compressed", state)
        self._learnt = int(state["predictor.learnt"])
        # the same places in the ring give the same bits
        self._past = self._ring()
        for place, x in enumerate(unpack(backend, "predictor.remainders", state)):
            self._past[place] = x
