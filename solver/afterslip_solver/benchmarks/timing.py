"""Clocks of the benchmarks, and the thirty days that the paper steps through."""

from __future__ import annotations

import time

from afterslip_solver.backend import Backend
from afterslip_solver.greens.checkpoint import State

DAY = 86400.0
STEPS = 30


def wait(backend: Backend) -> None:
    """Let the device finish what it was given."""
    if backend.name == "gpu":
        backend.xp.cuda.Device().synchronize()


class Clock:
    """A checkpointer that keeps nothing, but notes when it is asked.

    Attributes
    ----------
    marks : s, the moments between solves or steps.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self.marks: list[float] = []

    def load(self) -> State | None:
        """Start from nothing."""
        return None

    def due(self) -> bool:
        """Note the moment."""
        wait(self._backend)
        self.marks.append(time.perf_counter())
        return False

    def save(self, state: State) -> None:
        """Keep nothing."""
