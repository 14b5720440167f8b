"""The inversion from problem to solution."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg

from afterslip_solver.inversion.choice import (
    CrossValidation,
    check_by_folds,
    cross_validate,
)
from afterslip_solver.inversion.convex import ConvexResult, minimise
from afterslip_solver.inversion.earths import with_earths
from afterslip_solver.inversion.normal import (
    Normal,
    normal_equations,
    quadratics,
    roughness_of,
    together,
)
from afterslip_solver.inversion.posterior import (
    Posterior,
    draw_posterior,
    medians,
    reweigh,
)
from afterslip_solver.inversion.problem import InversionError, InversionProblem
from afterslip_solver.inversion.settings import InversionSettings
from afterslip_solver.inversion.solution import (
    Fit,
    InversionSolution,
    fit_of,
    magnitude_of,
    moment_of,
)
from afterslip_solver.model import Bool, Float

UNRESOLVED = 0.05  # diagonal of the resolution below which the prior speaks


def invert(
    problem: InversionProblem,
    settings: InversionSettings | None = None,
    report: Callable[[int, float], None] | None = None,
) -> InversionSolution:
    """Estimate slip.

    Parameters
    ----------
    problem : observations, Green's functions and grid.
    settings : weights or how to choose them.
    report : called now and then with the number of draws or trials so far and the
        misfit or the score.

    Returns
    -------
    InversionSolution
        Its outcome says whether the convex solver converged.

    Raises
    ------
    InversionError
        Where the problem or the settings cannot be used; the message says why.
    """
    settings = settings or InversionSettings()
    problem.check()
    settings.check(len(np.unique(problem.station)))
    roughness = roughness_of(problem, settings.regulariser)
    normal = normal_equations(problem, roughness)
    choice = _choose(problem, normal, settings, report)
    found = minimise(
        choice.normal.with_roughness(choice.smoothness, roughness),
        choice.normal.right,
        choice.normal.l1(choice.sparsity),
        *normal.bounds,
        settings.max_iterations,
    )
    return _describe(choice, found)


@dataclass(frozen=True, slots=True)
class _Choice:
    """The problem with its errors as estimated, and the weights that were chosen."""

    problem: InversionProblem
    normal: Normal
    smoothness: float
    sparsity: float
    variance: Float
    table: CrossValidation | None
    posterior: Posterior | None


def _choose(
    problem: InversionProblem,
    normal: Normal,
    settings: InversionSettings,
    report: Callable[[int, float], None] | None,
) -> _Choice:
    """Choose by evidence, or by folds; draw the posterior either way."""
    if not settings.by_evidence:
        return _choose_by_folds(problem, normal, settings, report)
    posterior = draw_posterior(problem, normal, settings, None, report)
    if posterior is None:
        raise InversionError(
            "data and prior leave some slip undetermined: bury an edge of the fault, "
            "or give smoothness a number"
        )
    variance, smoothness = medians(posterior)
    problem, normal = reweigh(problem, normal, variance)
    problem, normal = _in_the_middle(problem, normal, posterior)
    table = None
    if settings.folds:
        table = check_by_folds(problem, settings, normal, smoothness, report)
    return _Choice(problem, normal, smoothness, 0.0, variance, table, posterior)


def _in_the_middle(
    problem: InversionProblem, normal: Normal, posterior: Posterior | None
) -> tuple[InversionProblem, Normal]:
    """Where the earth is uncertain: the middle one, the others as errors of data."""
    if not problem.changes.size or posterior is None:
        return problem, normal
    changed = with_earths(problem, posterior.slip.mean(axis=0))
    return changed, normal_equations(changed, normal.roughness)


def _choose_by_folds(
    problem: InversionProblem,
    normal: Normal,
    settings: InversionSettings,
    report: Callable[[int, float], None] | None,
) -> _Choice:
    """Weights by cross-validation, or as given, with the errors as stated.

    A common factor of the errors then multiplies the weights, and leaves slip as it is.
    """
    table = None
    if settings.folds:
        table = cross_validate(problem, settings, normal, report)
        smoothness = float(table.smoothness[table.chosen])
        sparsity = float(table.sparsity[table.chosen])
    else:
        # InversionSettings.check has refused "auto" without folds
        smoothness, sparsity = float(settings.smoothness), float(settings.sparsity)
    posterior = None
    # slip under a sum of absolute values is not Gaussian between bounds
    if settings.draws and sparsity == 0.0:
        posterior = draw_posterior(problem, normal, settings, smoothness, report)
        problem, normal = _in_the_middle(problem, normal, posterior)
    stated = np.ones(len(problem.free_variances))
    return _Choice(problem, normal, smoothness, sparsity, stated, table, posterior)


def _describe(choice: _Choice, found: ConvexResult) -> InversionSolution:
    problem, normal, table = choice.problem, choice.normal, choice.table
    n = normal.n_par
    slip = problem.slip_of(found.value[:n])
    predicted = problem.predicted(found.value)
    residual = problem.data - predicted
    inverse = _inverse(normal.with_roughness(choice.smoothness, normal.roughness))
    covariance = problem.slip_of(problem.slip_of(inverse[:n, :n]).T)
    known_of, own = _information(problem, normal)
    resolution = problem.slip_of(inverse[:n] @ known_of)
    power = sum(group.power for group in normal.groups)
    moment = moment_of(problem, slip)
    with np.errstate(divide="ignore"):
        detectable = 1.0 / np.sqrt(own)
    largest = float(np.abs(slip).max())
    return InversionSolution(
        outcome="converged" if found.converged else "not_converged",
        advice=_advice(found, table),
        slip=slip,
        nuisance=found.value[n:],
        predicted=predicted,
        residual=residual,
        smoothness=choice.smoothness,
        sparsity=choice.sparsity,
        variance=choice.variance,
        posterior=choice.posterior,
        optimality_gap=found.gap / max(power, 1e-300),
        cross_validation=table,
        fit=fit_of(problem.data, residual, problem.deviation),
        fit_by_kind=_fit_by_kind(problem, residual),
        resolution=resolution,
        covariance=covariance,
        moment=moment,
        magnitude=magnitude_of(moment),
        detectable_slip=detectable,
        near_bound=_near_bound(found.value[:n], inverse, normal.bounds),
        unseen=(detectable > largest) | (np.diag(resolution) < UNRESOLVED),
    )


def _near_bound(value: Float, covariance: Float, bounds: tuple[Float, Float]) -> Bool:
    """(n,) bool, which coefficients a standard deviation would take to a bound."""
    n = len(value)
    width = np.sqrt(np.diag(covariance)[:n])
    lower, upper = bounds[0][:n], bounds[1][:n]
    return np.asarray((value - lower < width) | (upper - value < width))


def _information(problem: InversionProblem, normal: Normal) -> tuple[Float, Float]:
    """Sum up what is known of unknowns per slip of sources.

    Returns
    -------
    (n, n_par) float64, what all that is known says of each unknown per slip of each
    source; (n_par,) float64, what the data alone say of a source's slip.
    """
    n_par = problem.G.shape[1]
    if problem.basis.size:
        every = together(quadratics(replace(problem, basis=np.zeros((0, 0))))).matrix
    else:
        every = together(normal.groups).matrix
    own = np.diag(every)[:n_par].copy()
    known_of = every[:, :n_par]
    for known in problem.known:
        known_of[:n_par] += np.outer(known.row, known.row) / known.sigma**2
    if problem.basis.size:
        known_of = np.vstack(
            (problem.on_coefficients(known_of[:n_par]), known_of[n_par:])
        )
    return known_of, own


def _fit_by_kind(problem: InversionProblem, residual: Float) -> dict[str, Fit]:
    fits, deviation = {}, problem.deviation
    for kind in np.unique(problem.kind):
        rows = problem.kind == kind
        fits[str(kind)] = fit_of(problem.data[rows], residual[rows], deviation[rows])
    return fits


def _inverse(quadratic: Float) -> Float:
    """Inverse of the precision; of its resolved part where nothing fixes the rest."""
    try:
        factor = scipy.linalg.cho_factor(quadratic)
    except scipy.linalg.LinAlgError:
        return np.asarray(np.linalg.pinv(quadratic, hermitian=True))
    return np.asarray(scipy.linalg.cho_solve(factor, np.eye(len(quadratic))))


def _advice(found: ConvexResult, table: CrossValidation | None) -> str:
    if not found.converged:
        return (
            f"the convex solver stopped with {found.status!r} after "
            f"{found.iterations} iterations: raise max_iterations, or check that the "
            "Green's functions and sigmas have sensible sizes"
        )
    if table is not None and table.failures:
        return (
            f"{table.failures} problems of the cross-validation did not converge and "
            "were counted as unusable weights"
        )
    return ""
