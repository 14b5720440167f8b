"""Tensor splines with smoothing, as `afterslip_solver.mesh.interface` needs them."""

from __future__ import annotations

import numpy as np
from scipy.interpolate import BSpline
from scipy.linalg import eigh

from afterslip_solver.model import Float

DEGREE = 3
# rms misfit that smoothing may cause, as a share of the depth range
_TOLERATED = 0.001
# the surface that is embedded follows the fitted one, but not all the way
_BELOW = 0.9
_WEIGHTS = np.logspace(1, -11, 61)


def denser_above(intervals: int) -> Float:
    """Relative knots, half as dense at depth: interfaces bend near the trench."""
    part = np.linspace(0.0, 1.0, intervals + 1)
    return np.asarray(0.5 * part + 0.5 * part**2)


def clamped_knots(low: float, high: float, parts: Float) -> Float:
    """Knots from low to high, with inner ones at parts of the range, ends repeated."""
    inner = low + (high - low) * parts[1:-1]
    ends = DEGREE + 1
    return np.concatenate([[low] * ends, inner, [high] * ends])


def _basis(knots: Float, at: Float, derivative: int = 0) -> Float:
    """(n, n_basis) values of all B-splines; ends are continued constantly."""
    count = len(knots) - DEGREE - 1
    at = np.clip(at, knots[0], knots[-1])
    spline = BSpline(knots, np.eye(count), DEGREE)
    return np.asarray(spline(at, nu=derivative), dtype=np.float64)


def tensor_spline(
    knots: tuple[Float, Float],
    coefficients: Float,
    s: Float,
    depth: Float,
    derivative: tuple[int, int] = (0, 0),
) -> Float:
    """Value or derivative of the tensor spline at points of any shape."""
    shape = np.shape(s)
    result = np.empty(int(np.prod(shape, dtype=np.int64)))
    flat_s, flat_depth = np.ravel(s), np.ravel(depth)
    for start in range(0, len(result), 100_000):
        part = slice(start, start + 100_000)
        result[part] = _spline_rows(
            _basis(knots[0], flat_s[part], derivative[0]),
            _basis(knots[1], flat_depth[part], derivative[1]),
            coefficients,
        )
    return result.reshape(shape)


def _gram(knots: Float, derivative: int) -> Float:
    """(n_basis, n_basis) integrals of products of derivatives over unit length."""
    cells = np.unique(knots)
    point, weight = np.polynomial.legendre.leggauss(4)
    middle, half = 0.5 * (cells[1:] + cells[:-1]), 0.5 * np.diff(cells)
    at = (middle[:, None] + half[:, None] * point).ravel()
    span = cells[-1] - cells[0]
    w = (half[:, None] * weight).ravel() / span
    values = _basis(knots, at, derivative) * span**derivative
    return np.asarray(values.T @ (w[:, None] * values))


def penalised_fit(
    knots: tuple[Float, Float],
    s: Float,
    depth: Float,
    d: Float,
    tolerance: float | None,
) -> Float:
    """Coefficients of least squares with thin-plate roughness.

    The smoothest surface is taken whose misfit, at right angles to it, is within
    the tolerance, or else ``_TOLERATED`` of the depth range or 1.5 times the smallest
    (discrepancy principle): neighbouring points of published interfaces are not
    independent, so cross-validation would follow their noise and spoil the
    continuation.
    """
    rows, columns = _basis(knots[0], s), _basis(knots[1], depth)
    shape = (rows.shape[1], columns.shape[1])
    design = (rows[:, :, None] * columns[:, None, :]).reshape(len(s), -1)
    gram = [[_gram(k, order) for order in range(3)] for k in knots]
    rough = (
        np.kron(gram[0][2], gram[1][0])
        + 2.0 * np.kron(gram[0][1], gram[1][1])
        + np.kron(gram[0][0], gram[1][2])
    )
    n = len(s)
    normal = design.T @ design / n
    # a trace of roughness settles cells without data
    base = normal + 1e-10 * rough * np.trace(normal) / np.trace(rough)
    base += 1e-14 * np.trace(base) / len(base) * np.eye(len(base))
    value, vector = eigh(rough, base)
    value = np.maximum(value, 0.0)
    data = vector.T @ (design.T @ d) / n
    # from smooth to rough: stop where the data are met as well as they deserve
    tries = vector @ (data[:, None] / (1.0 + value[:, None] * _WEIGHTS))
    slope = _spline_rows(rows, _basis(knots[1], depth, 1), tries[:, -1].reshape(shape))
    residual = (d[:, None] - design @ tries) / np.hypot(1.0, slope)[:, None]
    misfit = np.sqrt(np.mean(residual**2, axis=0))
    allowed = max(_TOLERATED * float(np.ptp(depth)), 1.5 * float(misfit.min()))
    # what cannot be met is not worth a rough surface
    if tolerance is not None and _BELOW * tolerance >= float(misfit.min()):
        allowed = _BELOW * tolerance
    chosen = int(np.argmax(misfit <= allowed))
    return np.ascontiguousarray(tries[:, chosen]).reshape(shape)


def _spline_rows(rows: Float, columns: Float, coefficients: Float) -> Float:
    """Tensor spline from the values of its B-splines at scattered points."""
    return np.asarray(np.einsum("ij,ij->i", rows @ coefficients, columns))
