"""The P2 stiffness of a refined mesh by stencils of its macro elements.

Elements that make no lattice, because vertices were moved onto a curved fault or the
material varies, are done one by one as in `matrix_free`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any
from weakref import WeakKeyDictionary

import cupy
import numpy as np
from numpy.typing import NDArray

from afterslip_solver.backend.base import Discretisation
from afterslip_solver.backend.cuda import half, variants
from afterslip_solver.backend.cuda.colouring import Colouring
from afterslip_solver.backend.cuda.loader import NOWHERE, allow_shared, kernel
from afterslip_solver.backend.cuda.macro_blocks import plan_blocks
from afterslip_solver.backend.cuda.macro_plan import (
    Macros,
    find_macros,
    shapes,
    uniform,
)
from afterslip_solver.backend.cuda.matrix_free import (
    MatrixFree,
    PlanOnDevice,
    Products,
    clear,
    join,
    thread_blocks,
)
from afterslip_solver.backend.cuda.stencils import DESCENDANTS
from afterslip_solver.mesh.tables.sorting import by_number
from afterslip_solver.model import Bool, Float

# share of macro elements from which stencils are used
_ENOUGH = 0.2


@dataclass(frozen=True, eq=False, slots=True)
class Lattices:
    """Macro elements of a mesh that are straight.

    Attributes
    ----------
    macros : all. colouring : of them. gradients : (n_macro, 3, 3) 1/m.
    straight : (n_macro,). even : (n_macro,) of those, whether not too flat for FP16.
    """

    macros: Macros
    colouring: Colouring
    gradients: Float
    straight: Bool
    even: Bool

    @classmethod
    def of(cls, space: Discretisation) -> Lattices | None:
        """Find them; None where too few elements would use them."""
        macros = find_macros(space.elements)
        if macros is None or not macros.found.all():
            return None
        gradients, straight = shapes(space, macros)
        if straight.mean() < _ENOUGH:
            return None
        even = straight.copy()
        even[straight] = half.even(gradients[straight])
        colouring = Colouring.of(macros, space.fixed)
        return cls(macros, colouring, gradients, straight, even)

    def chosen(self, lam: Float, mu: Float) -> Bool | None:
        """(n_macro,) those of one material; None where they are too few."""
        chosen = self.straight & uniform(lam) & uniform(mu)
        return chosen if chosen.mean() >= _ENOUGH else None


@dataclass(slots=True)
class MacroPlan:
    """Tables on the device that operators with the same macro elements share.

    Attributes
    ----------
    which : (n_macro,) macro elements of the mesh, by colour. parts : of them by colour,
        those that are even and the others.
    nodes : (n_macro, 969) uint32, see nodes.cuh. shared : (n,) uint32 likewise, nodes
        whose sums are added. tables : of `Tasks` but the matrices, which are there in
        each precision that was asked for.
    rest : plan of the other elements, if any. others : (n_elem,) bool, which they are.
    made : bytes that no operator has accounted for yet.
    """

    which: NDArray[np.int64]
    parts: list[tuple[slice, slice]]
    nodes: Any
    shared: Any
    tables: tuple[Any, ...]
    rest: PlanOnDevice | None
    others: NDArray[np.bool_]
    made: int
    _matrices: dict[Any, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, space: Discretisation, found: Lattices, chosen: Bool) -> MacroPlan:
        """Make the plan of a mesh and copy it to the device."""
        tasks, colouring = variants.macro_tasks(), found.colouring
        colours, count = colouring.colours, colouring.count
        turn = np.where(chosen, 2 * colours + ~found.even, np.int64(2 * count))
        starts, which = by_number(turn, 2 * count + 1)
        which = which[: starts[-2]]
        each = [slice(*ends) for ends in pairwise(starts[:-1].tolist())]
        parts = list(zip(each[::2], each[1::2], strict=True))
        nodes = np.take(found.macros.nodes[which], tasks.nodes, axis=1)
        others = np.repeat(~chosen, DESCENDANTS)
        rest = None
        if others.any():
            blocks = np.flatnonzero(~chosen)
            plan = plan_blocks(found.macros, blocks, colouring, variants.MACRO_SHAPE)
            rest = PlanOnDevice.beside(space, others, plan, colours[blocks], count)
        host = (tasks.places, tasks.tasks, tasks.first, tasks.reads, tasks.rows)
        tables = tuple(cupy.asarray(a) for a in host)
        entries = cupy.asarray(colouring.entries(nodes, colours[which]))
        on_device = cupy.asarray(colouring.added())
        made = sum(int(a.nbytes) for a in (entries, on_device, *tables))
        return cls(which, parts, entries, on_device, tables, rest, others, made)

    def matrices(self, real: Any) -> Any:
        """(9, n_block) S of the blocks that are made."""
        if real not in self._matrices:
            host = variants.macro_tasks().matrices
            self._matrices[real] = cupy.asarray(host, dtype=real)
            self.made += int(self._matrices[real].nbytes)
        return self._matrices[real]

    def account(self) -> int:
        """Bytes made since the last call."""
        made, self.made = self.made, 0
        return made


class MacroStiffness(Products):
    """K u of one set of moduli in one precision; see `MatrixFree`.

    Parameters
    ----------
    lam, mu : (n_elem,) float64, the same in all elements of the plan's macro elements.
    real : NumPy's dtype of float32 or float64.
    in_half : in FP32, smooth and make residuals by products in FP16 where moduli and
        shapes allow it.
    """

    def __init__(
        self,
        space: Discretisation,
        found: Lattices,
        plan: MacroPlan,
        lam: Float,
        mu: Float,
        real: Any,
        in_half: bool,
    ) -> None:
        self._real, self._plan = real, plan
        first = plan.which * DESCENDANTS
        values = np.zeros((len(first), 12))
        values[:, :9] = found.gradients[plan.which].reshape(-1, 9)
        values[:, 9] = lam[first] * space.volume[first]
        values[:, 10] = mu[first] * space.volume[first]
        self._shapes = cupy.asarray(values, dtype=real)
        self._half_shapes: Any = None
        self._packed = half.PackedBlocks()
        self.bytes = int(self._shapes.nbytes)
        in_half = in_half and real == np.float32
        if in_half and half.compressible(lam[first], mu[first]):
            self._half_shapes = cupy.asarray(half.scaled(values), dtype=real)
            # with the diagonal blocks, of the first smoothing step
            self.bytes += int(self._half_shapes.nbytes) + 16 * len(space.nodes)
        self._rest, self.n_sums, self._n_rest = None, len(first), 0
        self.n_joined = thread_blocks(plan.shared)
        self._matrices = plan.matrices(real)
        self.bytes += plan.account()
        if plan.rest is not None:
            moduli = lam[plan.others], mu[plan.others]
            also = in_half and half.compressible(*moduli)
            self._rest = MatrixFree(plan.rest, *moduli, real, also)
            self._n_rest = self._rest.n_sums
            self.n_sums += self._n_rest
            self.bytes += self._rest.bytes

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
        plan, gain = self._plan, self._real.type(gain)
        halves = self._half_shapes is not None
        packed = halves and inverse is not None
        if packed:
            inverse = self._packed.of(inverse)
        options = variants.elastic(self._real, u.dtype, finish, packed=packed)
        clear(options, plan.shared, out)
        vectors = u, b, inverse, gain, out, sums
        for k, (even, flat) in enumerate(plan.parts):
            if self._rest is not None:
                one = slice(k, k + 1)
                self._rest.add(finish, *vectors, one, packed)
            in_half = halves and finish != variants.PRODUCT
            self._add(even, in_half, packed, finish, *vectors)
            self._add(flat, False, packed, finish, *vectors)
        if finish != variants.PRODUCT:
            own = NOWHERE if sums is None else sums[self.n_sums :]
            rest = [NOWHERE if a is None else a for a in (b, inverse)]
            tail = (*rest, gain, NOWHERE, out, own)
            join(options, (plan.shared, NOWHERE, NOWHERE), u, tail)

    def _add(
        self,
        part: slice,
        in_half: bool,
        packed: bool,
        finish: int,
        u: Any,
        b: Any,
        inverse: Any,
        gain: Any,
        out: Any,
        sums: Any,
    ) -> None:
        """Do macro elements of one colour."""
        n = part.stop - part.start
        if n == 0:
            return
        options = variants.macro(self._real, u.dtype, finish, in_half, packed)
        apply = kernel("macro.cu", "macro", *options)
        memory = variants.macro_memory(self._real, in_half)
        allow_shared(apply, memory)
        shapes = self._half_shapes if in_half else self._shapes
        places, *tasks = self._plan.tables
        tables = self._plan.nodes[part], shapes[part], places, self._matrices, *tasks
        rest = [NOWHERE if a is None else a for a in (b, inverse)]
        dots = NOWHERE if sums is None else sums[self._n_rest :][part]
        arguments = (*tables, u, *rest, gain, out, dots)
        apply((n,), (variants.MACRO_THREADS,), arguments, shared_mem=memory)


class Stencils:
    """Makes stiffnesses by stencils, and keeps what they share on a mesh.

    Parameters
    ----------
    in_half : whether they smooth by products in FP16.
    """

    def __init__(self, in_half: bool = True) -> None:
        self._in_half = in_half
        self._lattices: WeakKeyDictionary[Any, Lattices | None] = WeakKeyDictionary()
        self._plans: WeakKeyDictionary[Any, dict[bytes, MacroPlan]]
        self._plans = WeakKeyDictionary()

    def stiffness(
        self, space: Discretisation, lam: Float, mu: Float, real: Any
    ) -> MacroStiffness | None:
        """K; None where the mesh has too few macro elements of one material.

        None also where a thread block may not have the shared memory that it takes.
        """
        most = cupy.cuda.Device().attributes["MaxSharedMemoryPerBlockOptin"]
        if variants.macro_memory(real) > most:
            return None
        if space not in self._lattices:
            self._lattices[space] = Lattices.of(space)
        found = self._lattices[space]
        chosen = None if found is None else found.chosen(lam, mu)
        if found is None or chosen is None:
            return None
        plans = self._plans.setdefault(space, {})
        key = chosen.tobytes()
        if key not in plans:
            plans[key] = MacroPlan.of(space, found, chosen)
        return MacroStiffness(space, found, plans[key], lam, mu, real, self._in_half)
