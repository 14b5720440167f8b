"""The P2 stiffness on a CUDA device without a matrix."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import cupy
import numpy as np
from numpy.typing import NDArray

from afterslip_solver.array_cache import NO_CACHE, Arrays, CacheScope
from afterslip_solver.backend.base import LANES, Discretisation
from afterslip_solver.backend.cuda import half, variants
from afterslip_solver.backend.cuda.loader import NOWHERE, allow_shared, kernel
from afterslip_solver.backend.cuda.plan import Plan, make_plan
from afterslip_solver.model import Bool, Float

# per cent of the blocks that share one launch, hence one size of shared memory, where
# there are more blocks than the device works on at once
COMMON, MANY = 95, 2000
_ALL = slice(None)


class _Part(NamedTuple):
    """Some elements of a mesh; a `Discretisation`."""

    elements: NDArray[np.int32]
    nodes: Float
    gradients: Float
    volume: Float
    fixed: Bool
    cache: CacheScope = NO_CACHE

    @classmethod
    def of(cls, space: Discretisation, chosen: NDArray[np.bool_]) -> _Part:
        """Take the chosen elements of a mesh."""
        arrays = (space.gradients[chosen], space.volume[chosen])
        return cls(space.elements[chosen], space.nodes, *arrays, space.fixed)


@dataclass(slots=True)
class PlanOnDevice:
    """Tables that all operators on one mesh share.

    Attributes
    ----------
    repeatable : whether products add in a fixed order.
    made : bytes of tables that no operator has accounted for yet.
    """

    host: Plan
    shape: variants.Shape
    repeatable: bool
    volume: Any
    members: Any
    tables: tuple[Any, ...]
    joining: tuple[Any, ...]
    launches: list[tuple[Any, int]]
    made: int
    _on_host: Float
    _gradients: dict[Any, Any] = field(default_factory=dict)
    _partial: dict[Any, Any] = field(default_factory=dict)

    @classmethod
    def beside(
        cls,
        space: Discretisation,
        chosen: NDArray[np.bool_],
        plan: Plan,
        colours: NDArray[np.int8],
        count: int,
    ) -> PlanOnDevice:
        """Copy the plan of some elements; blocks of a colour (n_block,) go together."""
        part, slots = _Part.of(space, chosen), np.diff(plan.slots)
        launches = [_launch(slots, colours == k) for k in range(count)]
        return cls._copied(part, plan, variants.MACRO_SHAPE, False, launches)

    @classmethod
    def of(
        cls,
        space: Discretisation,
        repeatable: bool,
        shape: variants.Shape = variants.SHAPE,
    ) -> PlanOnDevice:
        """Make the plan of a mesh and copy it to the device."""
        warps, per_task = shape.threads // 32, shape.per_task

        def make() -> Arrays:
            mesh = space.elements, space.nodes, space.fixed
            return make_plan(*mesh, shape.block, warps, per_task).as_arrays()

        name = f"plan-{shape.block}-{warps}-{per_task}"
        plan = Plan(**space.cache.get(name, make))
        launches = _launches(np.diff(plan.slots))
        return cls._copied(space, plan, shape, repeatable, launches)

    @classmethod
    def _copied(
        cls,
        space: Discretisation,
        plan: Plan,
        shape: variants.Shape,
        repeatable: bool,
        launches: list[tuple[Any, int]],
    ) -> PlanOnDevice:
        blocks = (plan.tasks, plan.slots, plan.nodes, plan.patterns)
        tables = (*blocks, plan.local)
        joining = (plan.shared, plan.starts, plan.places)
        on_device = [cupy.asarray(table) for table in (*tables, *joining)]
        members, volume = cupy.asarray(plan.members), cupy.asarray(space.volume)
        made = sum(table.nbytes for table in (*on_device, members, volume))
        return cls(
            plan,
            shape,
            repeatable,
            volume,
            members,
            tuple(on_device[: len(tables)]),
            tuple(on_device[len(tables) :]),
            launches,
            made,
            space.gradients,
        )

    def gradients(self, real: Any) -> Any:
        """(n_task, 9, per_task) of barycentric coordinates 1..3."""
        if real not in self._gradients:
            values = cupy.asarray(self._on_host[:, 1:].reshape(-1, 9), dtype=real)
            self._gradients[real] = self.packed(values, real)
            self.made += self._gradients[real].nbytes
        return self._gradients[real]

    def partial(self, real: Any) -> Any:
        """Room for the sums of shared nodes, one per block and node, or none."""
        if not self.repeatable:
            return NOWHERE
        if real not in self._partial:
            shape = (len(self.host.nodes), 3, self.shape.lanes)
            self._partial[real] = cupy.empty(shape, dtype=real)
            self.made += self._partial[real].nbytes
        return self._partial[real]

    def packed(self, values: Any, real: Any) -> Any:
        """Element values (n_elem, k) as (n_task, k, per_task); zeros where none is."""
        out = cupy.empty(
            (len(self.members), values.shape[1], self.shape.per_task), dtype=real
        )
        there = self.members >= 0
        for k in range(values.shape[1]):
            out[:, k] = cupy.where(there, values[:, k][self.members], 0)
        return out

    def account(self) -> int:
        """Bytes made since the last call."""
        made, self.made = self.made, 0
        return int(made)


def _launches(slots: NDArray[np.int32]) -> list[tuple[Any, int]]:
    """Blocks of one launch and their largest number of slots."""
    share = COMMON if len(slots) > MANY else 100
    common = int(np.percentile(slots, share, method="lower"))
    chosen = (slots <= common, slots > common)
    return [_launch(slots, which) for which in chosen]


def _launch(slots: NDArray[np.int32], chosen: NDArray[np.bool_]) -> tuple[Any, int]:
    which = np.flatnonzero(chosen).astype(np.int32)
    return cupy.asarray(which), int(slots[which].max(initial=0))


class Products(ABC):
    """What is done with K u on a device, zero on fixed components.

    Attributes
    ----------
    n_sums : parts of the sum of u K u. n_joined : further parts of that of out b.
    """

    n_sums: int
    n_joined: int

    def apply(self, u: Any, out: Any, sums: Any = None) -> None:
        """Out = K u; FP64 sums (n_sums, lane) over parts of u K u where given."""
        self._run(variants.PRODUCT, u, None, None, 0.0, out, sums)

    def summing(self) -> Callable[[Any, Any], Any]:
        """Return `apply` of (u, out) that returns its sums, always the same array."""
        sums = cupy.empty((self.n_sums, LANES))

        def product(u: Any, out: Any) -> Any:
            self.apply(u, out, sums)
            return sums

        return product

    def residual(self, b: Any, u: Any, out: Any) -> None:
        """Out = b - K u."""
        self._run(variants.RESIDUAL, u, b, None, 0.0, out, None)

    def relax(self, inverse: Any, b: Any, u: Any, gain: float, out: Any) -> None:
        """Out = u + gain D^-1 (b - K u); out must not be u."""
        self._run(variants.RELAX, u, b, inverse, gain, out, None)

    def relax_summed(
        self, inverse: Any, b: Any, u: Any, gain: float, out: Any, sums: Any
    ) -> None:
        """Do the same; FP64 sums (n_sums + n_joined, 4) over parts of out b."""
        self._run(variants.RELAX_SUMMED, u, b, inverse, gain, out, sums)

    @abstractmethod
    def _run(
        self,
        finish: int,
        u: Any,
        b: Any,
        inverse: Any,
        gain: float,
        out: Any,
        sums: Any,
    ) -> None:
        """Do one of `variants`; see elastic.cu."""


class MatrixFree(Products):
    """K u of one set of moduli in one precision, zero on fixed components.

    Parameters
    ----------
    plan : of the mesh.
    lam, mu : (n_elem,) float64, Pa, or in units that keep FP32 numbers in range.
    real : NumPy's dtype of float32 or float64.
    in_half : smooth and make residuals by products in FP16, in blocks that allow it;
        only in FP32 and with the plan of macro elements.

    Attributes
    ----------
    bytes : memory of the moduli, and of what the plan did not have before.
    """

    def __init__(
        self,
        plan: PlanOnDevice,
        lam: Float,
        mu: Float,
        real: Any,
        in_half: bool = False,
    ) -> None:
        moduli = cupy.stack([cupy.asarray(lam), cupy.asarray(mu)], axis=1)
        moduli *= plan.volume[:, None] / 20.0
        self._real = real
        self._plan = plan
        per_slot = 3 * plan.shape.lanes * real.itemsize + 4
        # the few largest blocks go apart, so that they do not cost the others memory
        self._launches = [(which, slots * per_slot) for which, slots in plan.launches]
        self._most = max(memory for _, memory in self._launches)
        moduli = plan.packed(moduli, real)
        self._partial = plan.partial(real)
        tasks, shapes = plan.tables[0], (plan.gradients(real), moduli)
        self._tables = (*plan.tables, *shapes)
        self._halves: half.HalfBlocks | None = None
        if in_half:
            each = [which for which, _ in plan.launches]
            self._halves = half.HalfBlocks.of(tasks, *shapes, each)
        self.n_sums = len(plan.host.slots) - 1
        self.n_joined = thread_blocks(plan.joining[0], plan.shape)
        self.bytes = int(moduli.nbytes) + plan.account()
        if self._halves is not None:
            self.bytes += self._halves.bytes

    def _run(
        self,
        finish: int,
        u: Any,
        b: Any,
        inverse: Any,
        gain: float,
        out: Any,
        sums: Any,
    ) -> None:
        plan = self._plan
        options = self._options(finish, u)
        if not plan.repeatable:
            clear(options, plan.joining[0], out)
        self.add(finish, u, b, inverse, gain, out, sums)
        if plan.repeatable or finish != variants.PRODUCT:
            rest = [NOWHERE if a is None else a for a in (b, inverse)]
            own = NOWHERE if sums is None else sums[self.n_sums :]
            tail = (*rest, self._real.type(gain), self._partial, out, own)
            join(options, plan.joining, u, tail, plan.shape)

    def add(
        self,
        finish: int,
        u: Any,
        b: Any,
        inverse: Any,
        gain: float,
        out: Any,
        sums: Any,
        launches: slice = _ALL,
        packed: bool = False,
    ) -> None:
        """Finish nodes of one block, and add to those that others share."""
        plan, threads = self._plan, (self._plan.shape.threads,)
        rest = [NOWHERE if a is None else a for a in (b, inverse)]
        last = NOWHERE if sums is None else sums
        head, tail = (u, *rest, self._real.type(gain)), (out, last)
        chosen = self._launches[launches]
        if self._halves is not None and finish != variants.PRODUCT:
            run = kernel(
                "elastic_half.cu", "apply_half", *variants.elastic_half(finish, packed)
            )
            allow_shared(run, variants.HALF_MEMORY)
            tables = (*plan.tables, *self._halves.tables, *head)
            divided = self._halves.launches[launches]
            for which, _ in divided:
                _start(run, which, threads, (*tables, *tail), variants.HALF_MEMORY)
            pairs = zip(divided, chosen, strict=True)
            chosen = [(others, memory) for (_, others), (_, memory) in pairs]
        # also where no block needs it: so it is among those that are compiled ahead
        run = kernel("elastic.cu", "apply", *self._options(finish, u, packed))
        allow_shared(run, self._most)
        tables = (*self._tables, *head, self._partial)
        for which, memory in chosen:
            _start(run, which, threads, (*tables, *tail), memory)

    def _options(self, finish: int, u: Any, packed: bool = False) -> tuple[str, ...]:
        plan = self._plan
        return variants.elastic(
            self._real, u.dtype, finish, plan.repeatable, plan.shape, packed
        )


def _start(run: Any, which: Any, threads: Any, rest: Any, memory: int) -> None:
    """Launch a kernel for some blocks, if any."""
    if len(which):
        run((len(which),), threads, (which, *rest), shared_mem=memory)


def clear(options: tuple[str, ...], shared: Any, out: Any) -> None:
    """Out = 0 on nodes that are shared."""
    if len(shared):
        grid = -(-len(shared) * out[0].nbytes // 4096)
        run = kernel("elastic.cu", "clear", *options)
        run((grid,), (256,), (np.int32(len(shared)), shared, out))


def join(
    options: tuple[str, ...],
    joining: tuple[Any, ...],
    u: Any,
    tail: tuple[Any, ...],
    shape: variants.Shape = variants.SHAPE,
) -> None:
    """Finish the nodes that are shared."""
    grid = thread_blocks(joining[0], shape)
    if grid:
        run = kernel("elastic.cu", "join", *options)
        n = np.int32(len(joining[0]))
        run((grid,), (shape.threads,), (n, *joining, u, *tail))


def thread_blocks(shared: Any, shape: variants.Shape = variants.SHAPE) -> int:
    """Count the thread blocks that finish the nodes that are shared."""
    return -(-len(shared) * (shape.lanes // 4) // shape.threads)
