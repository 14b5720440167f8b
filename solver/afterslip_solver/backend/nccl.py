"""Exchange between the GPUs of one host through NCCL; one process per GPU."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

# NVLink multicast can put shared GPUs out of service; sums here are too small to gain
os.environ["NCCL_NVLS_ENABLE"] = "0"
os.environ["NVSHMEM_DISABLE_NVLS"] = "1"
os.environ["TORCH_SYMM_MEM_DISABLE_MULTICAST"] = "1"

import cupy
from cupy.cuda import nccl

from afterslip_solver.backend.base import BackendError
from afterslip_solver.backend.gpu import GpuBackend

UNIQUE = "unique id"


def device_count() -> int:
    """Count the CUDA devices that this process may use."""
    try:
        return int(cupy.cuda.runtime.getDeviceCount())
    except cupy.cuda.runtime.CUDARuntimeError:
        return 0


def open_rank(
    rank: int, size: int, ask: Callable[[str, Any], Any]
) -> tuple[GpuBackend, NcclCommunicator]:
    """Take device ``rank`` for this process and meet the other ranks.

    Parameters
    ----------
    ask : hands a value in and returns what all ranks are told; the ``UNIQUE`` id is
        that of rank 0.

    Raises
    ------
    BackendError
        If there are fewer devices than ranks, or NCCL is missing.
    """
    count = device_count()
    if count < size:
        message = f"{size} GPUs are asked for and {count} can be seen"
        raise BackendError(message)
    if not nccl.available:
        raise BackendError("NCCL is not installed (the package nvidia-nccl-cu13)")
    cupy.cuda.Device(rank).use()
    own = nccl.get_unique_id() if rank == 0 else None
    unique = ask(UNIQUE, own)
    return GpuBackend(), NcclCommunicator(size, unique, rank)


class NcclCommunicator:
    """One GPU's end; calls are queued on the current stream. See `Communicator`."""

    def __init__(self, size: int, unique: Any, rank: int) -> None:
        self.size = size
        self.rank = rank
        self._connection = nccl.NcclCommunicator(size, unique, rank)
        self._types = {"f": nccl.NCCL_FLOAT32, "d": nccl.NCCL_FLOAT64}

    def all_reduce(self, values: Any) -> None:
        """See `Communicator`."""
        if self.size == 1:
            return
        pointer, stream = values.data.ptr, cupy.cuda.get_current_stream().ptr
        kind = self._types[values.dtype.char]
        self._connection.allReduce(
            pointer, pointer, values.size, kind, nccl.NCCL_SUM, stream
        )

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
