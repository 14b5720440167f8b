"""Elastic waves on voxels in the memory of a GPU; see `backend.waves.WaveSteps`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import cupy
import numpy as np

from afterslip_solver.backend.base import LANES, BackendError
from afterslip_solver.backend.cpu.digits import bits, integer_matrices
from afterslip_solver.backend.cuda.loader import kernel
from afterslip_solver.backend.cuda.variants import (
    VoxelShape,
    int8,
    int8_shape,
    voxel,
    voxel_shape,
    voxel_staged,
)
from afterslip_solver.backend.slabs import Slab, whole

_FEW, _WIDE = 128, 512
# thread blocks that add up energies
_PARTS = 1024


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
        device = cupy.cuda.Device().attributes
        processors = device["MultiProcessorCount"]
        own = shape or voxel_shape(self.real, voxels.shape, processors)
        betas = voxels.beta_lam, voxels.beta_mu
        self._definitions = voxel(self.real, own, *betas)
        self._launch = _launch(own, voxels.shape)
        self._kernel = self._compiled(own, False)
        self._chunk = np.int32(own.planes)
        self._lost: tuple[Any, ...] = ()
        if voxels.relaxing is not None:
            lost = voxels.relaxing
            self._lost = cupy.asarray(lost.lam), cupy.asarray(lost.mu)
            self._relaxing = self._compiled(own, True)
        self.slabs: tuple[Slab, ...] = (whole(self, voxels.shape),)

    def share(self, fields: Sequence[Any]) -> None:
        """Do nothing: there is one slab."""

    def _compiled(self, own: VoxelShape, relaxing: bool) -> Any:
        """Return a march, and its bytes of shared memory."""
        betas = self.voxels.beta_lam, self.voxels.beta_mu
        definitions = voxel(self.real, own, *betas, relaxing)
        found = kernel("voxel.cu", "march", *definitions)
        # in two buffers each: forces for neighbours, and planes of u that come
        values = 9 * own.x * own.y * LANES
        if voxel_staged(self.real, relaxing):
            values += 3 * (own.x + 1) * (own.y + 1) * LANES
        shared = 2 * values * self.real.itemsize
        found.max_dynamic_shared_size_bytes = shared
        return found, shared

    def march(
        self, u: Any, then: Any, v: Any, coef: Any, dt: float, memory: Any = ()
    ) -> None:
        """V -= coef K u, then ``then`` = u + dt v; all arrays are the device's.

        Parameters
        ----------
        memory : of Zener bodies, now and after the step; none: there are no bodies.
        """
        grid, block = self._launch
        scale, step = self.real.type(self.voxels.h / 16.0), self.real.type(dt)
        sizes = [np.int32(n) for n in self.voxels.shape]
        arrays = (u, then, v, coef, self._lam, self._mu)
        arguments = (*arrays, *sizes, self._chunk, scale, step)
        if memory:
            arguments = (*arguments, *memory, *self._lost, self._decay)
        call, shared = self._relaxing if memory else self._kernel
        call(grid, block, arguments, shared_mem=shared)

    def force(self, u: Any) -> Any:
        """Return K u."""
        found = cupy.zeros(self._shape, dtype=self.real)
        coef = cupy.full(self.voxels.n_row, -1.0, dtype=self.real)
        values = cupy.ascontiguousarray(u, dtype=self.real)
        self.march(values, cupy.empty_like(values), found, coef, 0.0)
        return found

    def dot(self, one: Any, other: Any) -> Any:
        """Return inner products of two fields, summed in double."""
        parts = cupy.empty((_PARTS, LANES))
        call = kernel("voxel.cu", "inner", *self._definitions)
        rows = np.int64(self.voxels.n_row)
        call((_PARTS,), (_FEW,), (one, other, parts, rows))
        return parts.get().sum(axis=0)

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
        own = self.voxels.relaxing
        if own is not None:
            shape = 2, 6, own.mu.size, LANES
            self._memory = list(cupy.zeros(shape, dtype=self.real))
            decay = np.exp(-self._dt / own.times)
            self._decay = cupy.asarray(decay, dtype=self.real)

    def step(self, moment: float) -> None:
        """Go on by one step."""
        self._rows("damp", len(self._damped[0]), (self.u, self.v, *self._damped))
        if moment != 0.0:
            factor = self.real.type(moment)
            arrays = (self.v, self._coef, self._loaded, self._loads, factor)
            self._rows("push", len(self._loaded), arrays)
        fields = self.u, self._then, self.v, self._coef, self._dt
        if self.voxels.relaxing is None:
            self.march(*fields)
        else:
            self.march(*fields, self._memory)
            self._memory.reverse()
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

    def watch(self, rows: Any, matrix: Any) -> Callable[[str], Any]:
        """Return what finds rows, or a matrix times them on the device."""
        if matrix is None:
            own = cupy.asarray(rows, dtype=np.int64)
            return lambda what: self.read(what, own)
        first = cupy.asarray(matrix.indptr, dtype=np.int64)
        which = cupy.asarray(np.asarray(rows)[matrix.indices], dtype=np.int64)
        values = cupy.asarray(matrix.data, dtype=np.float64)
        count = matrix.shape[0]
        # threads of a row, four of which are the lanes of a value
        wide = _WIDE if matrix.nnz > _WIDE * count else _FEW
        found = cupy.empty((count, LANES))
        call = kernel("voxel.cu", "weigh", *self._definitions)

        def look(what: str) -> Any:
            parts = getattr(self, what), first, which, values, found
            call((count,), (wide,), parts)
            return found.get()

        return look

    def kinetic(self) -> Any:
        """Return the kinetic energy of each lane."""
        parts = cupy.empty((_PARTS, LANES))
        call = kernel("voxel.cu", "kinetic", *self._definitions)
        rows = np.int64(self.voxels.n_row)
        call((_PARTS,), (_FEW,), (self.v, self._coef, parts, rows))
        # coefficients are dt over the mass
        return 0.5 * self._dt * parts.get().sum(axis=0)

    def state(self) -> dict[str, Any]:
        """Return u and v, and the memory of Zener bodies."""
        found = {"u": self.u.get(), "v": self.v.get()}
        relaxing = self.voxels.relaxing is not None
        return {**found, "memory": self._memory[0].get()} if relaxing else found

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to a state."""
        self.u.set(np.ascontiguousarray(state["u"], dtype=self.real))
        self.v.set(np.ascontiguousarray(state["v"], dtype=self.real))
        if self.voxels.relaxing is not None:
            stored = np.ascontiguousarray(state["memory"], dtype=self.real)
            self._memory[0].set(stored)


class GpuInt8Steps(GpuWaveSteps):
    """Steps in FP64 on one GPU whose forces INT8 tensor cores find."""

    def __init__(
        self,
        voxels: Any,
        digits: int,
        shape: VoxelShape | None = None,
    ) -> None:
        super().__init__(voxels, np.float64)
        own = shape or int8_shape()
        definitions = int8(own, digits, bits(digits))
        self._digits = kernel("voxel_int8.cu", "march", *definitions)
        tiles = (own.x - 1, own.y - 1, own.planes)
        sizes = zip(voxels.shape, tiles, strict=True)
        columns = own.x * own.y
        # forces of four edges along x, twice, and three planes of u
        cells = 3 * (own.x + 1) * (own.y + 1) * LANES
        planes = 3 * (-(-cells // 16) * 16 + 8)
        shared = (8 * (3 * 4 * columns + 4) + planes) * 8
        self._tiled = tuple(-(-n // size) for n, size in sizes), (4 * columns,), shared
        self._planes = np.int32(own.planes)
        self._digits.max_dynamic_shared_size_bytes = shared
        self._matrices = cupy.asarray(_fragments())
        # once: conversions and products of moduli were 3 % of a step's instructions
        lam, mu = (part.astype(np.float64).ravel() for part in (self._lam, self._mu))
        scale = np.float64(voxels.h / 256.0)
        self._moduli = cupy.stack([(lam + 2.0 * mu) * scale, mu * scale], axis=1)

    def march(
        self,
        u: Any,
        then: Any,
        v: Any,
        coef: Any,
        dt: float,
        memory: Any = (),  # noqa: ARG002 - refused with integers
    ) -> None:
        """V -= coef K u, then ``then`` = u + dt v; all arrays are the device's."""
        grid, block, shared = self._tiled
        sizes = [np.int32(n) for n in self.voxels.shape]
        arrays = (u, then, v, coef, self._moduli, self._matrices)
        arguments = (*arrays, *sizes, self._planes, np.float64(dt))
        self._digits(grid, block, arguments, shared_mem=shared)


def _fragments() -> Any:
    """(6, 2, 32) uint32, bytes of A and B as each thread of a warp holds them.

    Thread 4 n + k has, for the output n of a tile of eight, values of the inputs of
    thread k: two nodes with three components each, padded to eight.
    """
    found = np.zeros((6, 2, 32, 4), dtype=np.uint8)
    for tile in range(6):
        matrix = integer_matrices()[tile // 3]
        for thread in range(32):
            n, k = thread >> 2, thread & 3
            row = 6 * (n >> 1) + 3 * (n & 1) + tile % 3
            for value in range(6):
                entry = matrix[row, 6 * k + value] & 255
                found[tile, value >> 2, thread, value & 3] = entry
    return found.view(np.uint32)[..., 0]


def _launch(own: VoxelShape, shape: tuple[int, int, int]) -> Any:
    """Grid and block of a march."""
    tiles = (own.x - 1, own.y - 1, own.planes)
    grid = tuple(-(-n // size) for n, size in zip(shape, tiles, strict=True))
    return grid, (own.x * own.y * (LANES // own.per),)
