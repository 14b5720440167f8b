"""Sums over the GPUs of one host through each other's memory.

The rows that two parts share are so few that starting and ending NCCL's kernel takes
longer than the copy. Here one kernel writes them where the other GPU reads them, and
another waits for those of the others and adds them, in the order of the ranks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import cupy
import numpy as np

from afterslip_solver.backend.base import LANES
from afterslip_solver.backend.cuda.loader import kernel
from afterslip_solver.backend.cuda.variants import name_of
from afterslip_solver.model import Int

# ranks that a window has flags for, and bytes of a flag's cache line
_RANKS, _LINE = 8, 128
_HEADER = _LINE * (1 + _RANKS)
# numbers of a reduction
_ROOM = 1024
# bytes of a row in FP64, and of the pieces that a device gives memory in
ROW, _PIECE = 3 * LANES * 8, 1 << 21
_BLOCKS = 264

# from the bytes of this rank, as many on all ranks, to those of all in order
Gather = Callable[[bytes], list[bytes]]


@dataclass(frozen=True, slots=True)
class Window:
    """Memory of this GPU that the other ranks write, and theirs.

    Attributes
    ----------
    rank : this one. bases : addresses by rank. halves : bytes of each half, by rank.
    """

    rank: int
    bases: list[int]
    halves: list[int]

    @property
    def own(self) -> tuple[Any, Any, Any]:
        """Addresses of this rank's window and of its halves."""
        base = self.bases[self.rank]
        first = base + _HEADER
        found = base, first, first + self.halves[self.rank]
        return np.uint64(found[0]), np.uint64(found[1]), np.uint64(found[2])

    def targets(self, firsts: Mapping[int, int]) -> Any:
        """(len(firsts), 4) what peer_sums.cu wants of each rank, on the device.

        Parameters
        ----------
        firsts : by rank, its row where those of this rank begin.
        """
        table = np.zeros((len(firsts), 4), dtype=np.uint64)
        for row, (rank, first) in zip(table, firsts.items(), strict=True):
            base, half = self.bases[rank], self.halves[rank]
            flag = base + _LINE * (1 + self.rank)
            row[:] = base + _HEADER, base + _HEADER + half, flag, first
        return cupy.asarray(table)


def open_window(rank: int, gather: Gather, half: int) -> Window | None:
    """Open one on every rank; None on all of them if one rank cannot.

    It stays for as long as the process, as peers may still have it open.

    Parameters
    ----------
    half : bytes of a half, which may differ between ranks.
    """
    runtime = cupy.cuda.runtime
    own, handle = 0, bytes(64)
    try:
        size = -(-(_HEADER + 2 * half) // _PIECE) * _PIECE
        own = runtime.malloc(size)
        runtime.memset(own, 0, size)
        runtime.deviceSynchronize()
        handle = runtime.ipcGetMemHandle(own)
    except runtime.CUDARuntimeError:
        own = 0
    found = gather(handle + half.to_bytes(8, "little"))
    halves = [int.from_bytes(theirs[64:], "little") for theirs in found]
    bases = [own] * len(found)
    try:
        for peer in set(range(len(found))) - {rank}:
            bases[peer] = runtime.ipcOpenMemHandle(found[peer][:64])
    except runtime.CUDARuntimeError:
        own = 0
    opened = gather(bytes([own != 0]))
    return Window(rank, bases, halves) if all(map(any, opened)) else None


class SharedRows:
    """The sum of the last rows of a nodal vector, which parts share.

    Parameters
    ----------
    window : with halves for the rows that come. gather : see `open_window`.
    rows : by peer, those of the last rows that it has too, in an order that both
        agree on.
    joined : CSR (starts, places) of what adds up to each of the last rows, ranks
        ascending: its own number, or the number of rows and on for what comes, peers
        ascending.
    """

    def __init__(
        self,
        window: Window,
        gather: Gather,
        rows: Mapping[int, Int],
        joined: tuple[Int, Int],
    ) -> None:
        peers = sorted(rows)
        sizes = [len(rows[peer]) for peer in peers]
        begins = np.cumsum([0, *sizes])
        # where those of each peer begin here
        mine = np.zeros(len(window.bases), dtype=np.int64)
        mine[peers] = begins[:-1]
        theirs = [np.frombuffer(found, dtype=np.int64) for found in gather(bytes(mine))]
        firsts = {peer: int(theirs[peer][window.rank]) for peer in peers}

        def numbers(values: Any) -> Any:
            return cupy.asarray(np.asarray(values, dtype=np.int32))

        self._own = window.own
        self._n_peer, self._n_put = np.int32(len(peers)), int(begins[-1])
        packed = np.concatenate([np.empty(0), *(rows[peer] for peer in peers)])
        self._put = numbers(begins), numbers(packed), window.targets(firsts)
        self._join = numbers(peers), *map(numbers, joined)

    def __call__(self, tail: Any) -> None:
        """Replace the last rows (n, 3, lane) by their sums over the parts."""
        if not self._n_put:
            return
        own, *halves = self._own
        real, n = f"REAL={name_of(tail.dtype)}", len(tail)
        put, join = (kernel("peer_sums.cu", name, real) for name in ("put", "join"))
        arguments = (self._n_peer, *self._put, tail, own)
        put((_grid(self._n_put),), (256,), arguments)
        arguments = (np.int32(n), self._n_peer, *self._join, *halves, tail, own)
        join((_grid(n),), (256,), arguments)


def _grid(rows: int) -> int:
    return min(-(-3 * rows // 256), _BLOCKS)


class Reduction:
    """Sums or largest values of a few numbers over the ranks.

    Parameters
    ----------
    window : with halves of `half` bytes.
    """

    half = 8 * _ROOM * _RANKS

    def __init__(self, window: Window) -> None:
        size = len(window.bases)
        self._sizes = np.int32(_ROOM), np.int32(window.rank), np.int32(size)
        self._targets = window.targets(dict.fromkeys(range(size), 0))
        self._own = window.own

    @staticmethod
    def takes(values: Any) -> bool:
        """Whether there is room for the values, and they are FP64."""
        return bool(values.dtype == np.float64 and values.size <= _ROOM)

    def __call__(self, values: Any, largest: bool) -> None:
        """Replace the values."""
        own, *halves = self._own
        sizes = np.int32(values.size), *self._sizes, np.int32(largest)
        arguments = (*sizes, self._targets, *halves, values, own)
        kernel("peer_sums.cu", "reduce")((1,), (256,), arguments)


def reachable(rank: int, size: int) -> bool:
    """Whether this rank's GPU may write in the memory of all others of this host."""
    if size > _RANKS:
        return False
    peers = set(range(size)) - {rank}
    return all(cupy.cuda.runtime.deviceCanAccessPeer(rank, peer) for peer in peers)
