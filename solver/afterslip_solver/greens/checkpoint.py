"""Checkpoints of unfinished curves: storing, packing and resuming them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from afterslip_solver.backend.protocols import VectorOps

State = dict[str, NDArray[Any]]


class Checkpointer(Protocol):
    """Where a run may leave its state between two solves, and find an earlier one.

    A state is a flat dict of host arrays. ``solves`` in it, an int64 scalar, counts
    the solves that it stands for; ``digest`` says of which problem it is. On the CPU a
    run that starts from a state gives the same bits as one that was never interrupted.
    """

    def load(self) -> State | None:
        """Return the newest state of the run, or None; asked once, at the start."""

    def due(self) -> bool:
        """Whether a state is wanted now; asked after every solve, must be cheap."""

    def save(self, state: State) -> None:
        """Store a state; its arrays may be views, so they must be written or copied."""


class StateError(ValueError):
    """A checkpoint is of another problem or incomplete: drop it and start anew."""


def pack(backend: VectorOps, name: str, arrays: Sequence[Any]) -> State:
    """Copy a list of arrays to the host under ``name.count`` and ``name.0``, ...."""
    state = {f"{name}.{k}": backend.to_host(array) for k, array in enumerate(arrays)}
    return {f"{name}.count": np.array(len(arrays)), **state}


def unpack(backend: VectorOps, name: str, state: State) -> list[Any]:
    """Copy a list that `pack` wrote to the backend."""
    count = int(state[f"{name}.count"])
    return [backend.asarray(state[f"{name}.{k}"].copy()) for k in range(count)]
