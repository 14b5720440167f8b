"""What an inversion says, and how well it knows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from afterslip_solver.inversion.choice import CrossValidation
from afterslip_solver.inversion.posterior import Posterior, medians
from afterslip_solver.inversion.problem import InversionProblem
from afterslip_solver.model import Bool, Float

LEAST_RIGIDITY = 0.1  # of the assumed one, where a Gaussian would go below


@dataclass(frozen=True, slots=True)
class Fit:
    """How a group of rows is fitted.

    Attributes
    ----------
    count : number of rows.
    rms : m, root of the mean squared residual.
    chi_square : mean squared residual in units of sigma.
    variance_reduction : 1 - sum r^2 / sum d^2.
    weighted_variance_reduction : the same with rows divided by sigma.
    """

    count: int
    rms: float
    chi_square: float
    variance_reduction: float
    weighted_variance_reduction: float


@dataclass(frozen=True, slots=True)
class InversionSolution:
    """Slip coefficients and their diagnostics.

    Attributes
    ----------
    outcome : "converged" or "not_converged".
    advice : what to try next, empty when converged.
    slip : (n_par,) float64, m, coefficient of each unit source.
    nuisance : (n_nuisance,) float64.
    predicted, residual : (n_obs,) float64, m; residual is data minus predicted.
    smoothness, sparsity : lambda and mu that were used.
    variance : (n_dataset,) float64, factors by which the stated variances of the data
        sets were multiplied; fit, weights and resolution refer to the product.
    posterior : draws with signs, smoothness and variances; None with sparsity, or
        where nothing determines some slip.
    optimality_gap : by how much the objective may lie above its minimum, relative to
        the data's weighted sum of squares; bounded by duality, not estimated.
    cross_validation : every trial, None without folds.
    fit : of all rows. fit_by_kind : of the rows of each label.
    resolution : (n_par, n_par) float64, what a unit of true slip in one source (its
        column) becomes in the estimate, without sparsity and sign constraint.
    covariance : (n_par, n_par) float64, m2, posterior of the Gaussian part: data
        with their sigma, prior precision lambda L; nuisance marginalised.
    moment : N m, rigidity x area x slip summed as a vector over each fault, then
        lengths. magnitude : 2/3 (log10 moment - 9.1); nan without slip.
    detectable_slip : (n_par,) float64, m, slip of the source alone whose signal in
        all data together equals the noise; inf where no datum sees it.
    unseen : (n_par,) bool, detectable_slip exceeds the largest slip found, or the
        diagonal of the resolution is below 0.05: the value comes from the prior.
    near_bound : (n_coefficient,) bool, the coefficient lies less than one standard
        deviation, that of the Gaussian part, from a bound: draws can only lie on
        one side of such a value.
    """

    outcome: Literal["converged", "not_converged"]
    advice: str
    slip: Float
    nuisance: Float
    predicted: Float
    residual: Float
    smoothness: float
    sparsity: float
    variance: Float
    posterior: Posterior | None
    optimality_gap: float
    cross_validation: CrossValidation | None
    fit: Fit
    fit_by_kind: dict[str, Fit]
    resolution: Float
    covariance: Float
    moment: float
    magnitude: float
    detectable_slip: Float
    unseen: Bool
    near_bound: Bool

    @property
    def estimated_variance(self) -> Float:
        """(n_dataset,) float64, factors of the stated variances that the draws found.

        Their medians; ``variance`` where nothing was drawn. The two differ where the
        smoothness was not chosen by evidence: its weight is of errors as stated.
        """
        return self.variance if self.posterior is None else medians(self.posterior)[0]


def fit_of(data: Float, residual: Float, sigma: Float) -> Fit:
    """Fit of some rows; a variance reduction is nan where the data are all zero."""
    weighted = float(((data / sigma) ** 2).sum())
    plain = float((data**2).sum())
    chi = float(((residual / sigma) ** 2).sum())
    return Fit(
        count=len(data),
        rms=float(np.sqrt(np.mean(residual**2))),
        chi_square=chi / len(data),
        variance_reduction=_reduction(float((residual**2).sum()), plain),
        weighted_variance_reduction=_reduction(chi, weighted),
    )


def _reduction(left: float, total: float) -> float:
    return 1.0 - left / total if total > 0 else float("nan")


def moment_parts(
    problem: InversionProblem, slip: Float, earth: Float | None = None
) -> Float:
    """Part of each source in the scalar moment, in several slips.

    Moments of the sources of a fault add as vectors along strike and up dip, and the
    lengths of the faults' sums add. Within a fault the moment is then linear in slip:
    errors that go back and forth cancel, where a sum of the patches' own lengths would
    count them all and grow with the noise.

    Parameters
    ----------
    slip : (n, n_par) float64, m.
    earth : (n, n_change) float64, of each slip, in standard deviations, which change
        the rigidity; None: that of the problem.

    Returns
    -------
    (n, n_par) float64, N m, each source's moment along the sum of its fault, negative
    where it slips against it; the sum of a row is the scalar moment.
    """
    return moment_weights(problem, slip, earth) * slip


def moment_weights(
    problem: InversionProblem, slip: Float, earth: Float | None = None
) -> Float:
    """(n, n_par) float64, N, moment of a metre of each source along its fault's sum.

    Parameters
    ----------
    slip, earth : as for `moment_parts`.
    """
    per_metre = np.broadcast_to(rigidity_in(problem, earth) * problem.area, slip.shape)
    moment = per_metre * slip
    parts = np.empty_like(moment)
    component = problem.grid[:, 1]
    for fault in np.unique(problem.grid[:, 0]):
        mine = np.flatnonzero(problem.grid[:, 0] == fault)
        along = component[mine] == np.arange(2)[:, None]
        total = moment[:, mine] @ along.T
        length = np.hypot(*total.T)[:, None]
        direction = total / np.where(length > 0, length, 1.0)
        parts[:, mine] = per_metre[:, mine] * direction[:, component[mine]]
    return parts


def rigidity_in(problem: InversionProblem, earth: Float | None) -> Float:
    """(n_par,) or (n, n_par) float64, Pa, above zero, of each source in each earth."""
    if earth is None or not problem.rigidity_changes.size:
        return problem.rigidity
    changed = problem.rigidity + earth @ problem.rigidity_changes
    return np.asarray(np.maximum(changed, LEAST_RIGIDITY * problem.rigidity))


def moment_of(problem: InversionProblem, slip: Float) -> float:
    """Scalar moment of a slip (n_par,), N m, as `moment_parts` sums it."""
    return float(moment_parts(problem, slip[None, :]).sum())


def magnitude_of(moment: float) -> float:
    """Moment magnitude (Hanks & Kanamori 1979, IASPEI constant); nan for zero."""
    return float(2.0 / 3.0 * (np.log10(moment) - 9.1)) if moment > 0 else float("nan")
