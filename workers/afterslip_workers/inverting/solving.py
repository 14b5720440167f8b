"""From a problem to its solution: errors of the model, robust weights, increments."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from afterslip.archive import GreensStore
from afterslip.error_class import ErrorClass
from afterslip.readers.rows import Rows
from afterslip.schemas.inversion import Inversion
from afterslip_solver.inversion import (
    InversionProblem,
    InversionSettings,
    InversionSolution,
    ModelError,
    cut,
    earth_error,
    invert,
    reweighted,
    robust_weights,
    with_earths,
    with_model_error,
)
from afterslip_solver.model import Bool, Float
from afterslip_workers.errors import TaskError
from afterslip_workers.inverting import in_time, rupture
from afterslip_workers.inverting.model_error import (
    estimates_error,
    mesh_sigma,
    shared_errors,
)

FEW_DRAWS = 300
ROUNDS = 6  # of weights, and smoothness and variances with them
SETTLED = 0.01  # change of the weights

log = logging.getLogger(__name__)

Report = Callable[[int, float], None]


@dataclass(frozen=True, slots=True)
class Solved:
    """What an inversion found.

    Attributes
    ----------
    problem : with the errors of the predictions, where some are known.
    weight : (n_obs,) float64, of data that are far off.
    history : slip through time, where increments were asked for.
    rupture : slip through seconds, where windows were asked for.
    variance : (n_dataset,) float64, factors by which the stated variances were found
        to be off, before errors of the predictions were added.
    model_error : None: none is known, or it was switched off.
    """

    problem: InversionProblem
    solution: InversionSolution
    weight: Float
    history: in_time.History | None
    variance: Float
    model_error: ModelError | None = None
    rupture: rupture.Rupture | None = None


def solve(
    request: Inversion,
    problem: InversionProblem,
    settings: InversionSettings,
    robust: Bool,
    store: GreensStore,
    rows: Rows,
    report: Report,
    windows: rupture.Windowed | None = None,
) -> Solved:
    """Solve as a request asks.

    Where errors of the Green's functions are known, a first slip says what they do
    to the predictions, and a second one is found with this in the covariance: one
    step of the iteration of Duputel et al. (2014). What other earths change is drawn
    with the slip, so that it needs no first one.

    Raises
    ------
    InversionError
        The request and the data do not go together.
    TaskError
        A solver did not converge.
    """
    ends = [float(end) for end in request.increments.ends] if request.increments else []
    design = in_time.designs(store, rows, ends) if ends else None

    def once(posed: InversionProblem, settings: InversionSettings) -> Solved:
        where = design, ends, windows
        return _once(request, posed, settings, robust, *where, report)

    if not (request.model_error.mesh and estimates_error(store)):
        found = once(problem, settings)
        return replace(found, model_error=_of_earths(problem, found.solution))
    first = once(problem, _quick(settings, in_time=bool(ends) or windows is not None))
    error = _model_error(store, rows, first, ends)
    posed = with_model_error(problem.reweighted(first.variance), error)
    second = once(posed, beside_errors(settings, first.variance))
    earths = _of_earths(problem, second.solution)
    if earths is not None:
        error = replace(error, difference=earths.difference)
    return replace(second, variance=first.variance, model_error=error)


def _quick(settings: InversionSettings, in_time: bool = False) -> InversionSettings:
    """Return settings that need neither sharp limits nor the folds' opinion.

    Parameters
    ----------
    in_time : a prior in time is to be chosen, which folds do.
    """
    folds = settings.folds if settings.by_folds or in_time else 0
    return replace(settings, folds=folds, draws=min(settings.draws, FEW_DRAWS))


def beside_errors(settings: InversionSettings, variance: Float) -> InversionSettings:
    """Return settings of the same slip where errors have the estimated variances.

    A number for smoothness weighs against errors as stated, and their common factor
    leaves slip as it is.
    """
    if settings.smoothness == "auto":
        return settings
    return replace(settings, smoothness=settings.smoothness / float(variance[0]))


def _of_earths(
    problem: InversionProblem, solution: InversionSolution
) -> ModelError | None:
    """Return what other earths do to the predictions; None where none are named."""
    if not problem.changes.size or solution.posterior is None:
        return None
    return earth_error(problem, solution.posterior.slip.mean(axis=0))


def _once(
    request: Inversion,
    problem: InversionProblem,
    settings: InversionSettings,
    robust: Bool,
    design: tuple[Float, Float] | None,
    ends: list[float],
    windows: rupture.Windowed | None,
    report: Report,
) -> Solved:
    def one(
        posed: InversionProblem, settings: InversionSettings
    ) -> tuple[InversionSolution, Float]:
        found, weight = _far_off(posed, settings, robust, report)
        if found.outcome != "converged":
            raise TaskError(ErrorClass.NOT_CONVERGED, found.advice)
        return found, weight

    if request.windows is not None and windows is not None:
        weight_of = request.windows.smoothness
        solution, weight, followed = rupture.solve_in_windows(
            problem, settings, windows, weight_of, one
        )
        variance = solution.estimated_variance
        return Solved(problem, solution, weight, None, variance, rupture=followed)
    if request.increments is None or design is None:
        solution, weight = one(problem, settings)
        return Solved(problem, solution, weight, None, solution.estimated_variance)
    asked = request.increments
    tried = (
        in_time.COUPLINGS if asked.smoothness == "auto" else (float(asked.smoothness),),
        in_time.AMPLITUDES if asked.amplitude == "auto" else (float(asked.amplitude),),
    )
    solution, weight, history = in_time.solve_in_time(
        problem, settings, design, ends, *tried, one
    )
    return Solved(problem, solution, weight, history, solution.estimated_variance)


def _far_off(
    problem: InversionProblem,
    settings: InversionSettings,
    robust: Bool,
    report: Report | None = None,
) -> tuple[InversionSolution, Float]:
    """Return the solution in which data far off weigh less, and their weights.

    Slip is Huber's estimate; scales and draws are of data that are cut at his knee.
    """
    weight = _robust_weights(problem, settings, robust)
    if not robust.any():
        return invert(reweighted(problem, weight), settings, report), weight
    drawn = invert(cut(problem, weight, robust), settings, report)
    if drawn.outcome != "converged":
        return drawn, weight
    posed, given = _at_scales(problem, settings, drawn)
    found = invert(reweighted(posed, weight), given)
    scales = {
        name: getattr(drawn, name)
        for name in ("variance", "posterior", "cross_validation")
    }
    return replace(found, **scales), weight


def _robust_weights(
    problem: InversionProblem, settings: InversionSettings, robust: Bool
) -> Float:
    """Reweight at scales that are estimated anew with the weights, until these settle.

    Scales of all data as they are would be those of the largest blunder.
    """
    weight, quick = np.ones(len(problem.data)), _quick(settings)
    if not (settings.by_evidence or problem.changes.size):
        quick = replace(quick, draws=0)
    for _ in range(ROUNDS if robust.any() else 0):
        first = invert(cut(problem, weight, robust), quick)
        posed, given = _at_scales(problem, settings, first)

        def residual(part: InversionProblem, given: InversionSettings = given) -> Float:
            return invert(part, given).residual

        fresh = robust_weights(posed, robust, residual)
        settled = float(np.abs(fresh - weight).max()) < SETTLED
        weight = fresh
        if settled:
            break
    return weight


def _at_scales(
    problem: InversionProblem, settings: InversionSettings, first: InversionSolution
) -> tuple[InversionProblem, InversionSettings]:
    """Return the problem and how to solve it at the scales of a solution."""
    given = replace(
        settings,
        smoothness=first.smoothness,
        sparsity=first.sparsity,
        folds=0,
        draws=0,
    )
    # the smoothness is that of data with the variances that came with it
    posed = problem.reweighted(first.variance)
    if posed.changes.size:
        # what another earth explains is no outlier
        drawn = first.posterior
        mean = first.slip if drawn is None else drawn.slip.mean(axis=0)
        posed = with_earths(posed, mean)
    return posed, given


def _model_error(
    store: GreensStore, rows: Rows, first: Solved, ends: list[float]
) -> ModelError:
    """Return what is known of the errors of a slip's predictions."""
    slip, starts = first.solution.slip[None], [0.0]
    if first.history is not None:
        slip, starts = first.history.slip, [0.0, 0.0, *ends[:-1]]
    error = ModelError(mesh_sigma(store, rows, slip, starts), shared_errors(rows))
    log.info(
        "errors of the predictions in the covariance: %.3g m rms, %.3g m at most",
        float(np.sqrt(np.mean(error.total**2))),
        float(error.total.max()),
    )
    return error
