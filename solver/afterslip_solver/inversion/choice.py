"""Smoothness and sparsity by cross-validation over stations."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from afterslip_solver.inversion.convex import minimise
from afterslip_solver.inversion.folds import deal_stations, spatial_blocks
from afterslip_solver.inversion.normal import Normal, normal_equations
from afterslip_solver.inversion.problem import (
    InversionError,
    InversionProblem,
    InversionSettings,
)
from afterslip_solver.model import Float, Int

# exponents of ten relative to the scales of the problem
SMOOTHNESS_RANGE = (-6.0, 2.0)
SPARSITY_RANGE = (-4.0, -0.5)
LIMIT = 3.0  # decades beyond the range that the refinement may walk
NONE = -np.inf  # exponent of a zero weight


@dataclass(frozen=True, slots=True)
class CrossValidation:
    """Score of every pair of weights that was tried, in order of the trials.

    Attributes
    ----------
    smoothness, sparsity : (n_trial,) float64, lambda and mu.
    score : (n_trial,) float64, mean over folds of the mean squared prediction error
        in units of sigma; 1 where the data are predicted to their uncertainty.
    standard_error : (n_trial,) float64, of that mean, from the spread of the folds.
    fold_scores : (n_trial, n_fold) float64.
    best, chosen : positions of the minimum and of the pair that was taken.
    fold : (n_obs,) int64, fold of each row.
    failures : problems that the solver did not finish (their score is inf).
    """

    smoothness: Float
    sparsity: Float
    score: Float
    standard_error: Float
    fold_scores: Float
    best: int
    chosen: int
    fold: Int
    failures: int


class _Trials:
    """Scores by exponents, each pair computed once."""

    def __init__(
        self,
        problem: InversionProblem,
        settings: InversionSettings,
        fold: Int,
        normal: Normal,
    ) -> None:
        self.settings = settings
        self.normal = normal
        self.sign = np.concatenate(
            (problem.sign, np.zeros(normal.n_nuisance, dtype=np.int64))
        )
        self.folds = []
        for k in range(settings.folds):
            test = fold == k
            rest = normal_equations(problem, normal.roughness, ~test)
            self.folds.append((rest, *problem.whitened(test)))
        self.pairs: dict[tuple[float, float], tuple[float, float]] = {}
        self.scores: dict[tuple[float, float], Float] = {}
        self.failures = 0

    def run(self, key: tuple[float, float], weights: tuple[float, float]) -> float:
        """Mean score of a pair of weights."""
        if key not in self.scores:
            scores = np.empty(len(self.folds))
            for k, (rest, design, data) in enumerate(self.folds):
                found = minimise(
                    rest.with_roughness(weights[0], self.normal.roughness),
                    rest.right,
                    rest.l1(weights[1]),
                    self.sign,
                    self.settings.max_iterations,
                )
                self.failures += not found.converged
                misfit = data - design @ found.value
                scores[k] = np.mean(misfit**2) if found.converged else np.inf
            self.scores[key] = scores
            self.pairs[key] = weights
        return float(self.scores[key].mean())

    def best(self) -> tuple[float, float]:
        return min(self.scores, key=lambda key: float(self.scores[key].mean()))


def cross_validate(
    problem: InversionProblem,
    settings: InversionSettings,
    report: Callable[[int, float], None] | None = None,
) -> CrossValidation:
    """Search for the weights with the least prediction error.

    A grid of decades about the problem's own scales first, then steps of half a
    decade from its best point for as long as they improve. Scales: trace of the
    normal matrix over trace of L for lambda, and for mu the smallest value that
    makes every coefficient zero.

    Parameters
    ----------
    report : called after each trial with the number of trials and the score.

    Raises
    ------
    InversionError
        Where positions are missing for spatial blocks.
    """
    fold = _folds(problem, settings)
    precision = settings.regulariser.precision(problem.sources)
    normal = normal_equations(problem, precision)
    trials = _Trials(problem, settings, fold, normal)
    fixed = (settings.smoothness, settings.sparsity)
    scales = (normal.smoothness_scale, normal.sparsity_scale)

    def score(key: tuple[float, float]) -> float:
        weights = tuple(
            scale * 10.0**exponent if given == "auto" else float(given)
            for exponent, scale, given in zip(key, scales, fixed, strict=True)
        )
        value = trials.run(key, (weights[0], weights[1]))
        if report is not None:
            report(len(trials.scores), value)
        return value

    for key in _grid(fixed[0] == "auto", fixed[1] == "auto"):
        score(key)
    _refine(trials, score, fixed[0] == "auto", fixed[1] == "auto")
    return _table(trials, fold, settings)


def _folds(problem: InversionProblem, settings: InversionSettings) -> Int:
    if settings.grouping == "scattered":
        return deal_stations(
            problem.station, problem.kind, settings.folds, settings.seed
        )
    if len(problem.position) <= int(problem.station.max()):
        raise InversionError("spatial blocks need the position of every station")
    return spatial_blocks(problem.station, problem.position, settings.folds)


def _grid(smooth: bool, sparse: bool) -> Iterable[tuple[float, float]]:
    low, high = SMOOTHNESS_RANGE
    first = np.arange(low, high + 0.5).tolist() if smooth else [0.0]
    low, high = SPARSITY_RANGE
    second = [NONE, *np.arange(low, high + 0.5).tolist()] if sparse else [0.0]
    return ((a, b) for a in first for b in second)


def _refine(
    trials: _Trials,
    score: Callable[[tuple[float, float]], float],
    smooth: bool,
    sparse: bool,
) -> None:
    """Half-decade steps from the best trial until it stays the best."""
    steps_a = (-0.5, 0.0, 0.5) if smooth else (0.0,)
    steps_b = (-0.5, 0.0, 0.5) if sparse else (0.0,)
    while True:
        centre = trials.best()
        for a in steps_a:
            for b in steps_b:
                near = (centre[0] + a, centre[1] + b)
                if _inside(near):
                    score(near)
        if trials.best() == centre:
            return


def _inside(key: tuple[float, float]) -> bool:
    low, high = SMOOTHNESS_RANGE
    if not low - LIMIT <= key[0] <= high + LIMIT:
        return False
    low, high = SPARSITY_RANGE
    return key[1] == NONE or low - LIMIT <= key[1] <= 0.0


def _table(trials: _Trials, fold: Int, settings: InversionSettings) -> CrossValidation:
    keys = list(trials.scores)
    fold_scores = np.array([trials.scores[key] for key in keys])
    weights = np.array([trials.pairs[key] for key in keys])
    mean = fold_scores.mean(axis=1)
    with np.errstate(invalid="ignore"):
        spread = fold_scores.std(axis=1, ddof=1) / np.sqrt(fold_scores.shape[1])
    error = np.where(np.isfinite(mean), spread, np.inf)
    best = int(np.argmin(mean))
    chosen = best
    if settings.rule == "one_standard_error":
        allowed = np.flatnonzero(mean <= mean[best] + error[best])
        # smoothest first, sparsest among those
        chosen = int(allowed[np.lexsort(weights[allowed].T[::-1])[-1]])
    return CrossValidation(
        smoothness=weights[:, 0],
        sparsity=weights[:, 1],
        score=mean,
        standard_error=error,
        fold_scores=fold_scores,
        best=best,
        chosen=chosen,
        fold=fold,
        failures=trials.failures,
    )
