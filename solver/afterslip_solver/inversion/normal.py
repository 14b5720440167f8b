"""Normal equations of a choice of rows, summed up some rows at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg

from afterslip_solver.inversion.problem import InversionProblem
from afterslip_solver.inversion.regularisers import Regulariser
from afterslip_solver.model import Bool, Float, Int

# An offset that no row of a fold determines must come out as zero; this much of
# the mean diagonal decides nothing else.
NUISANCE_DAMPING = 1e-10
VALUES_AT_ONCE = 2**25  # of the design, made independent: 256 MB


@dataclass(frozen=True, slots=True)
class Quadratic:
    """What least squares need to know of some rows.

    Attributes
    ----------
    matrix : (n, n) float64, G' W G of all unknowns.
    right : (n,) float64, G' W d.
    power : d' W d.
    count : number of rows, less where data far off are cut.
    """

    matrix: Float
    right: Float
    power: float
    count: float

    def misfit(self, value: Float) -> float:
        """Sum of squared whitened residuals, never below zero."""
        found = self.power - 2.0 * value @ self.right + value @ self.matrix @ value
        return max(float(found), 1e-12 * self.power)


@dataclass(frozen=True, slots=True)
class Normal:
    """Weighted normal equations; coefficients first, then nuisance unknowns.

    Attributes
    ----------
    matrix : (n, n) float64, G' W G, with the known sums and a damping of offsets.
    right : (n,) float64, G' W d.
    roughness : (n_par, n_par) float64, L.
    bounds : (n,) float64 each, m, lower and upper, infinite where there is none.
    n_nuisance : number of nuisance unknowns.
    groups : sums of squares of the data, in one or by data set.
    """

    matrix: Float
    right: Float
    roughness: Float
    bounds: tuple[Float, Float]
    n_nuisance: int
    groups: tuple[Quadratic, ...]

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


def independent_rows(
    problem: InversionProblem, rows: Bool | None = None
) -> Iterator[tuple[int, Float, Float]]:
    """Yield data set, design and data of rows made independent, some at a time.

    A large G needs no second copy in memory. Where only some rows are taken the
    covariance is that of these rows, so rows held out say nothing.

    Parameters
    ----------
    rows : (n_obs,) bool; None: all.

    Yields
    ------
    Index of the data set, (k, n) float64, (k,) float64; errors of variance one.
    """
    taken = np.ones(len(problem.data), dtype=bool) if rows is None else rows.copy()
    dataset = problem.dataset_of_row
    for block in problem.covariance:
        mine = taken[block.rows]
        chosen = block.rows[mine]
        if not len(chosen):
            continue
        factor = np.linalg.cholesky(block.matrix[np.ix_(mine, mine)])
        both = np.column_stack((problem.design_of(chosen), problem.data[chosen]))
        white = scipy.linalg.solve_triangular(factor, both, lower=True)
        taken[chosen] = False
        yield int(dataset[chosen[0]]), white[:, :-1], white[:, -1]
    at_once = max(1, VALUES_AT_ONCE // problem.n_unknown)
    for k in np.unique(dataset[taken]).tolist():
        index = np.flatnonzero(taken & (dataset == k))
        for first in range(0, len(index), at_once):
            part = index[first : first + at_once]
            sigma = problem.sigma[part]
            yield (
                k,
                problem.design_of(part) / sigma[:, None],
                problem.data[part] / sigma,
            )


def quadratics(
    problem: InversionProblem, rows: Bool | None = None
) -> tuple[Quadratic, ...]:
    """Sum up the given rows (all where None) by data set.

    Errors in common are unknowns beside slip that are N(0, 1) and integrate out: no
    matrix of data by data is needed. Rows that have some are one data set.
    """
    if problem.common.size:
        of_rows = np.zeros((len(problem.data), 0))
        beside = problem.nuisance if problem.nuisance.size else of_rows
        wide = replace(
            problem,
            nuisance=np.hstack((beside, problem.common.T)),
            common=np.zeros((0, 0)),
            dataset=np.zeros(0, dtype=np.int64),
            variance_free=np.array([False]),
        )
        (whole,) = quadratics(wide, rows)
        return (_integrated(whole, len(problem.common)),)
    taken = slice(None) if rows is None else rows
    n, sets = problem.n_unknown, len(problem.free_variances)
    matrix, right = [np.zeros((n, n)) for _ in range(sets)], np.zeros((sets, n))
    power = np.zeros(sets)
    for k, design, data in independent_rows(problem, rows):
        matrix[k] += design.T @ design
        right[k] += design.T @ data
        power[k] += data @ data
    count = np.bincount(problem.dataset_of_row[taken], problem.counts[taken], sets)
    return tuple(
        Quadratic(matrix[k], right[k], float(power[k]), float(count[k]))
        for k in range(sets)
    )


def _integrated(whole: Quadratic, k: int) -> Quadratic:
    """Return the sums once the last k unknowns, each N(0, 1), are integrated out.

    This is the inverse of a covariance with k outer products added (Woodbury).
    """
    n = len(whole.right) - k
    corner = whole.matrix[n:, n:] + np.eye(k)
    both = np.column_stack((whole.matrix[n:, :n], whole.right[n:]))
    factor = np.linalg.cholesky(corner)
    half = scipy.linalg.solve_triangular(factor, both, lower=True)
    of_data, half = half[:, n], half[:, :n]
    return Quadratic(
        whole.matrix[:n, :n] - half.T @ half,
        whole.right[:n] - half.T @ of_data,
        whole.power - float(of_data @ of_data),
        whole.count,
    )


def together(groups: Sequence[Quadratic], variance: Float | None = None) -> Quadratic:
    """Return the sum of groups, each divided by a factor of its variance."""
    factor = np.ones(len(groups)) if variance is None else 1.0 / variance
    matrix, right = np.zeros_like(groups[0].matrix), np.zeros_like(groups[0].right)
    power = 0.0
    for group, f in zip(groups, factor.tolist(), strict=True):
        matrix += f * group.matrix
        right += f * group.right
        power += f * group.power
    return Quadratic(matrix, right, power, sum(group.count for group in groups))


def normal_equations(
    problem: InversionProblem, roughness: Float, rows: Bool | None = None
) -> Normal:
    """Sum up the given rows (all where None), made independent by their covariance.

    Parameters
    ----------
    roughness : (n_par, n_par) float64, L of the coefficients.
    """
    return normal_of(problem, roughness, quadratics(problem, rows))


def normal_of(
    problem: InversionProblem, roughness: Float, groups: tuple[Quadratic, ...]
) -> Normal:
    """Return the normal equations of rows that are summed up, with the known sums."""
    whole = together(groups)
    matrix, right = whole.matrix, whole.right
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
        groups=groups,
    )


def known_rows(problem: InversionProblem) -> list[tuple[Float, float]]:
    """Return row (n_par,) and value of each known sum, over its error."""
    return [
        (problem.on_coefficients(known.row) / known.sigma, known.value / known.sigma)
        for known in problem.known
    ]


def roughness_of(problem: InversionProblem, regulariser: Regulariser) -> Float:
    """(n, n) float64, L of the coefficients."""
    of_slip = regulariser.precision(problem.sources)
    return problem.on_coefficients(problem.on_coefficients(of_slip).T)


def cuts_blocks(problem: InversionProblem, fold: Int) -> bool:
    """Whether rows with correlated errors lie in different folds."""
    return problem.common.size > 0 or any(
        np.ptp(fold[block.rows]) > 0 for block in problem.covariance
    )
