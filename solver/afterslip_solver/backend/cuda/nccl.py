"""Exchange between the GPUs of one host through NCCL; one process per GPU."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

# NVLink multicast can put shared GPUs out of service; sums here are too small to gain
os.environ["NCCL_NVLS_ENABLE"] = "0"
os.environ["NVSHMEM_DISABLE_NVLS"] = "1"
os.environ["TORCH_SYMM_MEM_DISABLE_MULTICAST"] = "1"
# every solve records a graph anew: registering its buffers would not pay
os.environ["NCCL_GRAPH_REGISTER"] = "0"

import cupy
import numpy as np
from cupy.cuda import nccl

from afterslip_solver.backend.base import LANES, BackendError
from afterslip_solver.backend.cuda.backend import GpuBackend
from afterslip_solver.backend.cuda.iteration import (
    _BLOCKS,
    _FOLD,
    Descent,
    GraphIteration,
    Product,
)
from afterslip_solver.backend.cuda.loader import kernel

UNIQUE = "unique id"


def device_count() -> int:
    """Count the CUDA devices that this process may use."""
    try:
        return int(cupy.cuda.runtime.getDeviceCount())
    except cupy.cuda.runtime.CUDARuntimeError:
        return 0


def open_rank(
    rank: int,
    size: int,
    ask: Callable[[str, Any], Any],
    deterministic: bool = False,
) -> tuple[GpuBackend, NcclCommunicator]:
    """Take device ``rank`` for this process and meet the other ranks.

    Parameters
    ----------
    ask : hands a value in and returns what all ranks receive; the ``UNIQUE`` id is
        that of rank 0.
    deterministic : see `backend.get`.

    Raises
    ------
    BackendError
        If there are fewer devices than ranks, or NCCL is missing.
    """
    count = device_count()
    if count < size:
        message = f"{size} GPUs are asked for and {count} are visible"
        raise BackendError(message)
    if not nccl.available:
        raise BackendError("NCCL is not installed (the package nvidia-nccl-cu13)")
    cupy.cuda.Device(rank).use()
    own = nccl.get_unique_id() if rank == 0 else None
    unique = ask(UNIQUE, own)
    return GpuBackend(deterministic), NcclCommunicator(size, unique, rank)


class NcclCommunicator:
    """One GPU's end; calls are queued on the current stream. See `Communicator`."""

    device_iteration = True

    def __init__(self, size: int, unique: Any, rank: int) -> None:
        self.size = size
        self.rank = rank
        self._connection = nccl.NcclCommunicator(size, unique, rank)
        self._types = {"f": nccl.NCCL_FLOAT32, "d": nccl.NCCL_FLOAT64}

    def all_reduce(self, values: Any) -> None:
        """See `Communicator`."""
        self._reduce(values, nccl.NCCL_SUM)

    def maximise(self, values: Any) -> None:
        """See `Communicator`."""
        self._reduce(values, nccl.NCCL_MAX)

    def _reduce(self, values: Any, how: int) -> None:
        if self.size == 1:
            return
        pointer, stream = values.data.ptr, cupy.cuda.get_current_stream().ptr
        kind = self._types[values.dtype.char]
        self._connection.allReduce(pointer, pointer, values.size, kind, how, stream)

    def exchange(self, buffer: Any, spans: Sequence[tuple[int, slice, slice]]) -> None:
        """See `Communicator`."""
        kind = self._types[buffer.dtype.char]
        stream = cupy.cuda.get_current_stream().ptr
        row, width = buffer.strides[0], buffer.size // max(len(buffer), 1)
        start = buffer.data.ptr
        nccl.groupStart()
        for peer, out, into in spans:
            count = (out.stop - out.start) * width
            self._connection.send(start + out.start * row, count, kind, peer, stream)
            self._connection.recv(start + into.start * row, count, kind, peer, stream)
        nccl.groupEnd()

    def iteration(self, *arguments: Any) -> PartIteration:
        """Conjugate gradients on parts, with their scalars on the device."""
        return PartIteration(self, *arguments)


class PartIteration(GraphIteration):
    """An iteration whose inner products are summed over the ranks.

    Parameters
    ----------
    communicator : to the other ranks.
    product, descent, vectors, capture : as for `GraphIteration`; product completes
        its result.
    owned : rows that this rank owns, the first ones.
    """

    def __init__(
        self,
        communicator: NcclCommunicator,
        product: Product,
        descent: Descent,
        vectors: tuple[Any, Any] | None,
        capture: bool,
        owned: int,
    ) -> None:
        self._communicator = communicator
        self._owned = owned
        self._unused = cupy.empty((_BLOCKS, LANES))
        super().__init__(product, descent, vectors, capture)

    def _advance(self) -> None:
        run = kernel("conjugate.cu", self._name)
        owned, others = slice(self._owned), slice(self._owned, None)
        for rows, sums in ((owned, self._sums), (others, self._unused)):
            mine = [vector[rows] for vector in self._vectors]
            n = np.int64(mine[0].size // LANES)
            if n:
                run((_BLOCKS,), (256,), (n, self._state, *mine, sums))
        self._find("find_norm", self._sums)

    def _dot(self, a: Any, b: Any) -> None:
        super()._dot(a[: self._owned], b[: self._owned])

    def _find(self, name: str, sums: Any) -> None:
        fold = kernel("conjugate.cu", "fold")
        fold((_FOLD,), (256,), (np.int32(len(sums)), sums, self._few))
        self._communicator.all_reduce(self._few)
        run = kernel("conjugate.cu", name)
        run((1,), (256,), (np.int32(_FOLD), self._few, self._state))
