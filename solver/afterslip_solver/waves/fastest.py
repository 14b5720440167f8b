"""The highest frequency of the voxels, which limits the step."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import eigh_tridiagonal

from afterslip_solver.backend.base import LANES
from afterslip_solver.backend.waves import WaveSteps
from afterslip_solver.model import Float
from afterslip_solver.waves.sides import Dampers

_STEPS = 30
# of the limit of leapfrog: Lanczos finds the highest frequency from below
SHARE = 0.95


def highest_frequency(steps: WaveSteps, mass: Float, held: Dampers) -> float:
    """Largest omega of K u = omega^2 M u by Lanczos, from four random vectors, rad/s.

    Parameters
    ----------
    mass : (n_node,) kg, 0 in air. held : springs are part of K.
    """
    vectors = _Vectors(steps, mass, held)
    q = vectors.random()
    vectors.scale(q, 1.0 / np.sqrt(vectors.dot(q, q)))
    before: list[Any] = []
    alpha, beta = np.zeros((_STEPS, LANES)), np.zeros((_STEPS, LANES))
    for step in range(_STEPS):
        w = vectors.product(q)
        alpha[step] = vectors.dot(w, q)
        vectors.add(w, -alpha[step], q)
        if step:
            vectors.add(w, -beta[step - 1], before)
        beta[step] = np.sqrt(vectors.dot(w, w))
        vectors.scale(w, 1.0 / beta[step])
        before, q = q, w
    largest = [
        eigh_tridiagonal(alpha[:, lane], beta[:-1, lane], eigvals_only=True)[-1]
        for lane in range(LANES)
    ]
    return float(np.sqrt(max(largest)))


def noise(xp: Any, count: int, first: int, last: int) -> Any:
    """(3, last - first, lane) FP32 numbers between -0.5 and 0.5 that look random.

    Each is its own place among those of all ``count`` nodes, mixed by multiplications
    and shifts (as MurmurHash3 by A. Appleby ends). So every array library makes the
    same ones, each slab its own, and a GPU hundreds of millions of them at once.
    """
    of_component = count * LANES * xp.arange(3, dtype=xp.uint32)
    within = xp.arange(first * LANES, last * LANES, dtype=xp.uint32)
    mixed = of_component[:, None] + within
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1)):
        mixed ^= mixed >> xp.uint32(shift)
        mixed *= xp.uint32(factor)
    mixed >>= xp.uint32(8)
    numbers = mixed.astype(xp.float32)
    numbers *= xp.float32(2.0**-24)
    numbers -= xp.float32(0.5)
    return numbers.reshape(3, last - first, LANES)


class _Vectors:
    """Vectors of all slabs, a list of arrays; 0 in what a neighbour moves."""

    def __init__(self, steps: WaveSteps, mass: Float, held: Dampers) -> None:
        self.steps, count = steps, len(mass)
        root = np.divide(1.0, np.sqrt(mass), out=np.zeros_like(mass), where=mass > 0.0)
        self._root, self._springs = [], []
        for slab in steps.slabs:
            own = np.zeros_like(root[slab.nodes])
            own[slab.inner] = root[slab.nodes][slab.inner]
            mine, rows = slab.rows(held.rows, count)
            with slab.on():
                xp = slab.steps.xp
                spring = xp.asarray(held.spring[mine])[:, None].astype(steps.real)
                self._root.append(xp.asarray(own.astype(steps.real))[None, :, None])
                self._springs.append((xp.asarray(rows), spring))
        self._count = count

    def random(self) -> list[Any]:
        """Return M^(-1/2) times random numbers, the same however many slabs are."""
        found = []
        for slab, root in zip(self.steps.slabs, self._root, strict=True):
            with slab.on():
                nodes = slab.nodes
                numbers = noise(slab.steps.xp, self._count, nodes.start, nodes.stop)
                found.append(root * numbers)
        return found

    def product(self, q: list[Any]) -> list[Any]:
        """Return M^(-1/2) K M^(-1/2) q."""
        slabs = self.steps.slabs
        fields = []
        for slab, root, part in zip(slabs, self._root, q, strict=True):
            with slab.on():
                fields.append(root * part)
        self.steps.share(fields)
        found = []
        for n, slab in enumerate(slabs):
            rows, spring = self._springs[n]
            with slab.on():
                w = slab.steps.force(fields[n])
                flat, of = w.reshape(-1, LANES), fields[n].reshape(-1, LANES)
                flat[rows] += spring * of[rows]
                w *= self._root[n]
            found.append(w)
        return found

    def dot(self, one: list[Any], other: list[Any]) -> Float:
        """(lane,) inner products."""
        total = np.zeros(LANES)
        for slab, a, b in zip(self.steps.slabs, one, other, strict=True):
            with slab.on():
                total += slab.steps.dot(a, b)
        return total

    def scale(self, vector: list[Any], by: Float) -> None:
        """Multiply each lane."""
        for slab, part in zip(self.steps.slabs, vector, strict=True):
            with slab.on():
                part *= slab.steps.xp.asarray(by.astype(self.steps.real))

    def add(self, vector: list[Any], by: Float, other: list[Any]) -> None:
        """Add each lane's multiple of another vector."""
        for slab, part, more in zip(self.steps.slabs, vector, other, strict=True):
            with slab.on():
                part += slab.steps.xp.asarray(by.astype(self.steps.real)) * more
