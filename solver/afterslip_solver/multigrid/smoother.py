"""Chebyshev smoothing on block Jacobi."""

from __future__ import annotations

from copy import copy
from typing import Any, cast

import numpy as np
from numpy.polynomial import Polynomial
from numpy.typing import NDArray

from afterslip_solver.backend import LANES, Backend, Blocks
from afterslip_solver.backend.protocols import DeviceIteration, LocalRows
from afterslip_solver.jit.threads import over

# numbers of a random vector that one generator makes
_STREAM = 1 << 18


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
    start : (n, k, lane) float32 on the backend, overwritten; random where left out.
    """
    if start is None:
        start = random_vector((matrix.n_rows, matrix.rows, LANES))
    r = backend.asarray(start)
    z, p, q = (backend.xp.zeros_like(r) for _ in range(3))
    alphas, betas = list[Any](), list[Any]()
    # conjugate gradients hide a Lanczos process: T follows from its scalars
    backend.scale_blocks(inverse, r, 1.0, z)
    rz = backend.dot(r, z)
    p[...] = z
    for _ in range(steps):
        backend.multiply(matrix, p, q)
        alpha = rz / backend.dot(p, q)
        if alphas and not (np.isfinite(alpha) & (alpha > 0)).all():
            break
        backend.axpy(r, (-alpha).astype(np.float32), q)
        backend.scale_blocks(inverse, r, 1.0, z)
        new = backend.dot(r, z)
        alphas.append(alpha)
        betas.append(new / rz)
        backend.xpay(z, (new / rz).astype(np.float32), p)
        rz = new
        # nothing is left where the level has as many unknowns as steps were made
        if not (np.isfinite(rz).all() and (rz > 0).all()):
            break
    return max(_ritz(np.array(alphas)[:, m], np.array(betas)[:, m]) for m in range(4))


def random_vector(shape: tuple[int, ...], seed: int = 0) -> NDArray[np.float32]:
    """Draw standard normal numbers, the same ones by however many threads."""
    out = np.empty(shape, dtype=np.float32)
    flat = out.reshape(-1)
    streams = np.random.SeedSequence(seed).spawn(-(-flat.size // _STREAM))

    def fill(first: int, last: int) -> None:
        for k in range(first, last):
            part = flat[k * _STREAM : (k + 1) * _STREAM]
            rng = np.random.default_rng(streams[k])
            rng.standard_normal(out=part, dtype=np.float32)

    over(len(streams), fill, few=1)
    return out


def _ritz(alpha: Any, beta: Any) -> float:
    diagonal = 1.0 / alpha
    diagonal[1:] += beta[:-1] / alpha[:-1]
    off = np.sqrt(beta[:-1]) / alpha[:-1]
    matrix = np.diag(diagonal) + np.diag(off, 1) + np.diag(off, -1)
    return float(np.linalg.eigvalsh(matrix)[-1])


# weights of the optimised fourth-kind polynomials (Lottes 2023, table 1)
_WEIGHTS = {
    1: (1.12500000000000,),
    2: (1.02387287570313, 1.26408905371085),
    3: (1.00842544782028, 1.08867839208730, 1.33753125909618),
    4: (1.00391310427285, 1.04035811188593, 1.14863498546254, 1.38268869241000),
}


def relaxations(degree: int, top: float) -> list[float]:
    """Factors of the smoothing steps x += factor D^-1 (b - A x), smallest first.

    They are the inverse roots of the optimised fourth-kind Chebyshev polynomial
    (Lottes 2023), which needs the largest eigenvalue only and damps everything above
    the coarse grid's reach evenly. Steps in factors need one vector less than the
    three-term recurrence, and at these degrees rounding does not tell them apart.

    Parameters
    ----------
    degree : 1 to 4. top : largest eigenvalue of D^-1 A.
    """
    t = Polynomial([0.0, 1.0])
    solution, remainder, step = (
        Polynomial([0.0]),
        Polynomial([1.0]),
        Polynomial([4 / 3]),
    )
    for k, weight in enumerate(_WEIGHTS[degree], start=1):
        solution = solution + weight * step
        remainder = remainder - t * step
        step = (2 * k - 1) / (2 * k + 3) * step
        step = step + (8 * k + 4) / (2 * k + 3) * remainder
    roots = (1.0 - t * solution).roots()
    return sorted((1.0 / (top * roots.real)).tolist())


class Chebyshev:
    """Polynomial smoother of block Jacobi for one level; see `relaxations`.

    Parameters
    ----------
    backend, matrix : the level's FP32 operator.
    inverse : (n, k, k) float32 inverse diagonal blocks.
    degree : of the polynomial, one product with A each; one less from zero.
    top : largest eigenvalue of D^-1 A, with its safety factor.
    """

    def __init__(
        self, backend: Backend, matrix: Blocks, inverse: Any, degree: int, top: float
    ) -> None:
        self.backend = backend
        self.matrix = matrix
        self.inverse = inverse
        self.top = top
        self.factors = relaxations(degree, top)
        shape = (matrix.n_rows, matrix.rows, LANES)
        self._spare = backend.xp.zeros(shape, dtype=inverse.dtype)

    def twin(self) -> Chebyshev:
        """Return the same with a work vector of its own."""
        other = copy(self)
        other._spare = self.backend.xp.zeros_like(self._spare)  # noqa: SLF001
        return other

    @property
    def bytes(self) -> int:
        """Memory beside the matrix."""
        return int(self.inverse.nbytes + self._spare.nbytes)

    def from_zero(self, b: Any, x: Any) -> tuple[Any, Any]:
        """Smooth A x = b from x = 0; returns the result and the other buffer."""
        self.backend.scale_blocks(self.inverse, b, self.factors[0], x)
        return self._sweep(b, x, self._spare, self.factors[1:])

    def improve(self, b: Any, x: Any, spare: Any, sums: Any = None) -> tuple[Any, Any]:
        """Smooth A x = b from x; returns the result and the other buffer.

        Parameters
        ----------
        sums : gets parts of the inner product of result and b, see `DeviceIteration`.
        """
        if sums is None:
            return self._sweep(b, x, spare, self.factors)
        *most, last = self.factors
        x, spare = self._sweep(b, x, spare, most)
        device = cast("DeviceIteration", self.backend)
        device.relax_summed(self.matrix, self.inverse, b, x, last, spare, sums)
        return spare, x

    def _sweep(
        self, b: Any, x: Any, spare: Any, factors: list[float]
    ) -> tuple[Any, Any]:
        for factor in factors:
            self.backend.relax(self.matrix, self.inverse, b, x, factor, spare)
            # the buffers change roles: a sweep reads all of x while it writes
            x, spare = spare, x
        return x, spare


class LocalSmoother:
    """The same on the few rows where the error is slow to vanish.

    Parameters
    ----------
    matrix : those rows, from `LocalRows.stiffness_rows`.
    degree, top : as in `Chebyshev`.
    """

    def __init__(
        self,
        backend: LocalRows,
        matrix: Blocks,
        degree: int,
        top: float,
    ) -> None:
        self._backend = backend
        self._matrix = matrix
        self.factors = relaxations(degree, top)

    @property
    def share(self) -> float:
        """Share of the level's rows."""
        return self._matrix.n_rows / self._matrix.n_columns

    @property
    def bytes(self) -> int:
        """Memory with the matrix."""
        return int(self._matrix.bytes)

    def improve(self, b: Any, x: Any, spare: Any) -> None:
        """Smooth A x = b on the rows, in place; ``spare`` is like x and overwritten."""
        for factor in self.factors:
            self._backend.relax_rows(self._matrix, b, x, factor, spare)
