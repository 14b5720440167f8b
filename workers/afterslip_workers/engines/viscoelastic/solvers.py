"""What solves the groups of one model, and how many at a time."""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from afterslip_solver.greens import Prepared
from afterslip_solver.parallel import DistributedModel
from afterslip_workers.errors import CancelledError

_LOOK_EVERY_S = 0.1
Solver = Prepared | DistributedModel


class Solvers:
    """The prepared model, and perhaps its twin for another group beside.

    Two solves fill the times in which each alone would wait for the host.

    Parameters
    ----------
    prepared : the model.
    twice : whether there is room for its twin.
    """

    def __init__(self, prepared: Solver, twice: bool) -> None:
        twin = None
        if twice and isinstance(prepared, Prepared):
            twin = prepared.twin()
        # the last one that was used has its vectors still
        self._free: queue.LifoQueue[Solver] = queue.LifoQueue()
        for own in (twin, prepared):
            if own is not None:
                self._free.put(own)

    @contextmanager
    def one(self, should_stop: Callable[[], bool]) -> Iterator[Solver]:
        """Wait for one that is free, and have it alone.

        Raises
        ------
        CancelledError
            If it is asked to stop before.
        """
        found = self._wait(should_stop)
        try:
            yield found
        finally:
            self._free.put(found)

    def _wait(self, should_stop: Callable[[], bool]) -> Solver:
        while True:
            try:
                return self._free.get(timeout=_LOOK_EVERY_S)
            except queue.Empty:
                if should_stop():
                    raise CancelledError from None
