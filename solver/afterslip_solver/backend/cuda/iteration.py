"""One iteration of conjugate gradients as a CUDA graph."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Protocol
from weakref import proxy

import cupy
import numpy as np
from numpy.typing import NDArray

from afterslip_solver.backend.base import LANES
from afterslip_solver.backend.cuda import variants
from afterslip_solver.backend.cuda.loader import kernel
from afterslip_solver.backend.cuda.streams import graph_stream, later

# rows of the state, as in conjugate.cu
_RZ, _CURVATURE, _RELATIVE, _ACTIVE = 0, 3, 4, 5
_SIZE, _UNIT, _SCALE, _TOLERANCE, _ROWS = 6, 7, 8, 9, 10
# thread blocks of sums
_FOLD = 64
_BLOCKS = 1056


# (u, out): out = K u; returns (n, lane) FP64 sums of u K u, or None
Product = Callable[[Any, Any], Any]


class Descent(Protocol):
    """An FP32 preconditioner that works between its own buffers."""

    unit: float

    @property
    def right(self) -> Any:
        """(n, 3, lane) float32, where the residual is put."""

    def descend(self, sums: Any = None) -> Any:
        """Return the result, in a buffer of its own.

        Parameters
        ----------
        sums : gets parts of its inner product with ``right``, see `DeviceIteration`.
        """


class GraphIteration:
    """An iteration that the device repeats without the host.

    Parameters
    ----------
    product : in the precision of x. descent : the preconditioner, referenced weakly,
        so that it may hold this.
    vectors : (n, 3, lane) float64 iterate and residual, both updated. Without them
        both are float32, and the residual is what lies in ``descent.right``, of the
        stiffness over ``descent.unit``.
    capture : record a graph, which all solves replay; else launch one by one.
    sums : (n, lane) float64 for the descent's inner product; computed from its result
        where left out.

    Attributes
    ----------
    x : the iterate. p : the last direction.
    """

    exhausted = False

    def __init__(
        self,
        product: Product,
        descent: Descent,
        vectors: tuple[Any, Any] | None,
        capture: bool,
        sums: Any = None,
    ) -> None:
        self._product = product
        self._descent_sums = sums
        self._descent: Descent = proxy(descent)
        self._scale = 1.0 if vectors is None else 1.0 / descent.unit
        self._name = "advance_single" if vectors is None else "advance"
        self.p = cupy.zeros(descent.right.shape, dtype=np.float32)
        self.x, *rest = vectors or (cupy.zeros_like(self.p),)
        self._q = cupy.zeros_like(self.x)
        self._vectors = (self.p, self._q, self.x, *rest, descent.right)
        self._sums = cupy.empty((_BLOCKS, LANES))
        self._few = cupy.empty((_FOLD, LANES))
        self._state = cupy.empty((_ROWS, LANES))
        self._own = cupy.cuda.Stream() if capture else cupy.cuda.Stream.null
        self._graph: Any = None
        self._capture = capture
        # the first iteration compiles and allocates, which a graph may not
        self._warm = False
        # what the host sees of an iteration while the next one may be running
        self._states: deque[Callable[[], NDArray[np.float64]]] = deque()

    @property
    def begun(self) -> bool:
        """See `SingleIteration`."""
        return bool(self._states)

    @property
    def iterate(self) -> tuple[Any, Any, Any]:
        """See `Iteration`."""
        return self.x, None, None

    def begin(
        self,
        unit: NDArray[Any],
        active: NDArray[Any],
        tolerance: float,
        size: NDArray[Any] | float = 1.0,
    ) -> None:
        """Start a solve with the residual that is there.

        Parameters
        ----------
        unit : (lane,) reference norms. size : (lane,) sizes of the residual.
        active : (lane,) lanes that move. tolerance : at which one stops.
        """
        # of an iteration that was begun and not wanted: its copy may be under way
        while self._states:
            self._states.popleft()()
        state = np.zeros((_ROWS, LANES))
        state[_ACTIVE] = active
        state[_SIZE], state[_UNIT] = size, unit
        state[_SCALE] = self._scale
        state[_TOLERANCE] = tolerance
        self._state.set(state)
        # whatever a solve before left, broken numbers too
        self.p.fill(0.0)
        if self._name == "advance_single":
            self.x.fill(0.0)
            return
        self._q.fill(0.0)
        # alpha is zero: this only puts the scaled residual where it is wanted
        self._advance()

    def step(
        self, look: Callable[[], None], ahead: bool = False
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """See `Iteration`."""
        if not self._states:
            self._queue()
        look()
        if ahead:
            self._queue()
        state = self._states.popleft()()
        return state[_RELATIVE], state[_CURVATURE]

    def _queue(self) -> None:
        """Let the device do an iteration after what it has been given."""
        with graph_stream(self._own) as stream:
            if self._graph is not None:
                self._graph.launch(stream=stream)
            elif self._capture and self._warm:
                stream.begin_capture()
                self._iterate()
                self._graph = stream.end_capture()
                self._graph.launch(stream=stream)
            else:
                self._iterate()
                self._warm = True
            self._states.append(later(self._state))

    def hold(self, lanes: NDArray[np.bool_]) -> None:
        """Leave some lanes (lane,) as they are from now on."""
        for lane in np.flatnonzero(lanes):
            self._state[_ACTIVE, int(lane)] = 0.0

    def rescale(self, factor: NDArray[Any], unit: NDArray[Any]) -> None:
        """See `SingleIteration`."""
        # p stays in the old units, so that what it is multiplied by takes a factor
        self._state[_RZ] *= cupy.asarray(factor)
        self._state[_UNIT] = cupy.asarray(unit)

    def _iterate(self) -> None:
        sums = self._descent_sums
        z = self._descent.descend(sums)
        if sums is None:
            self._dot(z, self._descent.right)
            sums = self._sums
        self._find("find_beta", sums)
        run = kernel("conjugate.cu", "direct")
        run((_BLOCKS,), (256,), (np.int64(z.size // LANES), self._state, z, self.p))
        sums = self._product(self.p, self._q)
        if sums is None:
            self._dot(self.p, self._q)
            sums = self._sums
        self._find("find_alpha", sums)
        self._advance()

    def _advance(self) -> None:
        run = kernel("conjugate.cu", self._name)
        n = np.int64(self.p.size // LANES)
        run((_BLOCKS,), (256,), (n, self._state, *self._vectors, self._sums))
        self._find("find_norm", self._sums)

    def _dot(self, a: Any, b: Any) -> None:
        dot_into(a, b, self._sums)

    def _find(self, name: str, sums: Any) -> None:
        fold = kernel("conjugate.cu", "fold")
        fold((_FOLD,), (256,), (np.int32(len(sums)), sums, self._few))
        run = kernel("conjugate.cu", name)
        run((1,), (256,), (np.int32(_FOLD), self._few, self._state))


def dot_into(a: Any, b: Any, sums: Any) -> None:
    """Put FP64 sums (m, lane) over m parts of a b into ``sums``; a is FP32."""
    run = kernel("conjugate.cu", "dot", f"OTHER={variants.name_of(b.dtype)}")
    run((len(sums),), (256,), (np.int64(a.size // LANES), a, b, sums))
