"""Normal equations of a choice of rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from afterslip_solver.inversion.problem import InversionProblem
from afterslip_solver.model import Bool, Float

# An offset that no row of a fold determines must come out as zero; this much of
# the mean diagonal decides nothing else.
NUISANCE_DAMPING = 1e-10


@dataclass(frozen=True, slots=True)
class Normal:
    """Weighted normal equations; sources first, then nuisance unknowns.

    Attributes
    ----------
    matrix : (n, n) float64, G' W G.
    right : (n,) float64, G' W d.
    roughness : (n_par, n_par) float64, L.
    sign : (n_par,) int64.
    n_nuisance : number of nuisance unknowns.
    """

    matrix: Float
    right: Float
    roughness: Float
    sign: Float
    n_nuisance: int

    @property
    def n_par(self) -> int:
        """Number of source coefficients."""
        return len(self.roughness)

    @property
    def smoothness_scale(self) -> float:
        """Ratio of traces, the lambda at which data and roughness weigh alike."""
        n = self.n_par
        trace = float(np.trace(self.matrix[:n, :n]))
        return max(trace, 1e-300) / float(np.trace(self.roughness))

    @property
    def sparsity_scale(self) -> float:
        """Smallest mu for which all coefficients are zero, whatever lambda."""
        n = self.n_par
        right = self.right[:n]
        if self.n_nuisance:
            corner = self.matrix[n:, n:]
            fitted = np.linalg.solve(corner, self.right[n:])
            right = right - self.matrix[:n, n:] @ fitted
        pull = np.where(self.sign == 0, np.abs(right), right * self.sign)
        return max(2.0 * float(pull.max(initial=0.0)), 1e-300)

    def with_roughness(self, smoothness: float, L: Float) -> Float:
        """(n, n) matrix of the quadratic part, lambda L added to the sources."""
        total = self.matrix.copy()
        total[: self.n_par, : self.n_par] += smoothness * L
        return total

    def l1(self, sparsity: float) -> Float:
        """(n,) weights of the absolute values; none for nuisance unknowns."""
        weights = np.zeros(len(self.right))
        weights[: self.n_par] = sparsity
        return weights


def normal_equations(
    problem: InversionProblem, roughness: Float, rows: Bool | None = None
) -> Normal:
    """Sum up the given rows (all where None), made independent by their covariance."""
    design, data = problem.whitened(rows)
    matrix = design.T @ design
    n_par = problem.G.shape[1]
    extra = np.arange(n_par, len(matrix))
    if len(extra):
        mean = float(np.trace(matrix)) / len(matrix)
        matrix[extra, extra] += NUISANCE_DAMPING * max(mean, 1e-300)
    return Normal(
        matrix=matrix,
        right=design.T @ data,
        roughness=roughness,
        sign=problem.sign.astype(np.float64),
        n_nuisance=len(extra),
    )
