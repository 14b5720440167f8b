"""One convex problem against independent solvers and its optimality conditions."""

import numpy as np
import pytest
from scipy.optimize import nnls
from test_inversion import build

from afterslip_solver.inversion import Laplacian, convex
from afterslip_solver.inversion.convex import minimise


def signed(sign):
    """Bounds that a sign means."""
    return np.where(sign > 0, 0.0, -np.inf), np.where(sign < 0, 0.0, np.inf)


FREE = signed(np.zeros(30))


def problem(n=30, m=50, seed=0):
    rng = np.random.default_rng(seed)
    G = rng.standard_normal((m, n)) * 10.0 ** rng.uniform(-2, 2, n)
    d = G @ (rng.standard_normal(n) / np.abs(G).max(0)) + 0.3 * rng.standard_normal(m)
    return G, d


def test_without_constraints_it_is_the_closed_form():
    G, d = problem()
    Q = G.T @ G + np.eye(30)
    out = minimise(Q, G.T @ d, np.zeros(30), *FREE)
    assert out.converged
    assert out.value == pytest.approx(np.linalg.solve(Q, G.T @ d), rel=1e-9)


@pytest.mark.parametrize("shape", [(30, 50), (60, 40)])
def test_non_negative_agrees_with_lawson_and_hanson(shape):
    n, m = shape
    G, d = problem(n, m, seed=3)
    # augmented rows keep the minimiser unique where there are fewer data than slips
    G = np.vstack((G, 0.1 * np.diag(np.abs(G).max(0))))
    d = np.concatenate((d, np.zeros(n)))
    exact, _ = nnls(G, d)
    out = minimise(G.T @ G, G.T @ d, np.zeros(n), *signed(np.ones(n)))
    scale = np.abs(exact).max()
    assert np.abs(out.value - exact).max() < 1e-9 * scale
    assert ((out.value == 0) == (exact == 0)).all()


def test_non_positive_is_the_mirror_image():
    G, d = problem(seed=5)
    Q, b, l1 = G.T @ G, G.T @ d, np.full(30, 0.4)
    up = minimise(Q, b, l1, *signed(np.ones(30)))
    down = minimise(Q, -b, l1, *signed(-np.ones(30)))
    assert down.value == pytest.approx(-up.value)
    assert (down.value <= 0).all()


@pytest.mark.parametrize("weight", [0.01, 0.3, 0.9])
@pytest.mark.parametrize("signs", ["free", "mixed"])
def test_sparse_solution_meets_the_optimality_conditions(weight, signs):
    G, d = problem(seed=7)
    G /= np.abs(G).max(0)
    Q, b = G.T @ G, G.T @ d
    sign = np.zeros(30, dtype=int)
    if signs == "mixed":
        sign[10:20], sign[20:] = 1, -1
    l1 = np.full(30, weight * 2 * np.abs(b).max())
    l1[:3] = 0.0  # such as an offset
    a = minimise(Q, b, l1, *signed(sign)).value
    slope = 2 * (Q @ a - b)
    small = 1e-8 * np.abs(b).max()
    for k in range(30):
        if a[k] != 0:
            assert a[k] * sign[k] >= 0
            assert abs(slope[k] + l1[k] * np.sign(a[k])) < small
        elif sign[k] == 0:
            assert abs(slope[k]) <= l1[k] + small
        else:
            assert slope[k] * sign[k] >= -l1[k] - small
    assert (a[3:] == 0).any()


def test_weight_beyond_the_largest_slope_gives_zero():
    G, d = problem(seed=9)
    b = G.T @ d
    l1 = np.full(30, 2.001 * np.abs(b).max())
    assert (minimise(G.T @ G, b, l1, *FREE).value == 0).all()


def test_out_of_iterations_is_an_outcome_not_an_exception():
    G, d = problem()
    low, high = signed(np.ones(30))
    out = minimise(G.T @ G, G.T @ d, np.zeros(30), low, high, 1)
    assert not out.converged
    assert "Iter" in out.status


def test_singular_without_constraints_gives_the_smallest_solution():
    G, d = problem(30, 10)
    G /= np.abs(G).max(0)
    out = minimise(G.T @ G, G.T @ d, np.zeros(30), *FREE)
    assert out.value == pytest.approx(np.linalg.pinv(G) @ d, abs=1e-6)


def descended(Q, b, l1, lower, upper):
    """Return the minimiser by coordinate descent: one unknown after the other."""
    a = np.clip(np.zeros(len(b)), lower, upper)
    rest = b - Q @ a
    for _ in range(5000):
        before = a.copy()
        for k in range(len(b)):
            pull = rest[k] + Q[k, k] * a[k]
            best = np.sign(pull) * max(abs(pull) - 0.5 * l1[k], 0.0) / Q[k, k]
            best = np.clip(best, lower[k], upper[k])
            rest -= Q[k] * (best - a[k])
            a[k] = best
        if np.abs(a - before).max() < 1e-12:
            return a
    raise AssertionError("it still moves")


@pytest.mark.parametrize("exchanges", [convex.EXCHANGES, 0], ids=["", "interior point"])
@pytest.mark.parametrize(
    ("lower", "upper", "weight"),
    [(0.0, np.inf, 0.0), (-0.1, 2.0, 0.0), (-np.inf, np.inf, 200.0), (0, np.inf, 200)],
    ids=["signs", "bounds", "sparse", "sparse with signs"],
)
def test_smooth_slip_is_the_minimiser_to_a_millionth_of_the_largest(
    lower, upper, weight, exchanges, monkeypatch
):
    """Also where sets of unknowns never settle, and an interior point has the word."""
    monkeypatch.setattr(convex, "EXCHANGES", exchanges)
    thrust = build(n_station=20, noise=0.05)
    rows = thrust.G / thrust.sigma[:, None]
    Q = rows.T @ rows + 2.0 * Laplacian().precision(thrust.sources)
    b, n = rows.T @ (thrust.data / thrust.sigma), len(Q)
    posed = Q, b, np.full(n, weight), np.full(n, lower), np.full(n, upper)
    exact, found = descended(*posed), minimise(*posed)
    assert found.status == ("exchange" if exchanges else "Solved")
    assert np.abs(found.value - exact).max() < 1e-6 * np.abs(exact).max()
    assert ((exact == lower) | (exact == upper) | (exact == 0.0)).any()
    assert 0 <= found.gap < 1e-10 * (b @ exact)


def test_many_unknowns_have_the_minimiser_of_solves_for_all_that_are_free(monkeypatch):
    """Where an inverse finds the set that rests, the value is as exact as without."""
    G, d = problem(120, 200, seed=5)
    Q, b = G.T @ G + 1e-3 * np.diag((G**2).sum(0)), G.T @ d
    bounds = signed(np.arange(120) % 2)
    found = []
    for many in (10**6, 1):
        monkeypatch.setattr(convex, "MANY_UNKNOWNS", many)
        out = minimise(Q, b, np.zeros(120), *bounds)
        assert 0 <= out.gap < 1e-12 * (d @ d)
        found.append(out)
    assert found[1].value == pytest.approx(found[0].value, rel=1e-9)
    assert ((found[1].value == 0) == (found[0].value == 0)).all()
    assert found[1].iterations == 1 < found[0].iterations
