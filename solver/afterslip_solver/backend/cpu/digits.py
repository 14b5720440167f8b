"""Forces of the orthogonal element in integers, as INT8 tensor cores find them.

Displacements of one element and lane share an exponent: q = round(u 2^(bits - e)), and
q is a sum of signed digits of base 256. With the weights 3/4 of `waves.element` the
stiffness is h/256 ((lam + 2 mu) A + mu B), A and B of integers below 128. Products of
digits and matrices are below 2^17, their sum over digits below 2^63: nothing is lost
before the one rounding to FP64. Seven digits carry all 53 bits of FP64.

Ichimura, Fujita, Hori & Lalith, Low-ordered orthogonal voxel finite element with INT8
tensor cores for GPU-based explicit elastic wave propagation analysis, have the idea.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from afterslip_solver.backend.base import LANES
from afterslip_solver.backend.cpu.wave_steps import CpuWaveSteps

FEWEST, MOST = 3, 7
# weights of the transverse modes with which the matrices are integers
BETA = 0.75
_UNIT = 256
# exponents below it are taken as it: scales stay normal numbers
_LEAST = 64 - 1022

Int = NDArray[np.int64]


def bits(digits: int) -> int:
    """Bits of an integer of so many digits, at most those of FP64."""
    return min(8 * digits - 2, 53)


@cache
def integer_matrices() -> Int:
    """(2, 24, 24) A and B; rows and columns are components of corner 0, then 1, ..."""
    sign = np.array([[2 * (a >> i & 1) - 1 for i in range(3)] for a in range(8)])
    product = np.ones((3, 3, 8, 8))
    for i in range(3):
        for j in range(3):
            product[i, j] *= np.outer(sign[:, i], sign[:, j])
            for k in {0, 1, 2} - {i, j}:
                product[i, j] *= 1.0 + BETA * np.outer(sign[:, k], sign[:, k])
    volume = product.transpose(2, 0, 3, 1)
    shear = product.transpose(2, 1, 3, 0).copy()
    for i in range(3):
        shear[:, i, :, i] += np.einsum("kkab->ab", product)
    whole = np.stack([volume, shear - 2.0 * volume]).reshape(2, 24, 24)
    return np.rint(whole * _UNIT / 16.0).astype(np.int64)


def to_integers(u: Any, digits: int) -> tuple[Int, Any]:
    """Integers with one exponent for all values of a column.

    Parameters
    ----------
    u : (24, n) m.

    Returns
    -------
    (24, n) int64; (n,) what an integer is worth, m, a power of two.
    """
    largest = np.abs(u).max(axis=0)
    power = np.where(largest > 0.0, np.frexp(largest)[1], _LEAST)
    power = np.maximum(power, _LEAST)
    finite = np.isfinite(largest)
    safe = np.where(finite, u, 0.0)
    count = bits(digits)
    whole = np.rint(np.ldexp(safe, count - power)).astype(np.int64)
    worth = np.ldexp(np.ones(len(power)), power - count)
    return whole, np.where(finite, worth, np.nan)


def to_digits(whole: Int, digits: int) -> Int:
    """(digits, ...) from -128 to 127, the least first: their sum in base 256."""
    found, rest = np.empty((digits, *whole.shape), dtype=np.int64), whole
    for place in range(digits):
        found[place] = (rest + 128) % 256 - 128
        rest = (rest - found[place]) >> 8
    return found


def column_forces(u: Any, whole: Any, shear: Any, digits: int) -> Any:
    """Return forces of elements.

    Parameters
    ----------
    u : (24, n) m. whole, shear : (n,) h/256 times lam + 2 mu and mu, N/m.

    Returns
    -------
    (24, n) N.
    """
    integers, worth = to_integers(u, digits)
    total = np.zeros((2, *u.shape), dtype=np.int64)
    # products are integers below 2^53: exact in any order in FP64, which has a fast one
    matrices = integer_matrices().astype(np.float64)
    for part in to_digits(integers, digits)[::-1]:
        total = (total << 8) + (matrices @ part.astype(np.float64)).astype(np.int64)
    first, second = total.astype(np.float64)
    return (first * whole + second * shear) * worth


class CpuInt8Steps(CpuWaveSteps):
    """Steps in FP64 whose forces are found in integers of some digits."""

    def __init__(self, voxels: Any, digits: int) -> None:
        super().__init__(voxels, np.float64)
        self.digits = digits

    def _march(self, u: Any, v: Any, coef: Any, dt: float, zener: Any) -> None:
        del zener  # refused with integers
        nx, ny, nz = (int(n) for n in self._n)
        shape = 3, nz, ny, nx, LANES
        old, speed, factor = u.reshape(shape), v.reshape(shape), coef.reshape(shape[:4])
        above = np.zeros((3, ny, nx, LANES))
        for k in range(nz):
            below, carried = np.zeros_like(above), above
            if k < nz - 1:
                below, above = self._layer(old, k)
            force = carried + below
            speed[:, k] -= factor[:, k, :, :, None] * force
            if k:
                old[:, k - 1] += dt * speed[:, k - 1]
        old[:, nz - 1] += dt * speed[:, nz - 1]

    def _layer(self, u: Any, k: int) -> tuple[Any, Any]:
        """(3, ny, nx, lane) forces of a layer's elements on the planes of its nodes."""
        own = self.voxels
        _, _, ny, nx, _ = u.shape
        corners = [
            u[:, k + (a >> 2), (a >> 1 & 1) : ny - 1 + (a >> 1 & 1)][
                :, :, (a & 1) : nx - 1 + (a & 1)
            ]
            for a in range(8)
        ]
        column = np.concatenate(corners).reshape(24, -1)
        scale = own.h / _UNIT
        lam, mu = (
            np.repeat(part[k].astype(np.float64).ravel(), LANES)
            for part in (own.lam, own.mu)
        )
        forces = column_forces(
            column, (lam + 2.0 * mu) * scale, mu * scale, self.digits
        )
        parts = np.zeros((8, 3, ny + 1, nx + 1, LANES))
        parts[:, :, 1:ny, 1:nx] = forces.reshape(8, 3, ny - 1, nx - 1, LANES)
        # of a node: the element at its corner 0, and those before it along x and y
        halves = []
        for a in (0, 4):
            row = parts[a][:, 1:, 1:] + parts[a + 1][:, 1:, :-1]
            behind = parts[a + 2][:, :-1, 1:] + parts[a + 3][:, :-1, :-1]
            halves.append(row + behind)
        return halves[0], halves[1]
