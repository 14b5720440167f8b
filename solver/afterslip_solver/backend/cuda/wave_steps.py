"""Elastic waves on voxels in the memory of a GPU; see `backend.waves.WaveSteps`."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from afterslip_solver.backend.base import LANES, BackendError
from afterslip_solver.backend.cuda.loader import kernel
from afterslip_solver.backend.cuda.variants import VoxelShape, voxel, voxel_shape

_FEW = 128


class GpuWaveSteps:
    """Steps on one GPU."""

    xp: Any = cupy
    name = "gpu"

    def __init__(self, voxels: Any, real: Any, shape: VoxelShape | None = None) -> None:
        try:
            cupy.cuda.Device().use()
        except cupy.cuda.runtime.CUDARuntimeError as error:
            message = f"no CUDA device can be used: {error}"
            raise BackendError(message) from error
        if voxels.n_row * LANES >= 2**32:
            raise BackendError(
                f"{voxels.n_row // 3 / 1e6:.0f} M nodes are too many for one GPU, at "
                f"most {2**32 / 12 / 1e6:.0f} M: lower waves.frequency"
            )
        self.voxels, self.real = voxels, np.dtype(real)
        self._shape = (3, voxels.n_row // 3, LANES)
        self._lam, self._mu = cupy.asarray(voxels.lam), cupy.asarray(voxels.mu)
        own = shape or voxel_shape(self.real)
        self._definitions = voxel(self.real, own, voxels.beta_lam, voxels.beta_mu)
        self._kernel = kernel("voxel.cu", "march", *self._definitions)
        self._launch = _launch(own, self.real, voxels.shape)
        self._kernel.max_dynamic_shared_size_bytes = self._launch[2]
        self._chunk = np.int32(own.planes)

    def march(self, u: Any, then: Any, v: Any, coef: Any, dt: float) -> None:
        """V -= coef K u, then ``then`` = u + dt v; all arrays are the device's."""
        grid, block, shared = self._launch
        scale, step = self.real.type(self.voxels.h / 16.0), self.real.type(dt)
        sizes = [np.int32(n) for n in self.voxels.shape]
        arrays = (u, then, v, coef, self._lam, self._mu)
        arguments = (*arrays, *sizes, self._chunk, scale, step)
        self._kernel(grid, block, arguments, shared_mem=shared)

    def force(self, u: Any) -> Any:
        """Return K u."""
        found = cupy.zeros(self._shape, dtype=self.real)
        coef = cupy.full(self.voxels.n_row, -1.0, dtype=self.real)
        values = cupy.ascontiguousarray(u, dtype=self.real)
        self.march(values, cupy.empty_like(values), found, coef, 0.0)
        return found

    def prepare(self, dt: float, inverse: Any, damped: Any) -> None:
        """Fix the step."""
        self._dt = dt
        self._coef = cupy.asarray(dt * inverse, dtype=self.real)
        rows, remain, pull = damped
        self._damped = (
            cupy.asarray(rows, dtype=np.int64),
            cupy.asarray(remain, dtype=self.real),
            cupy.asarray(pull, dtype=self.real),
        )

    def begin(self, rows: Any, loads: Any) -> None:
        """Be at rest, with loads."""
        self.u = cupy.zeros(self._shape, dtype=self.real)
        self.v = cupy.zeros(self._shape, dtype=self.real)
        self._then = cupy.zeros(self._shape, dtype=self.real)
        self._loaded = cupy.asarray(rows, dtype=np.int64)
        self._loads = cupy.asarray(loads, dtype=self.real)

    def step(self, moment: float) -> None:
        """Go on by one step."""
        self._rows("damp", len(self._damped[0]), (self.u, self.v, *self._damped))
        if moment != 0.0:
            factor = self.real.type(moment)
            arrays = (self.v, self._coef, self._loaded, self._loads, factor)
            self._rows("push", len(self._loaded), arrays)
        self.march(self.u, self._then, self.v, self._coef, self._dt)
        self.u, self._then = self._then, self.u

    def _rows(self, name: str, n: int, arguments: tuple[Any, ...]) -> None:
        if n == 0:
            return
        call = kernel("voxel.cu", name, *self._definitions)
        blocks = -(-n * LANES // _FEW)
        call((blocks,), (_FEW,), (*arguments, np.int32(n)))

    def read(self, what: str, rows: Any) -> Any:
        """Return "u" or "v" in some rows."""
        whole: Any = getattr(self, what)
        chosen = whole.reshape(-1, LANES)[cupy.asarray(rows)]
        return chosen.get().astype(np.float64)

    def kinetic(self) -> Any:
        """Return the kinetic energy of each lane."""
        total = cupy.zeros(LANES)
        for c, coef in enumerate(self._coef.reshape(3, -1)):
            # dt over the mass, which no node of air has
            mass = cupy.where(coef > 0.0, self._dt / coef, 0.0)[:, None]
            total += (mass * self.v[c] * self.v[c]).sum(axis=0, dtype=np.float64)
        return 0.5 * total.get()

    def state(self) -> dict[str, Any]:
        """Return u and v."""
        return {"u": self.u.get(), "v": self.v.get()}

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to a state."""
        self.u.set(np.ascontiguousarray(state["u"], dtype=self.real))
        self.v.set(np.ascontiguousarray(state["v"], dtype=self.real))


def _launch(own: VoxelShape, real: Any, shape: tuple[int, int, int]) -> Any:
    """Grid, block and bytes of shared memory of a march."""
    tiles = (own.x - 1, own.y - 1, own.planes)
    grid = tuple(-(-n // size) for n, size in zip(shape, tiles, strict=True))
    threads = own.x * own.y * (LANES // own.per)
    return grid, (threads,), 2 * 9 * threads * own.per * np.dtype(real).itemsize
