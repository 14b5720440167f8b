"""The inversion from problem to solution."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.linalg

from afterslip_solver.inversion.choice import CrossValidation, cross_validate
from afterslip_solver.inversion.convex import ConvexResult, minimise
from afterslip_solver.inversion.normal import Normal, normal_equations
from afterslip_solver.inversion.problem import InversionProblem, InversionSettings
from afterslip_solver.inversion.solution import (
    Fit,
    InversionSolution,
    fit_of,
    magnitude_of,
    moment_of,
)
from afterslip_solver.model import Float

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
    report : called after each trial of the cross-validation with the number of
        trials so far and its score.

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
    table = cross_validate(problem, settings, report) if settings.folds else None
    smoothness, sparsity = _weights(settings, table)
    normal = normal_equations(problem, settings.regulariser.precision(problem.sources))
    quadratic = normal.with_roughness(smoothness, normal.roughness)
    sign = np.concatenate((problem.sign, np.zeros(normal.n_nuisance, dtype=np.int64)))
    found = minimise(
        quadratic, normal.right, normal.l1(sparsity), sign, settings.max_iterations
    )
    return _describe(problem, normal, quadratic, found, (smoothness, sparsity), table)


def _weights(
    settings: InversionSettings, table: CrossValidation | None
) -> tuple[float, float]:
    if table is not None:
        k = table.chosen
        return float(table.smoothness[k]), float(table.sparsity[k])
    # InversionSettings.check has refused "auto" without folds
    return float(settings.smoothness), float(settings.sparsity)


def _describe(
    problem: InversionProblem,
    normal: Normal,
    quadratic: Float,
    found: ConvexResult,
    weights: tuple[float, float],
    table: CrossValidation | None,
) -> InversionSolution:
    n = normal.n_par
    slip = found.value[:n]
    predicted = problem.design @ found.value
    residual = problem.data - predicted
    inverse = _inverse(quadratic)
    covariance = inverse[:n, :n]
    resolution = inverse[:n] @ normal.matrix[:, :n]
    patch, patch_moment = moment_of(problem, slip)
    moment = float(patch_moment.sum())
    with np.errstate(divide="ignore"):
        detectable = 1.0 / np.sqrt(np.diag(normal.matrix)[:n])
    largest = float(np.abs(slip).max())
    return InversionSolution(
        outcome="converged" if found.converged else "not_converged",
        advice=_advice(found, table),
        slip=slip,
        nuisance=found.value[n:],
        predicted=predicted,
        residual=residual,
        smoothness=weights[0],
        sparsity=weights[1],
        cross_validation=table,
        fit=fit_of(problem.data, residual, problem.sigma),
        fit_by_kind=_fit_by_kind(problem, residual),
        resolution=resolution,
        covariance=covariance,
        patch=patch,
        patch_moment=patch_moment,
        moment=moment,
        magnitude=magnitude_of(moment),
        detectable_slip=detectable,
        unseen=(detectable > largest) | (np.diag(resolution) < UNRESOLVED),
    )


def _fit_by_kind(problem: InversionProblem, residual: Float) -> dict[str, Fit]:
    fits = {}
    for kind in np.unique(problem.kind):
        rows = problem.kind == kind
        fits[str(kind)] = fit_of(
            problem.data[rows], residual[rows], problem.sigma[rows]
        )
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
