"""Draws of slip, smoothness and variances against answers found another way."""

import dataclasses

import numpy as np
import pytest
import scipy.optimize
import scipy.stats
from summed import groups_of
from test_inversion import build, slip_pattern

from afterslip_solver.inversion import (
    InversionSettings,
    Laplacian,
    interval,
    invert,
    magnitude_of,
    moment_parts,
)
from afterslip_solver.inversion.convex import nearest, nearest_by_covariance
from afterslip_solver.inversion.hierarchy import (
    Hierarchy,
    effective_size,
    sample,
)
from afterslip_solver.inversion.normal import Quadratic
from afterslip_solver.inversion.posterior import to_bounds
from afterslip_solver.inversion.truncated import TruncatedGaussian

INF = np.inf


def rejected(precision, mean, lower, upper, rng, count=400_000):
    """Draws between bounds by throwing away what is outside."""
    draws = rng.multivariate_normal(mean, np.linalg.inv(precision), count)
    return draws[((draws >= lower) & (draws <= upper)).all(axis=1)]


def test_draws_between_bounds_have_the_moments_of_rejection():
    rng = np.random.default_rng(0)
    root = rng.standard_normal((4, 4))
    precision = root @ root.T + np.eye(4)
    mean = np.array([-0.5, 0.3, 0.0, 1.0])
    lower = np.array([0.0, 0.0, -INF, -0.2])
    upper = np.array([INF, 0.6, INF, 1.0])
    exact = rejected(precision, mean, lower, upper, rng)
    gaussian = TruncatedGaussian(precision, precision @ mean, lower, upper)
    value, draws = np.array([0.1, 0.1, 0.0, 0.1]), []
    for _ in range(6000):
        value = gaussian.draw(value, rng)
        draws.append(value)
    table = np.array(draws)
    assert (table >= lower).all()
    assert (table <= upper).all()
    few = min(effective_size(column) for column in table.T)
    assert few > 2000
    # four standard errors of both samples
    spread = exact.std(axis=0)
    limit = 4 * spread * np.sqrt(1 / few + 1 / len(exact))
    assert (np.abs(table.mean(axis=0) - exact.mean(axis=0)) < limit).all()
    assert table.std(axis=0) == pytest.approx(spread, rel=4 / np.sqrt(2 * few))


def test_nearest_point_is_that_of_bounded_least_squares():
    rng = np.random.default_rng(0)
    for n in (1, 4, 30):
        root = rng.standard_normal((n + 3, n))
        lower = np.where(rng.random(n) < 0.7, rng.uniform(-0.3, 0.2, n), -INF)
        upper = np.where(rng.random(n) < 0.5, rng.uniform(0.3, 0.8, n), INF)
        for _ in range(10):
            value = 2 * rng.standard_normal(n)
            begin = np.clip(rng.standard_normal(n), lower, upper)
            Q = root.T @ root
            found = nearest(Q, value, lower, upper, begin)
            inverse = np.asarray(np.linalg.inv(Q), dtype=np.float64)
            dual = nearest_by_covariance(inverse, value, lower, upper, begin)
            assert dual == pytest.approx(found, abs=1e-8)
            peer = scipy.optimize.lsq_linear(
                root, root @ value, (lower, upper), method="bvls", tol=1e-14
            )
            assert found == pytest.approx(peer.x, abs=1e-8)
            assert ((lower <= found) & (found <= upper)).all()


def test_draws_are_bounded_solutions_of_data_and_prior_with_errors_added():
    """The projection of the free posterior is a randomised bounded least squares."""
    rng = np.random.default_rng(3)
    G, L = rng.standard_normal((9, 4)), 2 * np.eye(4) - np.eye(4, k=1) - np.eye(4, k=-1)
    d = G @ np.array([0.6, 0.1, 0.0, 0.9]) + 0.5 * rng.standard_normal(9)
    lower, upper = np.zeros(4), np.array([INF, INF, INF, 0.8])
    groups = groups_of(G / 0.5, d / 0.5, np.zeros(9, dtype=int))
    model = Hierarchy(groups, np.array([False]), L, lower, upper, 1.5)
    _, inside = to_bounds(model, np.ones(4), 4000, rng)
    root = np.linalg.cholesky(1.5 * L).T
    rows, peer = np.vstack((G / 0.5, root)), []
    for _ in range(1500):
        noisy = np.append(d / 0.5, np.zeros(4)) + rng.standard_normal(13)
        found = scipy.optimize.lsq_linear(rows, noisy, (lower, upper), method="bvls")
        peer.append(found.x)
    ours, theirs = inside, np.array(peer)
    error = np.sqrt(1 / 4000 + 1 / 1500)
    spread = theirs.std(axis=0)
    assert (np.abs(ours.mean(axis=0) - theirs.mean(axis=0)) < 4 * spread * error).all()
    for edge in (lower, upper):
        share = np.isclose(theirs, edge).mean(axis=0)
        assert np.isclose(ours, edge).mean(axis=0) == pytest.approx(
            share, abs=2 * error
        )
    assert (ours[:, 2] == 0.0).mean() > 0.1


def test_effective_size_of_an_autoregressive_series_is_the_known_one():
    rng = np.random.default_rng(1)
    value, series = 0.0, np.empty(40_000)
    for k in range(len(series)):
        value = 0.8 * value + rng.standard_normal()
        series[k] = value
    # (1 - phi) / (1 + phi) of the length
    assert effective_size(series) == pytest.approx(len(series) / 9, rel=0.15)
    assert effective_size(rng.standard_normal(4000)) == pytest.approx(4000, rel=0.15)


def test_intervals_cover_slip_drawn_from_the_prior_with_signs_on():
    """68 and 95 % intervals of slip and moment hold the truth so often."""
    rng = np.random.default_rng(5)
    n, rows, trials = 6, 14, 100
    L = 2 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1)
    G = rng.standard_normal((rows, n))
    # of 99 draws the 16th from both ends hold 68 % exactly, the second ones 96 %
    inside = {(0.68, 16): np.zeros(n + 1), (0.96, 2): np.zeros(n + 1)}
    prior = TruncatedGaussian(L, np.zeros(n), np.zeros(n), np.full(n, INF))
    truth = np.ones(n)
    for _ in range(trials):
        for _ in range(12):
            truth = prior.draw(truth, rng)
        # flat priors of the scales have no draws: they are fixed in the truth, and
        # the posterior is asked with the scales given
        d = G @ truth + 0.8 * rng.standard_normal(rows)
        groups = groups_of(G / 0.8, d / 0.8, np.zeros(rows, dtype=int))
        model = Hierarchy(
            groups, np.array([False]), L, np.zeros(n), np.full(n, INF), 1.0
        )
        chain = sample(model, np.ones(n), 99, 20, rng)
        draws = np.sort(np.column_stack((chain.value, chain.value.sum(axis=1))), axis=0)
        exact = np.append(truth, truth.sum())
        for (_, rank), hits in inside.items():
            hits += (draws[rank - 1] <= exact) & (exact <= draws[-rank])
    for (share, _), hits in inside.items():
        # 14 numbers are tested
        limits = scipy.stats.binom.interval(1 - 0.002 / 14, trials, share)
        assert ((hits >= limits[0]) & (hits <= limits[1])).all(), (share, hits)


def test_evidence_with_signs_finds_the_smoothness_that_made_the_slip():
    """Slip drawn from the bounded prior: its scale is found over many draws."""
    rng = np.random.default_rng(7)
    n, rows = 20, 40
    L = 2.1 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1)
    G = rng.standard_normal((rows, n))
    prior = TruncatedGaussian(L / 0.25, np.zeros(n), np.zeros(n), np.full(n, INF))
    truth, ratios = np.ones(n), []
    for _ in range(25):
        for _ in range(10):
            truth = prior.draw(truth, rng)
        d = G @ truth + 0.3 * rng.standard_normal(rows)
        model = Hierarchy(
            groups_of(G, d, np.zeros(rows, dtype=int)),
            np.array([True]),
            L,
            np.zeros(n),
            np.full(n, INF),
        )
        chain = sample(model, np.ones(n), 120, 30, rng)
        scale = np.log(chain.precision_scale)
        ratios.append((scale.mean() - np.log(4.0)) / scale.std())
        assert np.median(chain.variance) == pytest.approx(0.09, rel=0.9)
    # standard scores of 25 posteriors: a mean within four of its errors
    assert abs(np.mean(ratios)) < 4 / np.sqrt(25)
    assert 0.5 < np.std(ratios) < 1.6


@pytest.fixture(scope="module")
def thrust():
    return build(sign=1)


@pytest.fixture(scope="module")
def slip_of_thrust(thrust):
    return invert(thrust, InversionSettings(draws=600))


def test_evidence_covers_a_smooth_slip_and_agrees_with_folds(thrust, slip_of_thrust):
    out = slip_of_thrust
    truth = slip_pattern(thrust.grid)
    low, high = out.posterior.interval()
    assert np.mean((low <= truth) & (truth <= high)) > 0.85
    assert (out.posterior.slip >= 0).all()
    table = out.cross_validation
    assert table.smoothness[table.chosen] == out.smoothness
    assert not table.contradicts
    assert 0.5 < out.variance[0] < 2.0
    total = moment_parts(thrust, out.posterior.slip).sum(axis=1)
    exact = moment_parts(thrust, truth[None]).sum()
    # slip that is zero on half of the fault is at the edge of what signs allow, so
    # that draws can only exceed it: Mw comes out high by about a hundredth
    assert 0.0 < 2 / 3 * np.log10(np.median(total) / exact) < 0.02
    assert 0 <= out.optimality_gap < 1e-10


def test_slips_near_their_bounds_are_those_without_slip(thrust, slip_of_thrust):
    near = slip_of_thrust.near_bound
    assert near[slip_of_thrust.slip == 0.0].all()
    assert not near[np.argmax(slip_of_thrust.slip)]
    assert near.mean() > 0.25
    free = invert(build(), InversionSettings(smoothness=1.0, folds=0, draws=0))
    assert not free.near_bound.any()


def test_moment_without_signs_is_in_its_interval():
    free = build()
    posterior = invert(free, InversionSettings(draws=600, folds=0)).posterior
    assert posterior is not None
    draws = posterior.slip
    low, high = interval(moment_parts(free, draws).sum(axis=1))
    exact = moment_parts(free, slip_pattern(free.grid)[None]).sum()
    assert low < exact < high
    assert magnitude_of(float(high)) - magnitude_of(float(low)) < 0.04


@pytest.mark.parametrize("factor", [0.1, 10.0])
def test_a_factor_on_all_errors_changes_no_slip(thrust, slip_of_thrust, factor):
    scaled = dataclasses.replace(thrust, sigma=factor * thrust.sigma)
    out = invert(scaled, InversionSettings(draws=600, folds=0))
    low, high = slip_of_thrust.posterior.interval(0.68)
    peak = int(np.argmax(slip_of_thrust.slip))
    change = abs(out.slip.max() - slip_of_thrust.slip.max())
    assert change < 0.2 * (high - low)[peak]
    expected = slip_of_thrust.variance[0] / factor**2
    assert out.variance[0] == pytest.approx(expected, rel=0.1)


def test_data_sets_get_variances_of_their_own(thrust):
    rng = np.random.default_rng(11)
    dataset = (thrust.station >= 20).astype(np.int64)
    data = thrust.data + np.where(dataset == 1, 0.2, 0.0) * rng.standard_normal(
        len(thrust.data)
    )
    mixed = dataclasses.replace(thrust, data=data, dataset=dataset)
    out = invert(mixed, InversionSettings(draws=400, folds=0))
    # hypot(0.02, 0.2) in units of 0.02; few rows for 96 unknowns know it to a factor
    assert 0.3 < out.variance[0] < 4.0
    assert out.variance[1] == pytest.approx(101.0, rel=0.5)
    stated = dataclasses.replace(mixed, variance_free=np.array([True, False]))
    assert invert(stated, InversionSettings(draws=200, folds=0)).variance[1] == 1.0


def test_given_smoothness_means_what_it_meant_and_its_draws_scale_the_errors(thrust):
    out = invert(thrust, InversionSettings(smoothness=2.0, folds=0, draws=400))
    bare = invert(thrust, InversionSettings(smoothness=2.0, folds=0, draws=0))
    assert (out.slip == bare.slip).all()
    assert bare.posterior is None
    assert out.posterior is not None
    ratio = out.posterior.smoothness * out.posterior.variance[:, 0]
    assert ratio == pytest.approx(2.0)


def test_variances_that_draws_estimate_are_there_however_smoothness_was_chosen(thrust):
    """Errors stated a tenth as large; slip still weighs against them as stated."""
    posed = dataclasses.replace(thrust, sigma=0.1 * thrust.sigma)
    for settings in (
        InversionSettings(smoothness=100.0, folds=0, draws=200),
        InversionSettings(choice="cross_validation", folds=3, draws=200),
        InversionSettings(folds=0, draws=200),
    ):
        stated, small = (invert(p, settings) for p in (thrust, posed))
        ratio = small.estimated_variance / stated.estimated_variance
        if settings.smoothness == "auto":
            assert ratio == pytest.approx(100.0, rel=1e-3)
        # chosen otherwise than by evidence, weights are of the errors as stated
        assert (small.variance == small.estimated_variance) == settings.by_evidence
    bare = invert(posed, InversionSettings(smoothness=1.0, folds=0, draws=0))
    assert bare.estimated_variance == bare.variance


def test_optimality_gap_bounds_the_excess_of_a_worse_value():
    from afterslip_solver.inversion.convex import duality_gap, minimise

    rng = np.random.default_rng(4)
    G = rng.standard_normal((20, 8))
    Q, b = G.T @ G, G.T @ rng.standard_normal(20)
    l1, sign = np.array([0.5] * 6 + [0.0] * 2), np.array([1, 1, 1, -1, 0, 0, 0, 1])
    bounds = np.where(sign > 0, 0.0, -INF), np.where(sign < 0, 0.0, INF)
    best = minimise(Q, b, l1, *bounds)

    def objective(a):
        return a @ Q @ a - 2 * b @ a + l1 @ np.abs(a)

    assert best.gap < 1e-12 * abs(objective(best.value))
    for _ in range(20):
        worse = best.value + 0.1 * rng.standard_normal(8)
        worse = np.where(sign * worse < 0, 0.0, worse)
        excess = objective(worse) - objective(best.value)
        assert duality_gap(Q, b, l1, *bounds, worse) >= excess > 0


def test_one_data_set_of_a_single_row_keeps_its_variance():
    group = Quadratic(np.eye(2), np.ones(2), 3.0, 1)
    many = Quadratic(5 * np.eye(2), np.ones(2), 9.0, 5)
    model = Hierarchy(
        (group, many), np.array([True, True]), np.eye(2), np.zeros(2), np.full(2, INF)
    )
    chain = sample(model, np.ones(2), 30, 0, np.random.default_rng(0))
    assert (chain.variance[:, 0] == 1.0).all()
    assert np.ptp(chain.variance[:, 1]) > 0


def test_laplacian_is_the_prior_where_none_is_named():
    assert isinstance(InversionSettings().regulariser, Laplacian)
