"""Voxels cut into slabs along z, each moved by the steps of one device.

A slab holds its own planes of nodes and one plane of each neighbour, whose displacement
comes from there after every step. All forces on its own planes then are those of the
whole, found in the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from afterslip_solver.backend.base import LANES, BackendError

# planes of a slab, at least
_LEAST = 4

Int = NDArray[np.int64]
Float = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Planes:
    """Planes of nodes of a slab: first and beyond the last.

    Attributes
    ----------
    held : in its memory. own : that it moves.
    """

    held: tuple[int, int]
    own: tuple[int, int]

    @property
    def inner(self) -> slice:
        """Own planes among those that are held."""
        return slice(self.own[0] - self.held[0], self.own[1] - self.held[0])


def cut(count: int, slabs: int) -> list[Planes]:
    """Divide planes of nodes evenly.

    Kinds of Zener bodies have the parity of a voxel's plane: what is held begins with
    an even one.

    Raises
    ------
    BackendError
        There are too few.
    """
    if count < _LEAST * slabs:
        raise BackendError(
            f"{count} planes of nodes are too few for {slabs} slabs of {_LEAST}: "
            "write waves.gpus: 1"
        )
    ends = [0, *(count * n // slabs // 2 * 2 + 1 for n in range(1, slabs)), count]
    return [
        Planes((max(low - 1, 0), min(high + 1, count)), (low, high))
        for low, high in pairwise(ends)
    ]


class Steps(Protocol):
    """What a slab needs of `waves.WaveSteps`."""

    xp: Any
    real: Any
    name: str
    u: Any
    v: Any

    def force(self, u: Any) -> Any:
        """Return K u."""

    def dot(self, one: Any, other: Any) -> Float:
        """(lane,) inner products of two fields."""

    def prepare(self, dt: float, inverse: Float, damped: Any) -> None:
        """Fix the step."""

    def begin(self, rows: Int, loads: Float) -> None:
        """Be at rest, with loads."""

    def step(self, moment: float) -> None:
        """Go on by one step."""

    def read(self, what: str, rows: Int) -> Float:
        """Return "u" or "v" in some rows."""

    def watch(self, rows: Int, matrix: Any) -> Callable[[str], Float]:
        """Return what finds rows, or a matrix times them."""

    def kinetic(self) -> Float:
        """Kinetic energy of each lane."""

    def state(self) -> dict[str, Any]:
        """Return all that the next step needs."""

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to a state."""


@dataclass(frozen=True, slots=True)
class Slab:
    """One slab.

    Attributes
    ----------
    area : nodes of a plane. on : makes its device the current one.
    """

    steps: Steps
    planes: Planes
    area: int
    on: Callable[[], AbstractContextManager[Any]] = nullcontext

    @property
    def nodes(self) -> slice:
        """All nodes that it holds."""
        return slice(*(self.area * plane for plane in self.planes.held))

    @property
    def inner(self) -> slice:
        """Nodes that it moves, among those that it holds."""
        own = self.planes.inner
        return slice(self.area * own.start, self.area * own.stop)

    def rows(self, rows: Int, n_node: int) -> tuple[Any, Int]:
        """Return which rows of the whole it moves, (n,) bool, and where it has them."""
        component, node = np.divmod(np.asarray(rows, dtype=np.int64), n_node)
        low, high = (self.area * plane for plane in self.planes.own)
        mine = (node >= low) & (node < high)
        nodes = self.nodes
        local = component * (nodes.stop - nodes.start) + node - nodes.start
        return mine, local[mine]


def whole(steps: Steps, shape: tuple[int, int, int]) -> Slab:
    """Return all planes of nodes as one slab."""
    nx, ny, nz = shape
    return Slab(steps, Planes((0, nz), (0, nz)), nx * ny)


# of a plane: who gets it, and who has it, as slab and number among held planes
Copy = tuple[tuple[int, int], tuple[int, int]]
Share = Callable[[Sequence[Slab], Sequence[Any], Sequence[Copy]], None]


def on_host(
    slabs: Sequence[Slab], fields: Sequence[Any], copies: Sequence[Copy]
) -> None:
    """Copy planes of fields, (3, node, lane) of each slab, in one memory."""
    for (to, there), (source, here) in copies:
        area = slabs[to].area
        target = fields[to].reshape(3, -1, area, LANES)
        target[:, there] = fields[source].reshape(3, -1, area, LANES)[:, here]


class SlabSteps:
    """Steps of slabs together; see `waves.WaveSteps`."""

    def __init__(
        self, slabs: Sequence[Slab], shape: tuple[int, int, int], share: Share = on_host
    ) -> None:
        self.slabs, self._share = tuple(slabs), share
        self._n_node = int(np.prod(shape))
        self._planes = shape[2]
        self.real, self.name = slabs[0].steps.real, slabs[0].steps.name
        self._copies: list[Copy] = []
        for low in range(len(slabs) - 1):
            ends = slabs[low].planes.inner.stop, slabs[low + 1].planes.inner.start
            self._copies += [
                ((low, ends[0]), (low + 1, ends[1])),
                ((low + 1, ends[1] - 1), (low, ends[0] - 1)),
            ]

    def share(self, fields: Sequence[Any]) -> None:
        """Give each slab the planes of its neighbours that it holds."""
        self._share(self.slabs, fields, self._copies)

    def prepare(self, dt: float, inverse: Float, damped: Any) -> None:
        """Fix the step; planes of neighbours are not moved."""
        rows, remain, pull = damped
        every = np.asarray(inverse).reshape(3, self._n_node)
        for slab in self.slabs:
            mine, local = slab.rows(rows, self._n_node)
            own = np.zeros_like(every[:, slab.nodes])
            own[:, slab.inner] = every[:, slab.nodes][:, slab.inner]
            with slab.on():
                slab.steps.prepare(dt, own.ravel(), (local, remain[mine], pull[mine]))

    def begin(self, rows: Int, loads: Float) -> None:
        """Be at rest, with loads."""
        for slab in self.slabs:
            mine, local = slab.rows(rows, self._n_node)
            with slab.on():
                slab.steps.begin(local, loads[mine])

    def step(self, moment: float) -> None:
        """Go on by one step."""
        for slab in self.slabs:
            with slab.on():
                slab.steps.step(moment)
        self.share([slab.steps.u for slab in self.slabs])

    def read(self, what: str, rows: Int) -> Float:
        """Return "u" or "v" in some rows."""
        found = np.zeros((len(rows), LANES))
        for slab in self.slabs:
            mine, local = slab.rows(rows, self._n_node)
            if mine.any():
                with slab.on():
                    found[mine] = slab.steps.read(what, local)
        return found

    def watch(self, rows: Int, matrix: Any) -> Callable[[str], Float]:
        """Return what finds rows, or a matrix times them."""
        if matrix is None:
            return lambda what: self.read(what, rows)
        parts = []
        for slab in self.slabs:
            mine, local = slab.rows(rows, self._n_node)
            with slab.on():
                own = matrix[:, np.flatnonzero(mine)]
                parts.append((slab, slab.steps.watch(local, own)))

        def look(what: str) -> Float:
            total = np.zeros((matrix.shape[0], LANES))
            for slab, watched in parts:
                with slab.on():
                    total += watched(what)
            return total

        return look

    def kinetic(self) -> Float:
        """Kinetic energy of each lane."""
        total = np.zeros(LANES)
        for slab in self.slabs:
            with slab.on():
                total += slab.steps.kinetic()
        return total

    def state(self) -> dict[str, Any]:
        """Return what one device would return."""
        whole: dict[str, Any] = {}
        for slab in self.slabs:
            with slab.on():
                state = slab.steps.state()
            low, high = slab.planes.held
            for name, part in state.items():
                # memory is of voxels, of which there is a layer less
                layers = high - low - (name == "memory")
                planes = part.reshape(len(part), layers, -1, LANES)
                if name not in whole:
                    count = self._planes - (name == "memory")
                    shape = len(part), count, *planes.shape[2:]
                    whole[name] = np.zeros(shape, part.dtype)
                own = slab.planes.inner if name != "memory" else slice(0, layers)
                first = low + own.start
                whole[name][:, first : low + own.stop] = planes[:, own]
        return {
            name: part.reshape(len(part), -1, LANES) for name, part in whole.items()
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to a state."""
        for slab in self.slabs:
            low, high = slab.planes.held
            own = {}
            for name, part in state.items():
                if name not in {"u", "v", "memory"}:
                    continue
                less = int(name == "memory")
                every = part.reshape(len(part), self._planes - less, -1, LANES)
                held = every[:, low : high - less]
                own[name] = held.reshape(len(part), -1, LANES)
            with slab.on():
                slab.steps.restore(own)


def voxels_of(voxels: Any, planes: Planes) -> Any:
    """Return the voxels of a slab."""
    low, high = planes.held
    nx, ny, _ = voxels.shape
    layers = slice(low, high - 1)
    relaxing = voxels.relaxing
    if relaxing is not None:
        lam, mu = relaxing.lam[layers], relaxing.mu[layers]
        relaxing = replace(relaxing, lam=lam, mu=mu)
    own = {"lam": voxels.lam[layers], "mu": voxels.mu[layers], "relaxing": relaxing}
    return replace(voxels, shape=(nx, ny, high - low), **own)
