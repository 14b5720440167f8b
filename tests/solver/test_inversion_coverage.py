"""Intervals hold the truth as often as they say, with every scale estimated."""

import dataclasses

import numpy as np
import pytest
import scipy.stats
from test_inversion import build

from afterslip_solver.inversion import InversionSettings, Laplacian, moment_parts
from afterslip_solver.inversion.convex import nearest
from afterslip_solver.inversion.normal import normal_equations
from afterslip_solver.inversion.posterior import draw_posterior, interval

SHARES = (0.68, 0.95)


def covered(problem, truths, draws=250):
    """Share of truths within the intervals of moment and of slip, by share."""
    L = Laplacian().precision(problem.sources)
    rng = np.random.default_rng(1)
    hits = {share: ([], []) for share in SHARES}
    for seed, truth in enumerate(truths):
        error = problem.sigma * rng.standard_normal(len(problem.G))
        posed = dataclasses.replace(problem, data=problem.G @ truth + error)
        settings = InversionSettings(draws=draws, folds=0, seed=seed)
        posterior = draw_posterior(posed, normal_equations(posed, L), settings, None)
        assert posterior is not None
        slip = posterior.held
        both = moment_parts(problem, np.vstack((posterior.free, truth))).sum(axis=1)
        for share, (moment, patch) in hits.items():
            low, high = interval(both[:-1], share)
            moment.append(low <= both[-1] <= high)
            low, high = interval(slip, share)
            patch.append((low <= truth) & (truth <= high))
    return {
        share: (np.mean(moment), np.mean(patch))
        for share, (moment, patch) in hits.items()
    }


def within_binomial_error(share, found, trials):
    # both of two shares of one study: 99.8 % each
    low, high = scipy.stats.binom.interval(0.998, trials, share)
    return low <= found * trials <= high


@pytest.fixture(scope="module")
def small():
    problem = build(n_station=16, sign=1)
    keep = (problem.grid[:, 2] < 5) & (problem.grid[:, 3] < 3)
    names = ("grid", "area", "rigidity", "sign")
    part = {name: getattr(problem, name)[keep] for name in names}
    return dataclasses.replace(problem, G=problem.G[:, keep], **part)


def bumps(problem, rng, trials):
    """Smooth slips of one rake: nothing that the prior draws."""
    for _ in range(trials):
        off = (problem.grid[:, 2:] - rng.uniform([1, 0], [3, 2])) / rng.uniform(1, 2, 2)
        amount = np.where(problem.grid[:, 1] == 1, 2.0, 0.7)
        yield amount * np.exp(-0.5 * (off**2).sum(axis=1))


@pytest.mark.slow
def test_intervals_hold_slip_and_moment_drawn_from_the_prior_with_signs(small):
    """The prior has made the truth: nothing but binomial error is allowed."""
    L = Laplacian().precision(small.sources)
    n, trials = len(L), 200
    rng, truths = np.random.default_rng(0), []
    root = np.linalg.cholesky(L).T
    for _ in range(trials):
        free = np.linalg.solve(root, rng.standard_normal(n))
        truths.append(nearest(L, free, np.zeros(n), np.full(n, np.inf), np.zeros(n)))
    for share, found in covered(small, truths).items():
        assert all(within_binomial_error(share, one, trials) for one in found)


@pytest.mark.slow
def test_moment_of_smooth_slip_is_held_with_signs(small):
    """Slip that is close to zero on most of the fault, where draws must reach zero."""
    trials = 200
    truths = bumps(small, np.random.default_rng(4), trials)
    for share, (moment, patch) in covered(small, truths).items():
        assert within_binomial_error(share, moment, trials), (share, moment)
        # smoother than what the prior draws: held more often
        assert patch >= share


def test_moment_of_smooth_slip_is_held_without_signs(small):
    """A bump of one rake is nothing that the prior draws; its vector sum is linear."""
    free = dataclasses.replace(small, sign=np.zeros(len(small.grid), dtype=int))
    trials = 60
    truths = bumps(free, np.random.default_rng(4), trials)
    for share, (moment, _) in covered(free, truths).items():
        assert within_binomial_error(share, moment, trials)
