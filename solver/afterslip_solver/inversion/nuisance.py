"""Unknowns that are in one data set alone, integrated out, and drawn given slip.

Offsets, rates and ramps b of a data set have a flat prior. With the variance v of its
errors, d = G a + B b + e and e ~ N(0, v W^-1), the integral over b of the likelihood is
that of slip alone in the data without what B explains,

    v^(-(N - q)/2) exp(-|d - G a|²_P / 2 v),    P = W - W B (B' W B)^-1 B' W,

for N rows and q such unknowns, up to a constant; and b given slip is Gaussian with
covariance v (B' W B)^-1 (Gelman et al. 2013, Bayesian Data Analysis, section 14.2).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg

from afterslip_solver.inversion.hierarchy import Chain, Hierarchy
from afterslip_solver.inversion.normal import Quadratic
from afterslip_solver.model import Float, Int


@dataclass(frozen=True, slots=True)
class _OfOneGroup:
    """What is needed to draw the unknowns of one data set.

    Attributes
    ----------
    group : position of the data set. own : (q,) positions of its unknowns.
    factor : (q, q) float64, lower Cholesky factor of B' W B.
    mean : (q,) float64, without slip. per_slip : (q, n_par) float64, per slip.
    """

    group: int
    own: Int
    factor: Float
    mean: Float
    per_slip: Float


class Nuisance:
    """All unknowns beside slip of a posterior, each in one data set.

    Parameters
    ----------
    model : has unknowns beside slip, each in the rows of one group.

    Raises
    ------
    scipy.linalg.LinAlgError
        Where data leave such an unknown undetermined.
    """

    def __init__(self, model: Hierarchy) -> None:
        self._n = len(model.precision)
        self._parts = []
        reduced = []
        for k, group in enumerate(model.groups):
            own = self._n + np.flatnonzero(np.diag(group.matrix)[self._n :] > 0.0)
            if len(own):
                self._parts.append(self._of(k, group, own))
            reduced.append(self._without(group, own))
        self.model = replace(
            model,
            groups=tuple(reduced),
            lower=model.lower[: self._n],
            upper=model.upper[: self._n],
        )
        """The posterior of slip and scales."""

    def _of(self, k: int, group: Quadratic, own: Int) -> _OfOneGroup:
        factor = scipy.linalg.cholesky(group.matrix[np.ix_(own, own)], lower=True)
        both = np.column_stack((group.right[own], -group.matrix[own, : self._n]))
        solved = scipy.linalg.cho_solve((factor, True), both)
        return _OfOneGroup(k, own, factor, solved[:, 0], solved[:, 1:])

    def _without(self, group: Quadratic, own: Int) -> Quadratic:
        n = self._n
        if not len(own):
            return replace(group, matrix=group.matrix[:n, :n], right=group.right[:n])
        part = self._parts[-1]
        across = group.matrix[:n, own]
        matrix = group.matrix[:n, :n] + across @ part.per_slip
        return Quadratic(
            0.5 * (matrix + matrix.T),
            group.right[:n] - across @ part.mean,
            group.power - float(group.right[own] @ part.mean),
            group.count - len(own),
        )

    def drawn(
        self, chain: Chain, inside: Float, rng: np.random.Generator
    ) -> tuple[Chain, Float]:
        """Return draws with these unknowns, without bounds and within them.

        Slip that is taken to its bounds takes them along, to the least misfit.

        Parameters
        ----------
        chain : of slip and scales. inside : (n_draw, n_par) float64, within bounds.
        """
        draws = len(inside)
        last = max(int(part.own.max()) for part in self._parts)
        free = np.zeros((draws, last + 1))
        free[:, : self._n] = chain.value
        within = np.zeros_like(free)
        within[:, : self._n] = inside
        for part in self._parts:
            noise = rng.standard_normal((len(part.own), draws))
            away = scipy.linalg.solve_triangular(
                part.factor, noise, trans=1, lower=True
            )
            away = away.T * np.sqrt(chain.variance[:, part.group])[:, None]
            free[:, part.own] = part.mean + chain.value @ part.per_slip.T + away
            within[:, part.own] = part.mean + inside @ part.per_slip.T + away
        return replace(chain, value=free), within


def nuisance_of(model: Hierarchy) -> Nuisance | None:
    """Return the unknowns beside slip; None where there are none of one group each.

    Raises
    ------
    scipy.linalg.LinAlgError
        Where data leave such an unknown undetermined.
    """
    n = len(model.precision)
    if len(model.lower) == n or model.earths:
        return None
    used = [np.diag(group.matrix)[n:] > 0.0 for group in model.groups]
    return Nuisance(model) if (np.sum(used, axis=0) == 1).all() else None
