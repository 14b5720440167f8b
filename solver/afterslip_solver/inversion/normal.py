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
    """Weighted normal equations; coefficients first, then nuisance unknowns.

    Attributes
    ----------
    matrix : (n, n) float64, G' W G.
    right : (n,) float64, G' W d.
    roughness : (n_par, n_par) float64, L.
    bounds : (n,) float64 each, m, lower and upper, infinite where there is none.
    n_nuisance : number of nuisance unknowns.
    """

    matrix: Float
    right: Float
    roughness: Float
    bounds: tuple[Float, Float]
    n_nuisance: int

    @property
    def n_par(self) -> int:
        """Number of coefficients of slip."""
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
        lower, upper = (side[:n] for side in self.bounds)
        pull = np.where(lower >= 0, right, np.where(upper <= 0, -right, np.abs(right)))
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
    """Sum up the given rows (all where None), made independent by their covariance.

    Parameters
    ----------
    roughness : (n_par, n_par) float64, L of the coefficients.
    """
    design, data = problem.whitened(rows)
    matrix = design.T @ design
    right = design.T @ data
    n_par = len(roughness)
    extra = np.arange(n_par, len(matrix))
    if len(extra):
        mean = float(np.trace(matrix)) / len(matrix)
        matrix[extra, extra] += NUISANCE_DAMPING * max(mean, 1e-300)
    for row, value in known_rows(problem):
        matrix[:n_par, :n_par] += np.outer(row, row)
        right[:n_par] += row * value
    return Normal(
        matrix=matrix,
        right=right,
        roughness=roughness,
        bounds=problem.bounds,
        n_nuisance=len(extra),
    )


def known_rows(problem: InversionProblem) -> list[tuple[Float, float]]:
    """Return row (n_par,) and value of each known sum, over its error."""
    return [
        (problem.coefficients.T @ known.row / known.sigma, known.value / known.sigma)
        for known in problem.known
    ]
