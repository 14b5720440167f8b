"""Bounds, rakes and known sums in the solution and in the draws."""

import dataclasses

import numpy as np
import pytest
import scipy.optimize
from test_inversion import build, fixed, slip_pattern

from afterslip_solver.inversion import (
    InversionError,
    InversionSettings,
    KnownSum,
    Laplacian,
    invert,
    moment_parts,
)
from afterslip_solver.inversion.choice import _grid
from afterslip_solver.inversion.convex import duality_gap, minimise
from afterslip_solver.inversion.normal import normal_equations, roughness_of
from afterslip_solver.inversion.posterior import start_of


def draws_of(found):
    """Return the slip of each draw."""
    assert found.posterior is not None
    return found.posterior.slip


@pytest.fixture(scope="module")
def thrust():
    return build(n_station=20, noise=0.05)


def bounded(problem, low, high):
    n = problem.G.shape[1]
    return dataclasses.replace(
        problem, lower=np.full(n, float(low)), upper=np.full(n, float(high))
    )


@pytest.mark.parametrize("limits", [(0.0, 2.0), (-0.5, 1.0), (0.3, 1.5)])
def test_bounded_slip_agrees_with_lsq_linear(thrust, limits):
    """Trust-region reflective of SciPy on the rows themselves, not their products."""
    out = invert(bounded(thrust, *limits), fixed(2.0))
    root = np.linalg.cholesky(2.0 * Laplacian().precision(thrust.sources)).T
    rows = np.vstack((thrust.G / thrust.sigma[:, None], root))
    data = np.concatenate((thrust.data / thrust.sigma, np.zeros(len(root))))
    exact = scipy.optimize.lsq_linear(rows, data, limits, method="bvls", tol=1e-14)
    assert out.slip == pytest.approx(exact.x, abs=1e-8)
    assert (out.slip == limits[0]).any()
    assert (out.slip == limits[1]).any()
    assert 0 <= out.optimality_gap < 1e-12


def test_bounded_sparse_value_meets_the_optimality_conditions():
    rng = np.random.default_rng(3)
    G = rng.standard_normal((40, 25))
    Q, b = G.T @ G, G.T @ rng.standard_normal(40) * 3
    l1 = np.full(25, 4.0)
    lower, upper = np.full(25, -0.1), np.full(25, 0.15)
    a = minimise(Q, b, l1, lower, upper).value
    slope = 2 * (Q @ a - b)
    small = 1e-8 * np.abs(b).max()
    for value, g in zip(a, slope, strict=True):
        up = g + (4.0 if value >= 0 else -4.0)
        down = g + (4.0 if value > 0 else -4.0)
        assert value == upper[0] or up >= -small
        assert value == lower[0] or down <= small
    assert {-0.1, 0.0, 0.15} <= set(a.tolist())


def test_gap_bounds_the_excess_of_a_worse_value_between_bounds():
    rng = np.random.default_rng(4)
    G = rng.standard_normal((20, 8))
    Q, b = G.T @ G, G.T @ rng.standard_normal(20)
    l1 = np.array([0.5] * 6 + [0.0] * 2)
    bounds = np.full(8, -0.05), np.array([0.1] * 7 + [np.inf])
    best = minimise(Q, b, l1, *bounds)

    def objective(a):
        return a @ Q @ a - 2 * b @ a + l1 @ np.abs(a)

    assert best.gap < 1e-12
    for _ in range(20):
        worse = np.clip(best.value + 0.1 * rng.standard_normal(8), *bounds)
        excess = objective(worse) - objective(best.value)
        assert duality_gap(Q, b, l1, *bounds, worse) >= excess > 0


def test_draws_stay_between_bounds_that_the_data_push_against(thrust):
    out = invert(bounded(thrust, -0.2, 2.0), InversionSettings(draws=300, folds=0))
    assert draws_of(out).min() >= -0.2
    assert draws_of(out).max() <= 2.0
    # 5 m in truth: draws crowd below the bound
    assert np.quantile(draws_of(out).max(axis=1), 0.1) > 1.9
    assert (out.slip <= 2.0).all()


def along_rakes(problem, rakes):
    """Coefficients of rakes, not negative, in place of two components."""
    half = problem.G.shape[1] // 2
    angle = np.deg2rad(rakes)
    basis = np.vstack(
        (np.kron(np.cos(angle), np.eye(half)), np.kron(np.sin(angle), np.eye(half)))
    )
    n = basis.shape[1]
    return dataclasses.replace(
        problem, basis=basis, lower=np.zeros(n), upper=np.full(n, np.inf)
    )


def test_a_single_rake_is_the_inversion_of_sources_turned_to_it(thrust):
    out = invert(along_rakes(thrust, [75.0]), InversionSettings(draws=200, folds=0))
    half = thrust.G.shape[1] // 2
    cos, sin = np.cos(np.deg2rad(75)), np.sin(np.deg2rad(75))
    turned = build(n_station=20, noise=0.05, components=(1,), sign=1)
    alone = dataclasses.replace(
        turned, G=cos * thrust.G[:, :half] + sin * thrust.G[:, half:], data=thrust.data
    )
    one = invert(alone, InversionSettings(draws=200, folds=0))
    np.testing.assert_allclose(out.slip[half:], sin * one.slip, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(out.slip[:half], cos * one.slip, rtol=1e-6, atol=1e-9)
    along, up = draws_of(out)[:, :half], draws_of(out)[:, half:]
    # draws are zero, without a rake, where they lie on the bound
    np.testing.assert_allclose(along * sin, up * cos, atol=1e-12)
    assert (up > 0).any()
    assert up.min() >= 0
    # both have the resolution of slip along the rake
    way = np.array([cos, sin])
    parts = out.resolution.reshape(2, half, 2, half)
    np.testing.assert_allclose(
        np.einsum("c,cidj,d->ij", way, parts, way), one.resolution, atol=1e-6
    )


def test_rakes_stay_in_their_cone_in_solution_and_draws(thrust):
    posed = along_rakes(thrust, [80.0, 100.0])
    out = invert(posed, InversionSettings(smoothness=2.0, folds=0, draws=200))
    half = thrust.G.shape[1] // 2
    for slip in (out.slip[None], draws_of(out)):
        rake = np.rad2deg(np.arctan2(slip[:, half:], slip[:, :half]))
        slips = np.hypot(slip[:, half:], slip[:, :half]) > 1e-9
        assert ((rake > 80 - 1e-6) & (rake < 100 + 1e-6))[slips].all()
    # least squares of Lawson and Hanson in the coefficients of both rakes
    root = np.linalg.cholesky(2.0 * Laplacian().precision(thrust.sources)).T
    rows = np.vstack((thrust.G / thrust.sigma[:, None], root)) @ posed.basis
    data = np.concatenate((thrust.data / thrust.sigma, np.zeros(len(root))))
    exact = posed.basis @ scipy.optimize.nnls(rows, data)[0]
    np.testing.assert_allclose(out.slip, exact, atol=1e-8)


def test_known_moment_is_one_more_datum_of_solution_and_draws(thrust):
    free = dataclasses.replace(thrust, data=thrust.data[:6], G=thrust.G[:6])
    names = ("sigma", "station", "kind")
    free = dataclasses.replace(free, **{k: getattr(thrust, k)[:6] for k in names})
    free = dataclasses.replace(free, sign=np.ones(96, dtype=int))
    size = thrust.rigidity * thrust.area * (thrust.grid[:, 1] == 1)
    value = 1.2 * size @ slip_pattern(thrust.grid)
    known = KnownSum(size, value, 0.01 * value)
    posed = dataclasses.replace(free, known=(known,))
    settings = InversionSettings(draws=400, folds=0)
    before, after = invert(free, settings), invert(posed, settings)
    found = draws_of(after) @ size
    assert np.median(found) == pytest.approx(value, rel=0.01)
    assert found.std() == pytest.approx(known.sigma, rel=0.3)
    assert after.slip @ size == pytest.approx(value, rel=0.02)
    spread = moment_parts(free, draws_of(before)).sum(axis=1).std()
    assert spread > 5 * known.sigma
    # closed form with a smoothness that is given
    ridge = invert(dataclasses.replace(posed, sign=0 * free.sign), fixed(2.0))
    rows = np.vstack((free.G / free.sigma[:, None], size / known.sigma))
    data = np.append(free.data / free.sigma, value / known.sigma)
    L = 2.0 * Laplacian().precision(free.sources)
    exact = np.linalg.solve(rows.T @ rows + L, rows.T @ data)
    assert ridge.slip == pytest.approx(exact, rel=1e-6, abs=1e-8)


def test_bounds_that_leave_nothing_are_refused(thrust):
    with pytest.raises(InversionError, match="not above the lower one"):
        invert(bounded(thrust, 1.0, 1.0), fixed(1.0))


@pytest.mark.parametrize("width", [1e-3, 0.3, 2.0, 1e6])
def test_draws_start_inside_bounds_however_narrow(thrust, width):
    posed = bounded(thrust, -width, width)
    normal = normal_equations(posed, roughness_of(posed, Laplacian()))
    lower, upper = normal.bounds
    n = posed.G.shape[1]
    start = start_of(normal, lower, upper)[:n]
    room = np.minimum(start - lower[:n], upper[:n] - start)
    assert room.min() > 0.0
    # a quarter of what is between them, where slip is larger than they allow
    assert room.min() == pytest.approx(width / 2) or width > 0.1


def test_trials_of_two_weights_are_of_every_pair():
    pairs = set(_grid(smooth=True, sparse=True))
    first, second = {a for a, _ in pairs}, {b for _, b in pairs}
    assert first == set(range(-6, 3))
    assert second == {-np.inf, -4.0, -3.0, -2.0, -1.0}
    assert len(pairs) == len(first) * len(second)
    assert set(_grid(smooth=True, sparse=False)) == {(a, 0.0) for a in first}
    assert set(_grid(smooth=False, sparse=True)) == {(0.0, b) for b in second}
