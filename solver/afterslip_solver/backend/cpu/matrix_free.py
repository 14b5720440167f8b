"""The stiffness of quadratic elements without a matrix; see `elements`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from afterslip_solver.backend.base import Discretisation
from afterslip_solver.backend.cpu import elements as kernels
from afterslip_solver.backend.cpu.blocks import WIDTH
from afterslip_solver.backend.cpu.pairs import NUMBERS, TWO

# elements of a chunk: its sums and displacements fit a core's own cache
CHUNK = 2048

# calls kernel(start, stop) with ranges of so many rows
Sweep = Callable[..., None]


@dataclass(frozen=True, eq=False)
class Plan:
    """Tables of one mesh, which all stiffnesses on it share.

    Attributes
    ----------
    taken : (n_elem,) element that each one in the tables is; the last one may be there
        twice, so that their number is even.
    nodes, places, rows, inner, owners : as in `elements.apply`.
    shared, starts, slots : as in `elements.apply_shared`.
    fixed : (n,) components that are held.
    """

    taken: NDArray[np.int64]
    nodes: NDArray[np.int32]
    places: NDArray[np.int32]
    rows: NDArray[np.int64]
    inner: NDArray[np.int64]
    owners: NDArray[np.int32]
    shared: NDArray[np.int32]
    starts: NDArray[np.int64]
    slots: NDArray[np.int64]
    fixed: NDArray[np.int64]

    @classmethod
    def of(cls, space: Discretisation) -> Plan:
        """Cut the elements into chunks, in their order."""
        n, n_node = len(space.elements), len(space.nodes)
        taken = np.minimum(np.arange(n + -n % TWO), n - 1)
        elements = space.elements[taken]
        chunks = [elements[k : k + CHUNK] for k in range(0, n, CHUNK)]
        owners = [np.unique(chunk) for chunk in chunks]
        times = np.bincount(np.concatenate(owners), minlength=n_node)
        owners = [
            nodes[np.argsort(times[nodes] > 1, kind="stable")] for nodes in owners
        ]
        place, places = np.empty(n_node, dtype=np.int32), []
        for chunk, nodes in zip(chunks, owners, strict=True):
            place[nodes] = np.arange(len(nodes))
            places.append(place[chunk])
        rows = np.cumsum([0, *map(len, owners)])
        every = np.concatenate(owners)
        among = every[times[every] > 1]
        return cls(
            taken,
            _offsets(elements),
            _offsets(np.concatenate(places)),
            rows,
            np.array([(times[nodes] == 1).sum() for nodes in owners]),
            every,
            np.flatnonzero(times != 1).astype(np.int32),
            np.cumsum([0, *times[times != 1]]),
            np.argsort(among, kind="stable"),
            np.flatnonzero(space.fixed),
        )

    @property
    def bytes(self) -> int:
        """Memory of the tables."""
        return sum(array.nbytes for array in vars(self).values())


def _offsets(rows: NDArray[np.integer]) -> NDArray[np.int32]:
    """Where rows of three components begin."""
    return WIDTH * rows.reshape(-1).astype(np.int32)


class MatrixFree:
    """K of one set of moduli, for vectors (n_node, 3, lane) of one precision.

    Parameters
    ----------
    lam, mu : (n_elem,) float64.
    """

    def __init__(
        self,
        space: Discretisation,
        plan: Plan,
        lam: NDArray[np.float64],
        mu: NDArray[np.float64],
        real: type[np.floating[Any]],
    ) -> None:
        self._plan = plan
        n = len(plan.taken) // TWO
        self._numbers = np.empty((n, NUMBERS, TWO), dtype=real)
        weight = space.volume / 20.0
        columns = [*space.gradients[:, 1:].reshape(-1, 9).T, lam * weight, mu * weight]
        for k, column in enumerate(columns):
            self._numbers[:, k] = column[plan.taken].reshape(n, TWO)
        if len(plan.taken) > len(space.volume):
            # the last one counts once
            self._numbers[-1, 9:, 1] = 0.0
        self._sums = _Spare(int(np.diff(plan.rows).max()), self._numbers.dtype)
        self._shared = _Spare(len(plan.slots), self._numbers.dtype)

    @property
    def bytes(self) -> int:
        """What a product reads once."""
        return int(self._numbers.nbytes) + self._plan.bytes

    def multiply(self, sweep: Sweep, u: Any, out: Any) -> None:
        """Out = K u; u must be zero on fixed components."""
        self._apply(sweep, kernels.PRODUCT, (u, u, u), 0.0, out)
        kernels.hold(self._plan.fixed, out.reshape(-1))

    def residual(self, sweep: Sweep, b: Any, u: Any, out: Any) -> None:
        """Out = b - K u, zero on fixed components."""
        self._apply(sweep, kernels.RESIDUAL, (u, b, u), 0.0, out)
        kernels.hold(self._plan.fixed, out.reshape(-1))

    def relax(
        self, sweep: Sweep, inverse: Any, b: Any, u: Any, gain: float, out: Any
    ) -> None:
        """Out = u + gain D^-1 (b - K u); ``inverse`` is zero for what is fixed."""
        self._apply(sweep, kernels.RELAXED, (inverse, b, u), gain, out)

    def _apply(
        self, sweep: Sweep, kind: int, vectors: Any, gain: float, out: Any
    ) -> None:
        plan, numbers = self._plan, self._numbers
        flat = (v.reshape(-1) for v in vectors)
        values = kind, *flat, numbers.dtype.type(gain), out.reshape(-1)
        tables = plan.nodes, plan.places, numbers, CHUNK // TWO, plan.rows, plan.inner
        with self._shared.array() as shared:

            def chunks(first: int, last: int) -> None:
                with self._sums.array() as sums:
                    kernels.apply(
                        *tables, plan.owners, *values, shared, sums, first, last
                    )

            sweep(len(plan.inner), chunks, 2)
            others = plan.shared, plan.starts, plan.slots, *values, shared
            sweep(len(plan.shared), partial(kernels.apply_shared, *others))


class _Spare:
    """Work arrays of n rows, one for each product that goes on at a time."""

    def __init__(self, n: int, real: np.dtype[Any]) -> None:
        self._size, self._real = WIDTH * n, real
        self._left: list[NDArray[Any]] = []

    @contextmanager
    def array(self) -> Iterator[NDArray[Any]]:
        """Lend one; what it holds is left from before."""
        try:
            found = self._left.pop()
        except IndexError:
            found = np.empty(self._size, dtype=self._real)
        yield found
        self._left.append(found)
