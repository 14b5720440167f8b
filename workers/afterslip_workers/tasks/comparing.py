"""Which of several rheologies over the same faults, sources and data the data take."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import xarray as xr

from afterslip.errors import one_problem
from afterslip_common.terms import YEAR
from afterslip_solver.inversion import (
    InTime,
    InversionError,
    InversionProblem,
    InversionSettings,
    InversionSolution,
    ModelError,
    in_blocks,
    interval,
    invert,
    limits,
    log_bayes_factor,
    magnitude_of,
    moment_parts,
    with_model_error,
)
from afterslip_solver.model import Float
from afterslip_workers.inverting.in_time import designs, lag_rule
from afterslip_workers.inverting.model_error import (
    estimates_error,
    mesh_sigma,
    shared_errors,
)
from afterslip_workers.inverting.solving import beside_errors
from afterslip_workers.tasks.posing import Posed, settings_of

EVIDENCE_DRAWS = 4000
LEAST = 1e-3
"""m; what stations move less than this decides nothing."""
_DRAWS = 400  # of the motion of stations


@dataclass(frozen=True, slots=True)
class _Model:
    """A model's problem, in blocks where slip goes on, and what came of it."""

    posed: Posed
    ends: list[float]
    problem: InversionProblem
    solution: InversionSolution


def compare(
    runs: Mapping[str, Posed],
    prior: tuple[float, ...],
    report: Callable[[str], None],
) -> xr.Dataset:
    """Compare models by evidence, by data held out and by the motion they predict.

    Parameters
    ----------
    runs : by name; the first is the reference.
    prior : weight of changes of the rate and amplitude of afterslip, as of `InTime`,
        where slip goes on in increments.
    report : called with what begins.

    Returns
    -------
    Data set over ``model``: ``log_evidence`` less that of the best and its error,
    ``probability`` where all are equally probable before, ``score`` of data held out
    in units of the same errors, ``score_less_best`` of the same folds and its error,
    ``magnitude`` and its interval; over ``model, time, station, component``:
    ``change`` since the event, m, with ``change_interval``, 95 %; ``decides`` (time,
    station, component), where one model says up and another says down. The attribute
    ``model_error_m`` is the largest error of a prediction in the covariance.

    Raises
    ------
    SpecError
        The runs cannot be compared.
    """
    first = next(iter(runs.values()))
    _refuse(runs)
    increments = first.request.increments
    ends = [float(end) for end in increments.ends] if increments else []
    settings = _settings(first, ends, prior)
    models = {}
    for name, posed in runs.items():
        report(f"{name}: slip")
        problem = posed.problem
        if ends:
            problem = in_blocks(problem, designs(posed.store, posed.rows, ends)[0])
        solution = invert(problem, replace(settings, folds=0, choice="evidence"))
        models[name] = _Model(posed, ends, problem, solution)
    error = _model_error(models) if first.request.model_error.mesh else None
    if error is not None:
        variance = _least_variance(models)
        settings = beside_errors(settings, variance)
        models = _with_model_error(models, settings, error, variance, report)
    found = {**_evidence(models, settings, report), **_figures(models)}
    best = models[list(models)[int(np.argmax(found["log_evidence"][1]))]]
    report("data held out")
    found |= _held_out(models, settings, best.solution.estimated_variance)
    report("motion of stations")
    found |= _motion(models)
    return xr.Dataset(
        found,
        coords={
            "model": list(models),
            "station": list(first.rows.stations),
            "component": ["east", "north", "up"],
        },
        attrs={
            "inversion": first.request.name,
            "least_m": LEAST,
            "model_error_m": 0.0 if error is None else float(error.total.max()),
        },
    )


def _model_error(models: Mapping[str, _Model]) -> ModelError | None:
    """Return errors of the predictions that hold for all models; None: not known.

    Likelihoods compare where the data's covariance is the same: that of the models'
    mean, which has the mean of their variances.
    """
    found = []
    for model in models.values():
        store, rows = model.posed.store, model.posed.rows
        slip = model.solution.slip.reshape(-1, len(model.posed.problem.area))
        starts = [0.0, 0.0, *model.ends[:-1]] if model.ends else [0.0]
        if estimates_error(store):
            found.append(mesh_sigma(store, rows, slip, starts))
    if not found:
        return None
    rows = next(iter(models.values())).posed.rows
    sigma = np.sqrt((np.stack(found) ** 2).sum(axis=0) / len(models))
    return ModelError(sigma, shared_errors(rows))


def _least_variance(models: Mapping[str, _Model]) -> Float:
    """Return the data's variances as the model with the least of them finds them."""
    counts = np.bincount(next(iter(models.values())).problem.dataset_of_row)

    def size(model: _Model) -> float:
        return float(counts @ np.log(model.solution.estimated_variance))

    return min(models.values(), key=size).solution.estimated_variance


def _with_model_error(
    models: Mapping[str, _Model],
    settings: InversionSettings,
    error: ModelError,
    variance: Float,
    report: Callable[[str], None],
) -> dict[str, _Model]:
    """Return the models solved again with errors of the predictions in the covariance.

    Those stand beside the data's errors of `_least_variance`. The size of both
    together is each model's own to find, as it is without errors of predictions: a
    fixed one would count whatever a model misses at the errors of the model that
    misses least.
    """
    found = {}
    for name, model in models.items():
        report(f"{name}: slip, with errors of the predictions")
        problem = with_model_error(model.problem.reweighted(variance), error)
        own = model.problem.dataset_of_row, model.problem.free_variances
        problem = replace(problem, dataset=own[0], variance_free=own[1])
        solution = invert(problem, replace(settings, folds=0, choice="evidence"))
        found[name] = replace(model, problem=problem, solution=solution)
    return found


def _refuse(runs: Mapping[str, Posed]) -> None:
    """Refuse what has no evidence, and requests that differ."""
    if len(runs) < 2:
        raise one_problem("RUN", list(runs), "is one model", "name two runs or more")
    first, *others = runs.values()
    if first.request.sparsity != 0.0:
        hint = "leave sparsity out"
        raise one_problem("sparsity", first.request.sparsity, "has no evidence", hint)
    if first.request.model_error.campaigns:
        hint = "compare the other earths as models of their own"
        text = "are not in the evidence"
        raise one_problem("model_error.campaigns", None, text, hint)
    if first.request.windows is not None:
        hint = "compare the scores of their inversions"
        raise one_problem("windows", None, "are not in the evidence yet", hint)
    if any(dataset.robust for dataset in first.datasets.values()):
        hint = "leave robust out, and outliers too"
        raise one_problem("robust", True, "weighs data by the model", hint)
    asked = first.request.model_dump(mode="json")
    for posed in others:
        theirs = posed.request.model_dump(mode="json")
        wrong = [key for key in asked if asked[key] != theirs[key]]
        if wrong:
            hint = "give all campaigns the same inversion"
            raise one_problem(wrong[0], theirs[wrong[0]], "differs between runs", hint)


def _settings(
    posed: Posed, ends: list[float], prior: tuple[float, ...]
) -> InversionSettings:
    settings = settings_of(posed.request, len(np.unique(posed.problem.station)))
    if settings.folds == 0:
        said = "leaves no stations to hold out, by which models are compared"
        hint = "give data of two stations or more, and 2 folds or more"
        raise one_problem("folds", posed.request.folds, said, hint)
    if not ends:
        return settings
    durations = tuple(np.diff([0.0, *ends]).tolist())
    in_time = InTime(settings.regulariser, durations, *prior)
    return replace(settings, regulariser=in_time)


def _evidence(
    models: Mapping[str, _Model],
    settings: InversionSettings,
    report: Callable[[str], None],
) -> dict[str, Any]:
    names = list(models)
    log, error = np.zeros(len(names)), np.zeros(len(names))
    more = replace(settings, draws=EVIDENCE_DRAWS)
    for k, name in enumerate(names[1:], 1):
        report(f"{name}: evidence")
        pair = models[names[0]].problem, models[name].problem
        try:
            found = log_bayes_factor(*pair, more)
        except InversionError as problem:
            raise one_problem(
                "RUN", name, str(problem), "run each with the same sources and data"
            ) from problem
        log[k], error[k] = found.value, found.error
    best = int(np.argmax(log))
    log = log - log[best]
    # all are measured from the first, whose own is exact
    apart = np.where(np.arange(len(log)) == best, 0.0, np.hypot(error, error[best]))
    share = np.exp(log)
    return {
        "log_evidence": ("model", log),
        "log_evidence_error": ("model", apart),
        "probability": ("model", share / share.sum()),
    }


def _figures(models: Mapping[str, _Model]) -> dict[str, Any]:
    moments, fits = [], []
    ends: list[list[float]] = []
    for model in models.values():
        problem = model.posed.problem
        n = len(problem.area)
        slip = model.solution.slip.reshape(-1, n).sum(axis=0)
        moments.append(moment_parts(problem, slip[None, :]).sum())
        fits.append(model.solution.fit.weighted_variance_reduction)
        posterior = model.solution.posterior
        if posterior is None:
            ends.append([np.nan, np.nan])
            continue
        both = (posterior.free, posterior.slip)
        draws = [d.reshape(len(d), -1, n).sum(axis=1) for d in both]
        moment = [moment_parts(problem, d).sum(axis=1) for d in draws]
        ends.append([magnitude_of(float(end)) for end in limits(*moment)])
    return {
        "magnitude": ("model", [magnitude_of(float(m)) for m in moments]),
        "magnitude_interval": (("model", "limit"), ends),
        "variance_reduction": ("model", fits),
    }


def _held_out(
    models: Mapping[str, _Model], settings: InversionSettings, variance: Float
) -> dict[str, Any]:
    """Score the same folds with the errors that the best model estimates."""
    scores = []
    for model in models.values():
        held = replace(settings, smoothness=model.solution.smoothness, draws=0)
        table = invert(model.problem.reweighted(variance), held).cross_validation
        if table is not None:
            scores.append(table.fold_scores[table.chosen])
    by_fold = np.stack(scores)
    mean = by_fold.mean(axis=1)
    less = by_fold - by_fold[int(np.argmin(mean))]
    root = np.sqrt(settings.folds)  # another deal of the same stations says no more
    return {
        "score": ("model", mean),
        "score_error": ("model", by_fold.std(axis=1, ddof=1) / root),
        "score_less_best": ("model", less.mean(axis=1)),
        "score_less_best_error": ("model", less.std(axis=1, ddof=1) / root),
    }


def _motion(models: Mapping[str, _Model]) -> dict[str, Any]:
    """Motion since the event, and where models disagree of its sign."""
    first = next(iter(models.values())).posed
    known = np.unique([*first.rows.epoch.tolist(), first.store.until])
    times = known[known > 0.0].tolist()
    change, ranges = [], []
    for model in models.values():
        slip, posterior = model.solution.slip, model.solution.posterior
        draws = slip[None, :] if posterior is None else posterior.slip
        step = max(1, len(draws) // _DRAWS)
        response = _since_event(model, times)
        change.append(np.einsum("s,stpc->tpc", slip, response))
        moved = np.tensordot(draws[::step], response, axes=1)
        ranges.append(np.stack(interval(moved), axis=-1))
    low, high = np.moveaxis(np.stack(ranges), -1, 0)
    up = ((low > 0) & (np.stack(change) > LEAST)).any(axis=0)
    down = ((high < 0) & (np.stack(change) < -LEAST)).any(axis=0)
    dims = ("time", "station", "component")
    return {
        "time": ("time", np.array(times) / YEAR, {"units": "yr"}),
        "change": (("model", *dims), np.stack(change), {"units": "m"}),
        "change_interval": (("model", *dims, "limit"), np.stack(ranges)),
        "decides": (dims, up & down),
    }


def _since_event(model: _Model, times: Sequence[float]) -> Float:
    """(n, n_time, n_station, 3) m per m of each unknown, since just after the event."""
    rows, store = model.posed.rows, model.posed.store
    found, at = [], store.sampler(rows.x, rows.y)
    for time in times:
        if model.ends:
            lags, weights = lag_rule(time, model.ends)
        else:
            lags, weights = np.array([time]), np.ones((1, 1))
        sampled = at(np.append(lags, 0.0))
        parts = np.einsum("bt,stpc->bspc", weights, sampled[:, :-1])
        parts[0] -= sampled[:, -1]
        found.append(parts.reshape(-1, *parts.shape[2:]))
    return np.stack(found, axis=1)
