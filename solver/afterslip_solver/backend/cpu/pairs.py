"""Forces of two elements at once, as vector instructions of their eight lanes.

Eight numbers fill a register of 256 bits in FP32. Numba would take seconds to find the
types of a thousand such operations, so they are put in order here, by Python, when a
kernel that calls `add_forces` is compiled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.errors import TypingError
from numba.extending import intrinsic

from afterslip_solver.backend.base import LANES
from afterslip_solver.backend.cpu.lanes import (
    address,
    ask_for,
    load_from,
    shuffled,
    store_to,
)

# elements that are done at once
TWO = 2
# numbers of an element: three gradients and two moduli
NUMBERS = 11
NODES = 10
# of the six components xx, yy, zz, xy, yz and xz, those of each row of a stress
_ROWS = (0, 3, 5), (3, 1, 4), (5, 4, 2)


@dataclass(frozen=True)
class _Vector:
    """A value of the kernel that is being written."""

    builder: Any
    value: Any

    def __add__(self, other: _Vector) -> _Vector:
        return self._with("fadd", other)

    def __sub__(self, other: _Vector) -> _Vector:
        return self._with("fsub", other)

    def __mul__(self, other: _Vector) -> _Vector:
        return self._with("fmul", other)

    def __rmul__(self, factor: float) -> _Vector:
        return self.filled(factor) * self

    def _with(self, name: str, other: _Vector) -> _Vector:
        # products are added without rounding them before
        made = getattr(self.builder, name)
        value = made(self.value, other.value, flags=["contract"])
        return _Vector(self.builder, value)

    def filled(self, number: float) -> _Vector:
        """Return one number in all lanes."""
        numbers = [number] * self.value.type.count
        return _Vector(self.builder, ir.Constant(self.value.type, numbers))


def _dot(a: Sequence[_Vector], b: Sequence[_Vector]) -> _Vector:
    """Of three components."""
    return a[2] * b[2] + (a[1] * b[1] + a[0] * b[0])


def _derivatives(u: list[_Vector]) -> Any:
    """(4, 3) derivatives of one component along three coordinates, at the vertices.

    Nodes 4 to 9 lie on the edges 01, 12, 02, 03, 13 and 23.
    """
    u1, u2, u3, u4, u5, u6, u7, u8, u9 = (value - u[0] for value in u[1:])
    return (
        (4.0 * u4 - u1, 4.0 * u6 - u2, 4.0 * u7 - u3),
        (3.0 * u1 - 4.0 * u4, 4.0 * (u5 - u4) - u2, 4.0 * (u8 - u4) - u3),
        (4.0 * (u5 - u6) - u1, 3.0 * u2 - 4.0 * u6, 4.0 * (u9 - u6) - u3),
        (4.0 * (u8 - u7) - u1, 4.0 * (u9 - u7) - u2, 3.0 * u3 - 4.0 * u7),
    )


def _stress(u: Any, lam: _Vector, mu: _Vector) -> list[_Vector]:
    """(6,) stress of the gradient (3, 3) of a displacement."""
    pressure, twice = lam * (u[0][0] + u[1][1] + u[2][2]), mu + mu
    return [
        *(twice * u[i][i] + pressure for i in range(3)),
        *(mu * (u[i][k] + u[k][i]) for i, k in ((0, 1), (1, 2), (0, 2))),
    ]


def _forces(t: Any) -> list[_Vector]:
    """One component of the forces of ten nodes: the transpose of `_derivatives`.

    Parameters
    ----------
    t : (4, 3) stresses at the vertices along the gradients of the three coordinates.
    """
    (t01, t02, t03), (t11, t12, t13), (t21, t22, t23), (t31, t32, t33) = t
    f1 = 3.0 * t11 - (t01 + t21 + t31)
    f2 = 3.0 * t22 - (t02 + t12 + t32)
    f3 = 3.0 * t33 - (t03 + t13 + t23)
    f4 = 4.0 * (t01 - (t11 + t12 + t13))
    f5, f8, f9 = 4.0 * (t12 + t21), 4.0 * (t13 + t31), 4.0 * (t23 + t32)
    f6 = 4.0 * (t02 - (t21 + t22 + t23))
    f7 = 4.0 * (t03 - (t31 + t32 + t33))
    # of a motion of the whole element there are no forces
    f0 = t01.filled(0.0) - ((f1 + f2 + f3) + (f4 + f5 + f6) + (f7 + f8 + f9))
    return [f0, f1, f2, f3, f4, f5, f6, f7, f8, f9]


def _plus(a: list[_Vector], b: list[_Vector]) -> list[_Vector]:
    return [x + y for x, y in zip(a, b, strict=True)]


@dataclass(frozen=True)
class _Pair:
    """Two elements of a kernel's arrays.

    Attributes
    ----------
    kinds, values : Numba's types of the arrays, and what they are in the kernel, by
        `add_forces`' names. pair, ahead : numbers of this pair, and of a later one.
    """

    context: Any
    builder: Any
    kinds: dict[str, Any]
    values: dict[str, Any]
    pair: Any
    ahead: Any

    def _array(self, name: str) -> tuple[Any, Any, Any, Any]:
        return self.context, self.builder, self.kinds[name], self.values[name]

    def _entry(self, pair: Any, count: int, of: int) -> Any:
        """Return the number of an entry of tables with ``of`` for a pair."""
        first = self.builder.mul(pair, pair.type(of))
        return self.builder.add(first, pair.type(count))

    def _begins(self, table: str, pair: Any, element: int, node: int) -> Any:
        """Where the row of a node of one of the two begins."""
        at = self._entry(pair, NODES * element + node, TWO * NODES)
        found = self.builder.load(address(*self._array(table), at))
        return self.builder.sext(found, at.type)

    def _lanes(self, name: str, table: str, e: int, node: int, component: int) -> Any:
        """Four entries of a node, and where they begin."""
        begin = self._begins(table, self.pair, e, node)
        at = self.builder.add(begin, begin.type(LANES * component))
        return load_from(*self._array(name), at, LANES), at

    def ask_ahead(self) -> None:
        """Ask memory for the displacements of the later pair."""
        # of a row, in bytes
        middle = 2 * LANES * self.kinds["u"].dtype.bitwidth // 8
        for k in range(TWO * NODES):
            at = self._begins("nodes", self.ahead, *divmod(k, NODES))
            place = address(*self._array("u"), at)
            ask_for(self.builder, place, self.pair.type(middle))

    def number(self, k: int) -> _Vector:
        """One number of each, in all of its lanes."""
        at = self._entry(self.pair, TWO * k, TWO * NUMBERS)
        two = load_from(*self._array("numbers"), at, TWO)
        lanes = [0] * LANES + [1] * LANES
        return _Vector(self.builder, shuffled(self.builder, [two] * 2, lanes))

    def displacements(self, component: int) -> list[_Vector]:
        """(10,) displacements of the nodes."""
        found = []
        for n in range(NODES):
            two = [self._lanes("u", "nodes", e, n, component)[0] for e in range(TWO)]
            vector = shuffled(self.builder, two, [*range(TWO * LANES)])
            found.append(_Vector(self.builder, vector))
        return found

    def add(self, forces: list[_Vector], component: int) -> None:
        """Add (10,) forces of the nodes, one element first."""
        for n, force in enumerate(forces):
            for e in range(TWO):
                old, at = self._lanes("sums", "places", e, n, component)
                lanes = [*range(LANES * e, LANES * (e + 1))]
                part = shuffled(self.builder, [force.value] * 2, lanes)
                new = self.builder.fadd(old, part)
                store_to(*self._array("sums"), at, new)

    def add_forces(self) -> None:
        """Add K u; what has been found is used as soon as possible."""
        numbers = [self.number(k) for k in range(NUMBERS)]
        gradients, (lam, mu) = (numbers[:3], numbers[3:6], numbers[6:9]), numbers[9:]
        along = [*zip(*gradients, strict=True)]
        # of the displacement, at the four vertices
        jacobians: list[list[list[_Vector]]] = [[], [], [], []]
        for component in range(3):
            found = _derivatives(self.displacements(component))
            for jacobian, d in zip(jacobians, found, strict=True):
                jacobian.append([_dot(d, g) for g in along])
        stresses = [_stress(jacobian, lam, mu) for jacobian in jacobians]
        # of products of what is linear; the moduli hold V/20
        total = reduce(_plus, stresses)
        for component, row in enumerate(_ROWS):
            rows = ([s[k] + total[k] for k in row] for s in stresses)
            t = [[_dot(stress, g) for g in gradients] for stress in rows]
            self.add(_forces(t), component)


@intrinsic
def add_forces(
    typing: Any,
    nodes: Any,
    places: Any,
    numbers: Any,
    pair: Any,
    ahead: Any,
    u: Any,
    sums: Any,
) -> Any:
    """Add the forces of two elements to the rows of their nodes in a chunk.

    Parameters
    ----------
    nodes, places, numbers, u, sums : as in `elements.apply`.
    pair : which two. ahead : whose displacements will be needed soon.
    """
    kinds = {"nodes": nodes, "places": places, "numbers": numbers, "u": u, "sums": sums}

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        *tables, which, later, moved, rows = args
        values = dict(zip(kinds, (*tables, moved, rows), strict=True))
        written = _Pair(context, builder, kinds, values, which, later)
        written.ask_ahead()
        written.add_forces()
        return context.get_dummy_value()

    if not numbers.dtype == u.dtype == sums.dtype:
        raise TypingError(f"{numbers}, {u} and {sums} differ in precision")
    int64 = types.int64
    arguments = nodes, places, numbers, int64, int64, u, sums
    return types.void(*arguments), generate
