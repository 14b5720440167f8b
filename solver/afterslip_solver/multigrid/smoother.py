"""Chebyshev smoothing on block Jacobi."""

from __future__ import annotations

from typing import Any

import numpy as np

from afterslip_solver.backend import LANES, Backend, Blocks


def largest_eigenvalue(
    backend: Backend,
    matrix: Blocks,
    inverse: Any,
    steps: int = 12,
    start: Any = None,
) -> float:
    """Estimate the largest eigenvalue of D^-1 A by Lanczos on four random starts.

    Parameters
    ----------
    matrix : symmetric positive definite, square blocks.
    inverse : (n, k, k) inverse diagonal blocks D^-1.
    steps : Lanczos steps; a dozen gives it to about one per cent.
    start : (n, k, lane) float32 on the backend, spent; random where left out.
    """
    if start is None:
        shape = (matrix.n_rows, matrix.rows, LANES)
        start = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    r = backend.asarray(start)
    z, p, q = (backend.xp.zeros_like(r) for _ in range(3))
    alphas, betas = [], []
    # conjugate gradients hide a Lanczos process: T follows from its scalars
    backend.scale_blocks(inverse, r, 1.0, z)
    rz = backend.dot(r, z)
    p[...] = z
    for _ in range(steps):
        backend.multiply(matrix, p, q)
        alpha = rz / backend.dot(p, q)
        backend.axpy(r, (-alpha).astype(np.float32), q)
        backend.scale_blocks(inverse, r, 1.0, z)
        new = backend.dot(r, z)
        alphas.append(alpha)
        betas.append(new / rz)
        backend.xpay(z, (new / rz).astype(np.float32), p)
        rz = new
        if not (np.isfinite(rz).all() and (rz > 0).all()):
            alphas, betas = alphas[:-1], betas[:-1]
            break
    return max(_ritz(np.array(alphas)[:, m], np.array(betas)[:, m]) for m in range(4))


def _ritz(alpha: Any, beta: Any) -> float:
    diagonal = 1.0 / alpha
    diagonal[1:] += beta[:-1] / alpha[:-1]
    off = np.sqrt(beta[:-1]) / alpha[:-1]
    matrix = np.diag(diagonal) + np.diag(off, 1) + np.diag(off, -1)
    return float(np.linalg.eigvalsh(matrix)[-1])


class Chebyshev:
    """Polynomial smoother of block Jacobi for one level.

    The polynomial is the fourth-kind Chebyshev polynomial (Lottes 2023), which
    needs the largest eigenvalue only and damps everything above the coarse grid's
    reach evenly.

    Parameters
    ----------
    backend, matrix : the level's FP32 operator.
    inverse : (n, k, k) float32 inverse diagonal blocks.
    degree : matrix products with D^-1 A, plus one without.
    top : largest eigenvalue of D^-1 A, with its safety factor.
    """

    def __init__(
        self, backend: Backend, matrix: Blocks, inverse: Any, degree: int, top: float
    ) -> None:
        self.backend = backend
        self.matrix = matrix
        self.inverse = inverse
        shape = (matrix.n_rows, matrix.rows, LANES)
        self._step = backend.xp.zeros(shape, dtype=inverse.dtype)
        self._other = backend.xp.zeros(shape, dtype=inverse.dtype)
        self.coefficients = [
            (
                (2 * k - 3) / (2 * k + 1) if k > 1 else 0.0,
                (8 * k - 4) / ((2 * k + 1) * top),
            )
            for k in range(1, degree + 1)
        ]

    @property
    def bytes(self) -> int:
        """Memory beside the matrix."""
        return int(self.inverse.nbytes + self._step.nbytes + self._other.nbytes)

    def from_zero(self, b: Any, x: Any) -> Any:
        """Smooth A x = b from x = 0; returns the result (x or the spare buffer)."""
        self.backend.scale_blocks(self.inverse, b, self.coefficients[0][1], self._step)
        x[...] = self._step
        return self._sweep(b, x, self.coefficients[1:])

    def improve(self, b: Any, x: Any) -> Any:
        """Smooth A x = b from x; returns the result (x or the spare buffer)."""
        return self._sweep(b, x, self.coefficients)

    def _sweep(self, b: Any, x: Any, steps: list[tuple[float, float]]) -> Any:
        for keep, gain in steps:
            spare = self._other
            self.backend.chebyshev(
                self.matrix, self.inverse, b, x, self._step, keep, gain, spare
            )
            # the buffers change roles: a sweep reads all of x while it writes
            x, self._other = spare, x
        return x
