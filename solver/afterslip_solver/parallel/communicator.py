"""How the parts of one model talk to each other, and threads that do so."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from afterslip_solver.model import Int

# a peer and the rows that go to it and come from it
Span = tuple[int, slice, slice]


class Communicator(Protocol):
    """One rank's end of the exchange; every call is made by all ranks alike.

    Attributes
    ----------
    size : number of ranks. rank : of this one, from 0.
    device_iteration : it is a `DeviceCommunicator`.
    """

    device_iteration: bool

    @property
    def size(self) -> int:
        """See the class."""

    @property
    def rank(self) -> int:
        """See the class."""

    def all_reduce(self, values: Any) -> None:
        """Replace an array by its sum over the ranks, the same bits on all."""

    def maximise(self, values: Any) -> None:
        """Replace an array by the largest of each value over the ranks."""

    def exchange(self, buffer: Any, spans: Sequence[Span]) -> None:
        """Send rows of a buffer to peers and fill others with theirs."""

    def shared_rows(
        self, rows: Mapping[int, Int], joined: tuple[Int, Int]
    ) -> Callable[[Any], None] | None:
        """Return what sums the last rows of nodal vectors, if more directly.

        Parameters
        ----------
        rows : by peer, those of the last rows that it has too.
        joined : CSR (starts, places) of what adds up to each of the last rows: the
            row itself, or the number of them and on for what comes from peers.
        """


class DeviceCommunicator(Communicator, Protocol):
    """A communicator of devices that iterate by themselves."""

    def iteration(self, *arguments: Any) -> Any:
        """Conjugate gradients whose inner products are summed over the ranks."""


class Meeting:
    """Where the threads of one process meet.

    Parameters
    ----------
    size : number of threads.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.table: list[Any] = [None] * size
        self.barrier = threading.Barrier(size)


class ThreadCommunicator:
    """One thread of a `Meeting`; arrays are NumPy's."""

    device_iteration = False

    def __init__(self, meeting: Meeting, rank: int) -> None:
        self._meeting = meeting
        self.rank = rank

    @property
    def size(self) -> int:
        """See `Communicator`."""
        return self._meeting.size

    def shared_rows(self, *_: Any) -> None:
        """See `Communicator`."""

    def all_reduce(self, values: Any) -> None:
        """See `Communicator`; summed in the order of the ranks."""
        table = self._show(values)
        total = np.zeros_like(values)
        for other in table:
            total += other
        self._leave()
        values[...] = total

    def maximise(self, values: Any) -> None:
        """See `Communicator`."""
        largest = np.max(self._show(values), axis=0)
        self._leave()
        values[...] = largest

    def exchange(self, buffer: Any, spans: Sequence[Span]) -> None:
        """See `Communicator`."""
        table = self._show((buffer, spans))
        for peer, _, mine in spans:
            other, outward = table[peer]
            there = next(out for to, out, _ in outward if to == self.rank)
            buffer[mine] = other[there]
        self._leave()

    def _show(self, item: Any) -> list[Any]:
        self._meeting.table[self.rank] = item
        self._meeting.barrier.wait()
        return self._meeting.table

    def _leave(self) -> None:
        # nobody may go on to change what others still read
        self._meeting.barrier.wait()
