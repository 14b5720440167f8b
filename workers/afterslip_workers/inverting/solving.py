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
    # the first slip needs neither sharp limits nor the folds' opinion
    quick = settings
    if settings.by_evidence:
        quick = replace(settings, folds=0, draws=min(settings.draws, FEW_DRAWS))
    first = once(problem, quick)
    error = _model_error(store, rows, first, ends)
    posed = with_model_error(problem.reweighted(first.variance), error)
    second = once(posed, settings)
    earths = _of_earths(problem, second.solution)
    if earths is not None:
        error = replace(error, difference=earths.difference)
    return replace(second, variance=first.variance, model_error=error)


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
        weight = _robust_weights(posed, settings, robust)
        found = invert(reweighted(posed, weight), settings, report)
        if found.outcome != "converged":
            raise TaskError(ErrorClass.NOT_CONVERGED, found.advice)
        return found, weight

    if request.windows is not None and windows is not None:
        weight_of = request.windows.smoothness
        solution, weight, followed = rupture.solve_in_windows(
            problem, settings, windows, weight_of, one
        )
        variance = solution.variance
        return Solved(problem, solution, weight, None, variance, rupture=followed)
    if request.increments is None or design is None:
        solution, weight = one(problem, settings)
        return Solved(problem, solution, weight, None, solution.variance)
    asked = request.increments
    tried = (
        in_time.COUPLINGS if asked.smoothness == "auto" else (float(asked.smoothness),),
        in_time.AMPLITUDES if asked.amplitude == "auto" else (float(asked.amplitude),),
    )
    solution, weight, history = in_time.solve_in_time(
        problem, settings, design, ends, *tried, one
    )
    return Solved(problem, solution, weight, history, solution.variance)


def _robust_weights(
    problem: InversionProblem, settings: InversionSettings, robust: Bool
) -> Float:
    """Reweight at the smoothness of a first solution, which is chosen anew later."""
    if not robust.any():
        return np.ones(len(problem.data))
    first = invert(problem, settings)
    held = replace(
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
    return robust_weights(posed, robust, lambda part: invert(part, held).residual)


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
