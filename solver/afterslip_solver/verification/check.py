"""One measured error beside what it may be, and why."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

Size = Literal["small", "full"]
Level = Literal["excellent", "good", "acceptable", "missed", "not run"]
Measure = Literal["error", "order"]


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
    excellent : error or order from which the field calls such a result excellent; the
        tolerance where that is as strict already.
    measure : "error" (small is good) or "order" (large is good).
    """

    name: str
    quantity: str
    value: float
    tolerance: float
    passed: bool
    reference: str
    note: str
    excellent: float
    measure: Measure = "error"

    @property
    def level(self) -> Level:
        """Excellent, good (half-way between, in logarithms), acceptable or missed.

        "not run" where a device was missing.
        """
        if self.passed and math.isnan(self.value):
            return "not run"
        if not self.passed:
            return "missed"
        middle = (self.excellent * self.tolerance) ** 0.5
        sign = 1.0 if self.measure == "error" else -1.0
        if sign * self.value <= sign * self.excellent:
            return "excellent"
        return "good" if sign * self.value <= sign * middle else "acceptable"

    def record(self) -> dict[str, str | float | bool | None]:
        """Entry of the JSON file; its keys are stable."""
        return {
            "name": self.name,
            "level": self.level,
            "quantity": self.quantity,
            "measure": self.measure,
            "error": None if math.isnan(self.value) else self.value,
            "limit": None if math.isnan(self.tolerance) else self.tolerance,
            "excellent": None if math.isnan(self.excellent) else self.excellent,
            "passed": self.passed,
            "reference": self.reference,
            "note": self.note,
        }


# measures one part of an item
Part = Callable[[Size], Iterator[Check]]


def at_most(
    name: str,
    quantity: str,
    value: float,
    tolerance: float,
    reference: str,
    note: str,
    excellent: float | None = None,
) -> Check:
    """Check of an error; nan does not pass."""
    passed = bool(value <= tolerance)
    best = tolerance if excellent is None else excellent
    return Check(name, quantity, float(value), tolerance, passed, reference, note, best)


def at_least(
    name: str,
    quantity: str,
    value: float,
    tolerance: float,
    reference: str,
    note: str,
    excellent: float | None = None,
) -> Check:
    """Check of an order of convergence; nan does not pass."""
    passed = bool(value >= tolerance)
    best = tolerance if excellent is None else excellent
    return Check(
        name, quantity, float(value), tolerance, passed, reference, note, best, "order"
    )


def not_run(name: str, quantity: str, reference: str, reason: str) -> Check:
    """Say that a comparison needs something that this machine lacks."""
    nan = float("nan")
    return Check(name, quantity, nan, nan, True, reference, f"not run: {reason}", nan)
