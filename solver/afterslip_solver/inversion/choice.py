"""Scores of smoothness and sparsity by cross-validation over stations."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np

from afterslip_solver.inversion.convex import settle
from afterslip_solver.inversion.folds import deal_stations, spatial_blocks
from afterslip_solver.inversion.normal import (
    Normal,
    Quadratic,
    cuts_blocks,
    normal_of,
    quadratics,
    together,
)
from afterslip_solver.inversion.problem import InversionError, InversionProblem
from afterslip_solver.inversion.settings import InversionSettings
from afterslip_solver.model import Bool, Float, Int

# exponents of ten relative to the scales of the problem
SMOOTHNESS_RANGE = (-6.0, 2.0)
SPARSITY_RANGE = (-4.0, -0.5)
LIMIT = 3.0  # decades beyond the range that the refinement may walk
NONE = -np.inf  # exponent of a zero weight
# decades of the refinement: the score is flat to a fraction of its error over the last
STEPS = (0.5, 0.25, 0.125)
# decades about a weight that the evidence has chosen
ABOUT = (-3.0, -2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 3.0)


@dataclass(frozen=True, slots=True)
class CrossValidation:
    """Score of every pair of weights that was tried, in order of the trials.

    Attributes
    ----------
    smoothness, sparsity : (n_trial,) float64, lambda and mu.
    score : (n_trial,) float64, mean over folds of the mean squared prediction error
        in units of sigma; 1 where the data are predicted to their uncertainty.
    standard_error : (n_trial,) float64, of that mean, from the spread of the folds.
        Folds of another deal of the same stations do not make it smaller.
    fold_scores : (n_trial, n_fold * n_repeat) float64.
    best, chosen : positions of the minimum and of the pair that was taken.
    fold : (n_obs,) int64, fold of each row, in the first deal.
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

    @property
    def contradicts(self) -> bool:
        """Whether the chosen pair predicts worse than the best by over its error."""
        limit = self.score[self.best] + self.standard_error[self.best]
        return bool(self.score[self.chosen] > limit)


class _Trials:
    """Scores by exponents, each pair computed once."""

    def __init__(
        self,
        problem: InversionProblem,
        settings: InversionSettings,
        normal: Normal,
        report: Callable[[int, float], None] | None,
    ) -> None:
        self.settings = settings
        self.normal = normal
        self.report = report
        self.deals = [
            _folds(problem, settings, repeat) for repeat in range(settings.repeats)
        ]
        self.folds: list[tuple[Normal, Quadratic]] = []
        for fold in self.deals:
            self.folds += _rest_and_test(problem, normal.roughness, fold)
        self.starts = [np.zeros(len(normal.right)) for _ in self.folds]
        self.pairs: dict[tuple[float, float], tuple[float, float]] = {}
        self.scores: dict[tuple[float, float], Float] = {}
        self.failures = 0

    def run(self, key: tuple[float, float], weights: tuple[float, float]) -> None:
        """Score a pair of weights."""
        if key in self.scores:
            return
        scores = np.empty(len(self.folds))
        for k, (rest, test) in enumerate(self.folds):
            found = settle(
                rest.with_roughness(weights[0], self.normal.roughness),
                rest.right,
                rest.l1(weights[1]),
                *self.normal.bounds,
                self.starts[k],
                self.settings.max_iterations,
            )
            self.failures += not found.converged
            scores[k] = np.inf
            if found.converged:
                self.starts[k] = found.value
                scores[k] = test.misfit(found.value) / test.count
        self.scores[key] = scores
        self.pairs[key] = weights
        if self.report is not None:
            self.report(len(self.scores), float(scores.mean()))

    def best(self) -> tuple[float, float]:
        return min(self.scores, key=lambda key: float(self.scores[key].mean()))

    def table(self, chosen: tuple[float, float] | None) -> CrossValidation:
        """All trials; without a chosen pair the settings' rule takes one."""
        keys = list(self.scores)
        fold_scores = np.array([self.scores[key] for key in keys])
        weights = np.array([self.pairs[key] for key in keys])
        mean = fold_scores.mean(axis=1)
        n, deals = (
            self.settings.folds,
            fold_scores.reshape(len(keys), len(self.deals), -1),
        )
        with np.errstate(invalid="ignore"):
            spread = deals.std(axis=2, ddof=1).mean(axis=1) / np.sqrt(n)
        error = np.where(np.isfinite(mean), spread, np.inf)
        best = int(np.argmin(mean))
        taken = best if chosen is None else keys.index(chosen)
        if chosen is None and self.settings.choice == "one_standard_error":
            allowed = np.flatnonzero(mean <= mean[best] + error[best])
            # smoothest first, sparsest among those
            taken = int(allowed[np.lexsort(weights[allowed].T[::-1])[-1]])
        return CrossValidation(
            smoothness=weights[:, 0],
            sparsity=weights[:, 1],
            score=mean,
            standard_error=error,
            fold_scores=fold_scores,
            best=best,
            chosen=taken,
            fold=self.deals[0],
            failures=self.failures,
        )


def cross_validate(
    problem: InversionProblem,
    settings: InversionSettings,
    normal: Normal,
    report: Callable[[int, float], None] | None = None,
) -> CrossValidation:
    """Search for the weights with the least prediction error.

    A grid of decades about the problem's own scales first, then ever smaller steps
    from its best point for as long as they improve. Scales: trace of the normal
    matrix over trace of L for lambda, and for mu the smallest value that makes every
    coefficient zero.

    Parameters
    ----------
    report : called after each trial with the number of trials and the score.

    Raises
    ------
    InversionError
        Where positions are missing for spatial blocks.
    """
    trials = _Trials(problem, settings, normal, report)
    fixed = (settings.smoothness, settings.sparsity)
    scales = (normal.smoothness_scale, normal.sparsity_scale)

    def score(key: tuple[float, float]) -> None:
        weights = tuple(
            scale * 10.0**exponent if given == "auto" else float(given)
            for exponent, scale, given in zip(key, scales, fixed, strict=True)
        )
        trials.run(key, (weights[0], weights[1]))

    for key in _grid(fixed[0] == "auto", fixed[1] == "auto"):
        score(key)
    for step in STEPS:
        _refine(trials, score, step, fixed[0] == "auto", fixed[1] == "auto")
    return trials.table(None)


def check_by_folds(
    problem: InversionProblem,
    settings: InversionSettings,
    normal: Normal,
    smoothness: float,
    report: Callable[[int, float], None] | None = None,
) -> CrossValidation:
    """Score a smoothness that the evidence has chosen, and weights about it.

    Raises
    ------
    InversionError
        Where positions are missing for spatial blocks.
    """
    trials = _Trials(problem, settings, normal, report)
    for decades in ABOUT:
        trials.run((decades, NONE), (smoothness * 10.0**decades, 0.0))
    return trials.table((0.0, NONE))


def _rest_and_test(
    problem: InversionProblem, roughness: Float, fold: Int
) -> list[tuple[Normal, Quadratic]]:
    """Return of each fold the other folds' normal equations, and its own squares."""
    names = np.unique(fold)
    tests = [together(quadratics(problem, fold == k)) for k in names]
    found = []
    for position, k in enumerate(names):
        others = [*tests[:position], *tests[position + 1 :]]
        if cuts_blocks(problem, fold):
            # what is held out must say nothing through correlated errors
            others = list(quadratics(problem, fold != k))
        known = together(others)
        rest = normal_of(problem, roughness, (known,))
        test = _without(tests[position], np.diag(known.matrix) == 0.0, len(roughness))
        found.append((replace(rest, groups=()), test))
    return found


def _without(test: Quadratic, alone: Bool, n_par: int) -> Quadratic:
    """Leave to the data held out what is unknown beside slip and theirs alone.

    The offset of a station's series is in no other station's data: nothing predicts it,
    and a score that took it for zero would be of the offsets.
    """
    own = np.flatnonzero(alone & (np.diag(test.matrix) > 0.0))
    own = own[own >= n_par]
    if not len(own):
        return test
    inverse = np.linalg.pinv(test.matrix[np.ix_(own, own)], hermitian=True)
    across = test.matrix[:, own] @ inverse
    return Quadratic(
        test.matrix - across @ test.matrix[own],
        test.right - across @ test.right[own],
        test.power - float(test.right[own] @ inverse @ test.right[own]),
        test.count - int(np.linalg.matrix_rank(inverse, hermitian=True)),
    )


def _folds(problem: InversionProblem, settings: InversionSettings, repeat: int) -> Int:
    if settings.grouping == "scattered":
        seed = settings.seed + repeat
        return deal_stations(problem.station, problem.kind, settings.folds, seed)
    if len(problem.position) <= int(problem.station.max()):
        raise InversionError("spatial blocks need the position of every station")
    # another deal cuts the map along other directions
    angle = 0.5 * np.pi * repeat / settings.repeats
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    return spatial_blocks(problem.station, problem.position @ turn, settings.folds)


def _grid(smooth: bool, sparse: bool) -> Iterable[tuple[float, float]]:
    low, high = SMOOTHNESS_RANGE
    first = np.arange(low, high + 0.5).tolist() if smooth else [0.0]
    low, high = SPARSITY_RANGE
    second = [NONE, *np.arange(low, high + 0.5).tolist()] if sparse else [0.0]
    return ((a, b) for a in first for b in second)


def _refine(
    trials: _Trials,
    score: Callable[[tuple[float, float]], None],
    step: float,
    smooth: bool,
    sparse: bool,
) -> None:
    """Step from the best trial until it stays the best."""
    steps_a = (-step, 0.0, step) if smooth else (0.0,)
    steps_b = (-step, 0.0, step) if sparse else (0.0,)
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
