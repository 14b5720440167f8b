"""One measured error beside what it may be, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Size = Literal["small", "full"]


@dataclass(frozen=True, slots=True)
class Check:
    """Outcome of one comparison.

    Attributes
    ----------
    name : the item of the suite.
    quantity : what was measured, in words.
    value : the measured error, or the order of convergence.
    tolerance : the largest error, or the smallest order, that passes.
    passed : verdict.
    reference : what it was compared with.
    note : why the tolerance is what it is.
    """

    name: str
    quantity: str
    value: float
    tolerance: float
    passed: bool
    reference: str
    note: str


def at_most(
    name: str, quantity: str, value: float, tolerance: float, reference: str, note: str
) -> Check:
    """Check of an error; nan does not pass."""
    passed = bool(value <= tolerance)
    return Check(name, quantity, float(value), tolerance, passed, reference, note)


def at_least(
    name: str, quantity: str, value: float, tolerance: float, reference: str, note: str
) -> Check:
    """Check of an order of convergence; nan does not pass."""
    passed = bool(value >= tolerance)
    return Check(name, quantity, float(value), tolerance, passed, reference, note)
