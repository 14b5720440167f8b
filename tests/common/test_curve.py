"""Curves from a few modes, against dense matrix exponentials."""

import numpy as np
import pytest
from scipy.linalg import expm

from afterslip_common.curve import mode_weights, spectral_weights, step_weights

TIMES = np.array([0.0, 1e-6, 0.03, 0.4, 2.0, 30.0])


def spd(n: int, low: float, high: float, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    q, _ = np.linalg.qr(rng.normal(size=(n, n)))
    return (q * np.geomspace(low, high, n)) @ q.T


def lanczos(operator, start, m):
    """Return Q (n, m) and the recurrence (m, 2), re-orthogonalised."""
    n = len(start)
    Q, pairs = np.zeros((n, m)), np.zeros((m, 2))
    Q[:, 0] = start / np.linalg.norm(start)
    for j in range(m):
        w = operator @ Q[:, j]
        pairs[j, 0] = Q[:, j] @ w
        w -= Q[:, : j + 1] @ (Q[:, : j + 1].T @ w)
        w -= Q[:, : j + 1] @ (Q[:, : j + 1].T @ w)
        pairs[j, 1] = np.linalg.norm(w)
        if j + 1 < m:
            Q[:, j + 1] = w / pairs[j, 1]
    return Q, pairs


def creep(A, c0, t):
    """Solve e' = c0 - A e, e(0) = 0, by the exponential of an augmented matrix."""
    n = len(c0)
    big = np.zeros((n + 1, n + 1))
    big[:n, :n], big[:n, n] = -A, c0
    return expm(t * big)[:n, n]


def test_polynomial_curve_of_a_full_basis_is_the_matrix_exponential() -> None:
    rng = np.random.default_rng(1)
    A, c0 = spd(8, 0.05, 3.0, seed=2), rng.normal(size=8)
    readout = rng.normal(size=(5, 8))  # strain to displacement
    Q, pairs = lanczos(A, c0, 8)
    weights = mode_weights(pairs, float(np.linalg.norm(c0)), 0.0, TIMES)
    exact = np.array([readout @ creep(A, c0, t) for t in TIMES])
    np.testing.assert_allclose(weights @ (readout @ Q).T, exact, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("shift", [0.0, 0.7])
def test_weights_of_several_curves_are_those_of_each(shift) -> None:
    rng = np.random.default_rng(12)
    pairs, norms = rng.uniform(0.1, 0.9, (2, 3, 4, 2)), rng.uniform(1.0, 9.0, (2, 3))
    found = mode_weights(pairs, norms, shift, TIMES)
    assert found.shape == (2, 3, len(TIMES), 4)
    for at in np.ndindex(2, 3):
        alone = mode_weights(pairs[at], norms[at], shift, TIMES)
        np.testing.assert_allclose(found[at], alone, rtol=1e-13, atol=1e-13)


def test_shift_invert_curve_of_a_full_basis_is_the_matrix_exponential() -> None:
    rng = np.random.default_rng(3)
    A, c0, gamma = spd(7, 0.01, 200.0, seed=4), rng.normal(size=7), 3.0
    readout = rng.normal(size=(5, 7))
    S = np.linalg.inv(np.eye(7) + gamma * A)
    Q, pairs = lanczos(S, c0, 7)
    modes = readout @ S @ Q  # v_j answers to S q_j
    weights = mode_weights(pairs, float(np.linalg.norm(c0)), gamma, TIMES)
    exact = np.array([readout @ creep(A, c0, t) for t in TIMES])
    np.testing.assert_allclose(weights @ modes.T, exact, rtol=1e-9, atol=1e-9)


def test_few_shift_invert_modes_hold_over_a_wide_spectrum() -> None:
    rng = np.random.default_rng(5)
    n, m = 120, 18
    A, c0, until = spd(n, 1e-3, 1e3, seed=6), rng.normal(size=n), 10.0
    gamma = until / 10
    S = np.linalg.inv(np.eye(n) + gamma * A)
    Q, pairs = lanczos(S, c0, m)
    weights = mode_weights(pairs, float(np.linalg.norm(c0)), gamma, until)[0]
    exact = creep(A, c0, until)
    error = np.linalg.norm(S @ Q @ weights - exact) / np.linalg.norm(exact)
    assert error < 1e-4


def test_a_single_mode_relaxes_exponentially() -> None:
    tau, norm = 5.0, 2.0
    found = mode_weights([[1 / tau, 0]], norm, 0.0, TIMES)[:, 0]
    np.testing.assert_allclose(found, norm * tau * -np.expm1(-TIMES / tau), rtol=1e-13)


def test_real_seconds_and_viscosities_neither_overflow_nor_cancel() -> None:
    tau, gamma = 5.0e9, 3.0e7
    times = np.array([0.0, 1.0, 86400.0, 3.15576e8, 3e12])
    s = 1 / (1 + gamma / tau)
    found = mode_weights([[s, 0]], 1e-10, gamma, times)[:, 0]
    exact = 1e-10 * tau * -np.expm1(-times / tau) / s
    np.testing.assert_allclose(found, exact, rtol=1e-8)
    for eigenvalue in (0.0, -1e-20, 1.0, 1.0 + 1e-15):
        assert np.isfinite(mode_weights([[eigenvalue, 0]], 1.0, gamma, times)).all()


def test_a_rate_below_zero_by_rounding_does_not_grow() -> None:
    times = np.array([0.0, 1e9, 3e12])
    found = mode_weights([[-1e-11, 0]], 1.0, 0.0, times)[:, 0]
    np.testing.assert_array_equal(found, times)


def test_without_creep_there_are_no_modes_after_the_elastic_one() -> None:
    assert mode_weights(np.zeros((0, 2)), 0.0, 0.0, TIMES).shape == (6, 0)
    np.testing.assert_array_equal(
        spectral_weights([[0, 0]], 0.0, 0.0, TIMES), np.ones((6, 1))
    )


def test_steps_are_exact_at_their_times_and_linear_between() -> None:
    steps = np.array([0.0, 1.0, 2.0, 4.0])
    values = np.array([3.0, 5.0, 4.0, 0.0])
    t = np.array([0.0, 0.25, 1.0, 2.0, 3.5, 4.0])
    np.testing.assert_allclose(
        step_weights(steps, t) @ values, np.interp(t, steps, values)
    )
    assert (step_weights(steps, steps) == np.eye(4)).all()
    assert step_weights([0.0], [0.0]).tolist() == [[1.0]]


@pytest.mark.parametrize("shift", [0.0, 2.0])
def test_curve_starts_at_the_elastic_response(shift: float) -> None:
    pairs = np.array([[0.5, 0.1], [0.4, 0.0]])
    found = mode_weights(pairs, 7.0, shift, [0.0])
    np.testing.assert_array_equal(found, [[0.0, 0.0]])
    stored = spectral_weights([[9, 9], *pairs], 7.0, shift, [0.0])
    np.testing.assert_array_equal(stored, [[1.0, 0.0, 0.0]])
