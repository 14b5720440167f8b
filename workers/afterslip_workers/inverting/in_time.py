"""Slip through time: what each increment does to each datum, from stored curves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from afterslip.archive import GreensStore
from afterslip.readers.rows import Rows
from afterslip_solver.inversion import (
    InTime,
    InversionProblem,
    InversionSettings,
    InversionSolution,
    in_blocks,
    invert,
    moment_history,
    reweighted,
    total,
)
from afterslip_solver.model import Float
from afterslip_workers.inverting import batches

# weights of changes of the rate, and sizes of afterslip, that "auto" tries
COUPLINGS = (0.0, 1e-3, 1e-2, 1e-1, 1.0)
AMPLITUDES = (1.0, 0.3, 0.1, 0.03)

# Gauss-Legendre points of one interval; the curves are smooth
_POINTS = 12
# for which curves are sampled, about
_LAGS = 40


def lag_rule(epoch: float, ends: Sequence[float]) -> tuple[Float, Float]:
    """Lags at which a response must be known for a datum, and their weights.

    A unit of slip at a steady rate over (t0, t1) has at t moved by the integral of
    the step response u: ∫ u(t - s) ds / (t1 - t0) over s from t0 to min(t, t1).

    Parameters
    ----------
    epoch : s.
    ends : s, of the intervals; the first one begins at 0.

    Returns
    -------
    (n_lag,) s, and (n_block, n_lag), rows for the coseismic slip and each interval.
    """
    point, weight = np.polynomial.legendre.leggauss(_POINTS)
    lags = [np.array([epoch])]
    parts = [(0, np.array([1.0]))]
    starts = [0.0, *ends[:-1]]
    for block, (start, end) in enumerate(zip(starts, ends, strict=True), 1):
        if epoch <= start:
            continue
        low, high = max(0.0, epoch - end), epoch - start
        lags.append(0.5 * (high - low) * (point + 1.0) + low)
        parts.append((block, 0.5 * (high - low) / (end - start) * weight))
    weights = np.zeros((1 + len(ends), sum(map(len, lags))))
    first = 0
    for block, values in parts:
        weights[block, first : first + len(values)] = values
        first += len(values)
    return np.concatenate(lags), weights


def designs(
    store: GreensStore, rows: Rows, ends: Sequence[float]
) -> tuple[Float, Float]:
    """Response of each datum to a unit of coseismic slip and of each increment.

    Returns
    -------
    (n_obs, n_block, n_source) float64, m per m, viscoelastic; and the same of rock
    that does not flow.
    """
    n = store.dataset.sizes["source"]
    G = np.empty((len(rows), 1 + len(ends), n))
    elastic = np.empty_like(G)
    per_station = 3 * n * _LAGS
    for mine, stations, column in batches.of_stations(rows.station, per_station):
        at = store.sampler(rows.x[stations], rows.y[stations])
        epochs, of_row = np.unique(rows.epoch[mine], return_inverse=True)
        for number, epoch in enumerate(epochs.tolist()):
            lags, weights = lag_rule(epoch, ends)
            chosen = of_row.ravel() == number
            part = mine[chosen]
            # the response at once comes with the others: lag 0 is one more time
            found = at(np.append(lags, 0.0))[:, :, column[chosen]]
            along = np.einsum("stri,ri->rts", found, rows.direction[part])
            G[part] = np.einsum("bt,rts->rbs", weights, along[:, :-1])
            elastic[part] = weights.sum(axis=1)[None, :, None] * along[:, -1:]
    return G, elastic


def series(
    store: GreensStore,
    x: Float,
    y: Float,
    slip: Float,
    ends: Sequence[float],
    times: Float,
) -> Float:
    """Predicted motion of stations.

    Parameters
    ----------
    slip : (n_block, n_source) float64, m.
    times : (n_time,) float64, s.

    Returns
    -------
    (n_time, n_station, 3) float64, m.
    """
    moved = np.empty((len(times), len(x), 3))
    for part in batches.of_count(len(x), 3 * slip.shape[1] * _LAGS):
        at = store.sampler(x[part], y[part])
        for number, time in enumerate(times.tolist()):
            lags, weights = lag_rule(time, ends)
            found = at(lags)
            moved[number, part] = np.einsum("bs,bt,stpc->pc", slip, weights, found)
    return moved


@dataclass(frozen=True, slots=True)
class History:
    """Slip through time.

    Attributes
    ----------
    ends : (n_block,) s, 0 for the coseismic slip, then of each interval.
    slip, sigma : (n_block, n_source) m, what each block adds.
    moment : (n_block,) N m, of the slip so far at each end.
    interval : (2, n_block) N m, limits of 95 %; None where nothing was drawn.
    moment_elastic : (n_block,) N m, the same where rock does not flow.
    variance_reduction_elastic : of the data, with their errors, in that case.
    coupling : weight of changes of the rate.
    amplitude : size of afterslip over that of the coseismic slip, in the prior.
    """

    ends: Float
    slip: Float
    sigma: Float
    moment: Float
    interval: Float | None
    moment_elastic: Float
    variance_reduction_elastic: float
    coupling: float
    amplitude: float


Solve = Callable[[InversionProblem, InversionSettings], tuple[InversionSolution, Float]]


def solve_in_time(
    problem: InversionProblem,
    settings: InversionSettings,
    design: tuple[Float, Float],
    ends: Sequence[float],
    couplings: Sequence[float],
    amplitudes: Sequence[float],
    solve: Solve,
) -> tuple[InversionSolution, Float, History]:
    """Estimate coseismic slip and increments; the score chooses their prior.

    The same slip is then sought with rock that does not flow, at the same weights,
    to say how much of the afterslip is flow that was taken for slip.

    Parameters
    ----------
    problem : of the coseismic slip alone.
    settings : with the prior in space.
    design : as `designs` returns.
    ends : s, of the intervals.
    couplings, amplitudes : to choose from, the amplitude first, at the first coupling.
    solve : returns a solution and the weights of its data.

    Returns
    -------
    The solution for all slip together, the weights of the data, and the history.
    """
    posed = in_blocks(problem, design[0])
    durations = tuple(np.diff([0.0, *ends]).tolist())
    chosen = InTime(settings.regulariser, durations, couplings[0], amplitudes[0])
    sizes = [replace(chosen, amplitude=amplitude) for amplitude in amplitudes]
    chosen = best_prior(sizes, posed, settings, solve)
    weights = [replace(chosen, coupling=coupling) for coupling in couplings]
    chosen = best_prior(weights, posed, settings, solve)
    settings = replace(settings, regulariser=chosen)
    solution, weight = solve(posed, settings)
    still = _elastic(problem, design[1], settings, solution, weight)
    moment, limits = moment_history(problem, solution)
    blocks = 1 + len(ends)
    sigma = np.sqrt(np.maximum(np.diag(solution.covariance), 0.0))
    if solution.posterior is not None:
        sigma = solution.posterior.sigma
    history = History(
        ends=np.array([0.0, *ends]),
        slip=solution.slip.reshape(blocks, -1),
        sigma=sigma.reshape(blocks, -1),
        moment=moment,
        interval=limits,
        moment_elastic=moment_history(problem, still)[0],
        variance_reduction_elastic=still.fit.weighted_variance_reduction,
        coupling=chosen.coupling,
        amplitude=chosen.amplitude,
    )
    weighed = reweighted(problem, weight)
    return total(weighed, design[0], solution), weight, history


def best_prior(
    priors: Sequence[InTime],
    posed: InversionProblem,
    settings: InversionSettings,
    solve: Solve,
) -> InTime:
    """Return the prior in time with the least error of data held out.

    Parameters
    ----------
    posed : the problem in blocks.
    """

    def score(prior: InTime) -> float:
        # in units of the errors as stated, which are the same for all
        tried = replace(settings, regulariser=prior, choice="cross_validation", draws=0)
        return _score(solve(posed, tried)[0])

    return priors[0] if len(priors) == 1 else min(priors, key=score)


def _elastic(
    problem: InversionProblem,
    design: Float,
    settings: InversionSettings,
    solution: InversionSolution,
    weight: Float,
) -> InversionSolution:
    """Return slip at the same weights in rock that does not flow."""
    held = replace(
        settings,
        smoothness=solution.smoothness,
        sparsity=solution.sparsity,
        folds=0,
        draws=0,
    )
    posed = in_blocks(problem, design).reweighted(solution.variance)
    return invert(reweighted(posed, weight), held)


def _score(solution: InversionSolution) -> float:
    table = solution.cross_validation
    return 0.0 if table is None else float(table.score[table.chosen])
