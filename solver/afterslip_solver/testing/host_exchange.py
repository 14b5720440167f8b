"""Exchange through the whole's endpoint: slow, but between processes without a GPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from afterslip_solver.backend import Backend, get
from afterslip_solver.parallel.communicator import Span

_SUM, _MOST, _SWAP = "sum", "most", "swap"


def open_rank(
    rank: int, size: int, ask: Callable[[str, Any], Any]
) -> tuple[Backend, HostCommunicator]:
    """One core and a way to the others; see `ProcessRankGroup`."""
    return get("cpu", threads=1), HostCommunicator(rank, size, ask)


class HostCommunicator:
    """See `Communicator`."""

    device_iteration = False

    def __init__(self, rank: int, size: int, ask: Callable[[str, Any], Any]) -> None:
        self.rank = rank
        self.size = size
        self._ask = ask

    def shared_rows(self, *_: Any) -> None:
        """See `Communicator`."""

    def all_reduce(self, values: Any) -> None:
        """See `Communicator`."""
        values[...] = self._ask(_SUM, np.array(values))

    def maximise(self, values: Any) -> None:
        """See `Communicator`."""
        values[...] = self._ask(_MOST, np.array(values))

    def exchange(self, buffer: Any, spans: Sequence[Span]) -> None:
        """See `Communicator`."""
        mine = {peer: np.array(buffer[out]) for peer, out, _ in spans}
        theirs = self._ask(_SWAP, mine)
        for peer, _, into in spans:
            buffer[into] = theirs[peer]


def _sum(values: list[Any]) -> list[Any]:
    return [sum(values[1:], values[0])] * len(values)


def _most(values: list[Any]) -> list[Any]:
    return [np.max(values, axis=0)] * len(values)


def _swap(sent: list[dict[int, Any]]) -> list[dict[int, Any]]:
    return [
        {peer: sent[peer][rank] for peer in sent[rank]} for rank in range(len(sent))
    ]


ANSWERS = {_SUM: _sum, _MOST: _most, _SWAP: _swap}
