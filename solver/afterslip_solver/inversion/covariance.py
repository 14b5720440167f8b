"""Errors that data share: covariance matrices, and rows made independent by them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg
import scipy.optimize
from scipy.spatial.distance import pdist

from afterslip_solver.model import Bool, Float, Int

# pairs of points that an empirical variogram is made of, at most
MOST_PAIRS = 2_000_000
MIN_POINTS = 30


@dataclass(frozen=True, slots=True)
class Block:
    """Rows whose errors are correlated.

    Attributes
    ----------
    rows : (k,) int64, positions in the data, each in one block only.
    matrix : (k, k) float64, m2, symmetric and positive definite.
    """

    rows: Int
    matrix: Float


def whiten(
    blocks: Sequence[Block], sigma: Float, values: Float, rows: Bool | None = None
) -> Float:
    """Return rows with independent errors of variance one.

    Multiplies by the inverse of the lower Cholesky factor of the covariance; rows
    outside every block are divided by their sigma. Where only some rows are taken
    the covariance is that of these rows, so rows held out say nothing.

    Parameters
    ----------
    sigma : (n_obs,) float64, m.
    values : (n_obs,) or (n_obs, k) float64.
    rows : (n_obs,) bool, which rows to take; None: all.

    Returns
    -------
    float64, the chosen rows of ``values`` in their order.
    """
    if rows is None:
        rows = np.ones(len(sigma), dtype=bool)
    wide = values.reshape(len(values), -1)
    white = wide / sigma[:, None]
    for block in blocks:
        mine = rows[block.rows]
        chosen = block.rows[mine]
        factor = np.linalg.cholesky(block.matrix[np.ix_(mine, mine)])
        white[chosen] = scipy.linalg.solve_triangular(factor, wide[chosen], lower=True)
    return np.asarray(white[rows].reshape(-1, *values.shape[1:]))


def is_positive_definite(matrix: Float) -> bool:
    """Say whether a symmetric matrix has a Cholesky factor."""
    try:
        np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        return False
    return True


def exponential(x: Float, y: Float, sigma: float, length: float) -> Float:
    """Covariance sigma² exp(−h / length) of points at distance h.

    Parameters
    ----------
    x, y : (n,) float64, m.
    sigma : m, standard deviation of the correlated part.
    length : m.

    Returns
    -------
    (n, n) float64, m2.
    """
    apart = np.hypot(x[:, None] - x[None, :], y[:, None] - y[None, :])
    return np.asarray(sigma**2 * np.exp(-apart / length))


@dataclass(frozen=True, slots=True)
class Variogram:
    """An exponential variogram fitted to noise.

    gamma(h) = nugget² + sigma² (1 − exp(−h / length)), half the mean squared
    difference of points at distance h.

    Attributes
    ----------
    sigma, nugget : m, correlated and uncorrelated part.
    length : m.
    distance, semivariance : (n_bin,) m and m2, what the fit was made to.
    """

    sigma: float
    nugget: float
    length: float
    distance: Float
    semivariance: Float


def fit_variogram(x: Float, y: Float, noise: Float, n_bin: int = 20) -> Variogram:
    """Fit an exponential variogram to values of noise at points.

    A plane is removed first, as orbits leave one in a scene. Distances reach half of
    the largest one, beyond which few pairs say little.

    Parameters
    ----------
    x, y : (n,) float64, m.
    noise : (n,) float64, m, values without signal.

    Raises
    ------
    ValueError
        With too few points, or where all have one value or one place.
    """
    if len(x) < MIN_POINTS:
        raise ValueError(f"has {len(x)} points, and a variogram needs {MIN_POINTS}")
    # a fixed choice of points: the same data give the same variogram
    most = int(np.sqrt(2.0 * MOST_PAIRS))
    if len(x) > most:
        chosen = np.sort(np.random.default_rng(0).choice(len(x), most, replace=False))
        x, y, noise = x[chosen], y[chosen], noise[chosen]
    plane = np.column_stack([np.ones(len(x)), x - x.mean(), y - y.mean()])
    rest = noise - plane @ np.linalg.lstsq(plane, noise, rcond=None)[0]
    apart = pdist(np.column_stack([x, y]))
    half = 0.5 * pdist(rest[:, None], "sqeuclidean")
    reach = 0.5 * float(apart.max())
    power = float(np.var(rest))
    if not (reach > 0 and power > 0):
        raise ValueError("has no spread of places and values to make a variogram of")
    edge = np.linspace(0.0, reach, n_bin + 1)
    bin_of = np.digitize(apart, edge) - 1
    inside = bin_of < n_bin
    count = np.bincount(bin_of[inside], minlength=n_bin)
    total = np.bincount(bin_of[inside], half[inside], minlength=n_bin)
    place = np.bincount(bin_of[inside], apart[inside], minlength=n_bin)
    used = count > 0
    h, gamma = place[used] / count[used], total[used] / count[used]

    def misfit(p: Float) -> Float:
        made = p[0] + p[1] * (1.0 - np.exp(-h / (reach * p[2])))
        return np.asarray((made - gamma / power) * np.sqrt(count[used] / count.max()))

    low, high = [0.0, 1e-9, 1e-3], [10.0, 10.0, 2.0]
    found = scipy.optimize.least_squares(misfit, [0.1, 0.9, 0.2], bounds=(low, high))
    nugget, sill, length = found.x
    return Variogram(
        sigma=float(np.sqrt(sill * power)),
        nugget=float(np.sqrt(nugget * power)),
        length=float(length * reach),
        distance=h,
        semivariance=gamma,
    )
