"""Exchange between the GPUs of one host through NCCL; one process per GPU."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
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
from afterslip_solver.backend.cuda import peer_sums
from afterslip_solver.backend.cuda.backend import GpuBackend
from afterslip_solver.backend.cuda.iteration import (
    _BLOCKS,
    _FOLD,
    Descent,
    GraphIteration,
    Product,
)
from afterslip_solver.backend.cuda.loader import kernel
from afterslip_solver.model import Int

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
    peer_memory: bool = True,
) -> tuple[GpuBackend, NcclCommunicator]:
    """Take device ``rank`` for this process and meet the other ranks.

    Parameters
    ----------
    ask : hands a value in and returns what all ranks receive; the ``UNIQUE`` id is
        that of rank 0.
    deterministic : see `backend.get`.
    peer_memory : sum small arrays through the GPUs' own memory where they reach each
        other's, see `peer_sums`; else all of them through NCCL.

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
    communicator = NcclCommunicator(size, unique, rank, peer_memory)
    return GpuBackend(deterministic), communicator


class NcclCommunicator:
    """One GPU's end; calls are queued on the current stream. See `Communicator`."""

    device_iteration = True

    def __init__(self, size: int, unique: Any, rank: int, peer_memory: bool) -> None:
        self.size = size
        self.rank = rank
        self._connection = nccl.NcclCommunicator(size, unique, rank)
        self._types = {"f": nccl.NCCL_FLOAT32, "d": nccl.NCCL_FLOAT64}
        self._reduction: peer_sums.Reduction | None = None
        # all ranks answer, so that all do the same
        mine = peer_memory and size > 1 and peer_sums.reachable(rank, size)
        if all(map(any, self._gather(bytes([mine])))):
            window = peer_sums.open_window(rank, self._gather, peer_sums.Reduction.half)
            if window is not None:
                self._reduction = peer_sums.Reduction(window)

    def _gather(self, mine: bytes) -> list[bytes]:
        """Return the bytes of all ranks, each of which hands in as many."""
        table = np.zeros((self.size, len(mine)))
        table[self.rank] = np.frombuffer(mine, dtype=np.uint8)
        on_device = cupy.asarray(table)
        self._by_nccl(on_device, nccl.NCCL_SUM)
        return [bytes(row) for row in cupy.asnumpy(on_device).astype(np.uint8)]

    def shared_rows(
        self, rows: Mapping[int, Int], joined: tuple[Int, Int]
    ) -> peer_sums.SharedRows | None:
        """See `Communicator`."""
        if self._reduction is None:
            return None
        half = sum(map(len, rows.values())) * peer_sums.ROW
        window = peer_sums.open_window(self.rank, self._gather, half)
        if window is None:
            return None
        return peer_sums.SharedRows(window, self._gather, rows, joined)

    def all_reduce(self, values: Any) -> None:
        """See `Communicator`."""
        self._reduce(values, nccl.NCCL_SUM)

    def maximise(self, values: Any) -> None:
        """See `Communicator`."""
        self._reduce(values, nccl.NCCL_MAX)

    def _reduce(self, values: Any, how: int) -> None:
        if self.size == 1:
            return
        direct = self._reduction
        if direct is not None and direct.takes(values):
            direct(values, how == nccl.NCCL_MAX)
            return
        self._by_nccl(values, how)

    def _by_nccl(self, values: Any, how: int) -> None:
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
    product, descent, vectors, capture, sums : as for `GraphIteration`; product
        completes its result.
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
        sums: Any = None,
    ) -> None:
        self._communicator = communicator
        self._owned = owned
        self._unused = cupy.empty((_BLOCKS, LANES))
        super().__init__(product, descent, vectors, capture, sums)

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
