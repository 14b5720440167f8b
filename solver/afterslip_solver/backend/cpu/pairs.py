"""Vector instructions for the four lanes of two elements at once.

Eight numbers fill a register of 256 bits in FP32. Tables of two elements hold ``width``
entries of the first, then as many of the second.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.errors import TypingError
from numba.extending import intrinsic

from afterslip_solver.backend.base import LANES
from afterslip_solver.backend.cpu.lanes import (
    Lanes,
    address,
    load_from,
    shuffled,
    store_to,
)

# elements that are done at once
TWO = 2
_BOTH = TWO * LANES


def _begin(
    context: Any, builder: Any, kind: Any, table: Any, at: Any, far: int, further: Any
) -> Any:
    """Entry ``at + far`` of a table of int32, and ``further`` behind that."""
    place = address(context, builder, kind, table, builder.add(at, at.type(far)))
    return builder.add(builder.sext(builder.load(place), at.type), further)


@intrinsic(prefer_literal=True)
def gathered(typing: Any, x: Any, table: Any, width: Any, at: Any, further: Any) -> Any:
    """Four entries of x for each of two elements.

    They begin ``further`` behind what ``table`` says at ``at`` and ``at + width``.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        halves = []
        for far in (0, width.literal_value):
            begin = _begin(context, builder, table, args[1], args[3], far, args[4])
            halves.append(load_from(context, builder, x, args[0], begin, LANES))
        return shuffled(builder, halves, [*range(_BOTH)])

    arguments = x, table, width, types.int64, types.int64
    return Lanes(x.dtype, _BOTH)(*arguments), generate


@intrinsic(prefer_literal=True)
def add_scattered(
    typing: Any, out: Any, table: Any, width: Any, at: Any, further: Any, both: Any
) -> Any:
    """Add to the entries of out that `gathered` would take, one element first."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        for k, far in enumerate((0, width.literal_value)):
            begin = _begin(context, builder, table, args[1], args[3], far, args[4])
            old = load_from(context, builder, out, args[0], begin, LANES)
            part = shuffled(
                builder, [args[5]] * 2, [*range(k * LANES, (k + 1) * LANES)]
            )
            new = builder.fadd(old, part)
            store_to(context, builder, out, args[0], begin, new)
        return context.get_dummy_value()

    if out.dtype != both.real:
        raise TypingError(f"lanes of {both.real} for {out}")
    arguments = out, table, width, types.int64, types.int64, both
    return types.void(*arguments), generate


@intrinsic
def each(typing: Any, x: Any, at: Any) -> Any:
    """Entry ``at`` of x in the lanes of one element, the next one in the other's."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        two = load_from(context, builder, x, args[0], args[1], TWO)
        return shuffled(builder, [two] * 2, [0] * LANES + [1] * LANES)

    return Lanes(x.dtype, _BOTH)(x, types.int64), generate


@intrinsic
def both(typing: Any, x: Any, at: Any) -> Any:
    """Eight entries from ``at`` on."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return load_from(context, builder, x, args[0], args[1], _BOTH)

    return Lanes(x.dtype, _BOTH)(x, types.int64), generate


@intrinsic(prefer_literal=True)
def all_of(typing: Any, x: Any, value: Any) -> Any:
    """Return a whole number eight times, in the precision of an array."""
    result = Lanes(x.dtype, _BOTH)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        numbers = [float(value.literal_value)] * _BOTH
        return ir.Constant(context.get_value_type(result), numbers)

    return result(x, value), generate
