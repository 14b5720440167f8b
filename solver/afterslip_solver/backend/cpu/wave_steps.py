"""Elastic waves on voxels in the memory of the CPU; see `backend.waves.WaveSteps`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from afterslip_solver.backend.base import LANES
from afterslip_solver.backend.cpu import voxels as kernels
from afterslip_solver.backend.slabs import Slab, whole


class CpuWaveSteps:
    """Steps of one thread: workers run one process per core."""

    xp: Any = np
    name = "cpu"

    def __init__(self, voxels: Any, real: Any) -> None:
        self.voxels, self.real = voxels, np.dtype(real)
        nx, ny, _ = voxels.shape
        self._n = np.array(voxels.shape, dtype=np.int64)
        self._shape = (3, voxels.n_row // 3, LANES)
        self._planes = np.zeros((2, 3, ny * nx, LANES), dtype=self.real)
        nothing = np.zeros((0, 0, 0), dtype=np.float32)
        # memory, moduli and decay of Zener bodies
        self._elastic = (
            np.zeros((6, 0, LANES), dtype=self.real),
            nothing,
            nothing,
            np.zeros(8, dtype=self.real),
        )
        self._zener = self._elastic
        self.slabs: tuple[Slab, ...] = (whole(self, voxels.shape),)

    def share(self, fields: Sequence[Any]) -> None:
        """Do nothing: there is one slab."""

    def _march(self, u: Any, v: Any, coef: Any, dt: float, zener: Any) -> None:
        own = self.voxels
        w = kernels.weights(own.h, own.beta_lam, own.beta_mu, dt, self.real)
        kernels.march(u, v, coef, own.lam, own.mu, w, self._planes, self._n, zener)

    def force(self, u: Any) -> Any:
        """Return K u."""
        found = np.zeros(self._shape, dtype=self.real)
        # with no step u stays, bit for bit
        coef = np.full(self.voxels.n_row, -1.0, self.real)
        self._march(u, found, coef, 0.0, self._elastic)
        return found

    def dot(self, one: Any, other: Any) -> Any:
        """Return inner products of two fields."""
        return (one * other).sum(axis=(0, 1)).astype(np.float64)

    def prepare(self, dt: float, inverse: Any, damped: Any) -> None:
        """Fix the step."""
        self._dt = dt
        self._coef = np.asarray(dt * inverse, dtype=self.real)
        rows, remain, pull = damped
        self._damped = (
            np.asarray(rows, dtype=np.int64),
            np.asarray(remain, dtype=self.real),
            np.asarray(pull, dtype=self.real),
        )

    def begin(self, rows: Any, loads: Any) -> None:
        """Be at rest, with loads."""
        self.u = np.zeros(self._shape, dtype=self.real)
        self.v = np.zeros(self._shape, dtype=self.real)
        self._loaded = np.asarray(rows, dtype=np.int64)
        self._loads = np.ascontiguousarray(loads, dtype=self.real)
        own = self.voxels.relaxing
        if own is not None:
            memory = np.zeros((6, own.mu.size, LANES), dtype=self.real)
            decay = np.exp(-self._dt / own.times).astype(self.real)
            self._zener = memory, own.lam, own.mu, decay

    def step(self, moment: float) -> None:
        """Go on by one step."""
        kernels.damp(self.u, self.v, *self._damped)
        if moment != 0.0:
            factor = self.real.type(moment)
            kernels.push(self.v, self._coef, self._loaded, self._loads, factor)
        self._march(self.u, self.v, self._coef, self._dt, self._zener)

    def read(self, what: str, rows: Any) -> Any:
        """Return "u" or "v" in some rows."""
        whole: Any = getattr(self, what)
        return whole.reshape(-1, LANES)[rows].astype(np.float64)

    def watch(self, rows: Any, matrix: Any) -> Callable[[str], Any]:
        """Return what finds rows, or a matrix times them."""
        if matrix is None:
            return lambda what: self.read(what, rows)
        return lambda what: matrix @ self.read(what, rows)

    def kinetic(self) -> Any:
        """Return the kinetic energy of each lane."""
        total = np.zeros(LANES)
        coef = self._coef.reshape(3, -1)
        # dt over the mass, which no node of air has
        mass = np.divide(self._dt, coef, out=np.zeros_like(coef), where=coef > 0.0)
        for c in range(3):
            total += mass[c] @ (self.v[c] * self.v[c])
        return 0.5 * total

    def state(self) -> dict[str, Any]:
        """Return u and v, and the memory of Zener bodies."""
        found = {"u": self.u, "v": self.v}
        relaxing = self.voxels.relaxing is not None
        return {**found, "memory": self._zener[0]} if relaxing else found

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to a state."""
        self.u[:] = state["u"]
        self.v[:] = state["v"]
        if self.voxels.relaxing is not None:
            self._zener[0][:] = state["memory"]
