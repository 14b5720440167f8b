"""What slip may be, beside its sign: bounds, rakes and a known moment."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Literal

from pydantic import Field

from afterslip.errors import Problem
from afterslip.schemas.base import Schema
from afterslip.schemas.values import Name, Within
from afterslip_common.terms import SlipComponent

Sign = Literal["positive", "negative", "free"]
Slip = Annotated[float, Within("m", least=-1000, most=1000)]
Amount = Annotated[float, Within("m", above=0, most=1000)]
Rake = Annotated[float, Within("degrees", least=-360, most=360)]
Magnitude = Annotated[float, Within(least=0, most=11)]
Range = Annotated[list[Slip], Field(min_length=2, max_length=2)]


class Constraint(Schema):
    """What slip of one fault, or of all, may be."""

    fault: Name | None = Field(default=None, description="its name; none: all faults")
    sign: dict[SlipComponent, Sign] = Field(
        default={}, description="{dip: positive}: positive, negative or free"
    )
    bounds: dict[SlipComponent, Range] = Field(
        default={}, description="{dip: [0, 10]}: least and most, m"
    )
    rake: list[Rake] | None = Field(
        default=None,
        min_length=1,
        max_length=2,
        description="[90]: the only one; [60, 120]: from and to, degrees",
    )
    most: Amount | None = Field(
        default=None, description="largest slip along a single rake, m"
    )

    def problems(self) -> Iterator[Problem]:
        """Something is asked for, and one part does not exclude another."""
        if not (self.sign or self.bounds or self.rake):
            yield Problem("", None, "is empty", "write sign, bounds or rake")
        for component, (low, high) in self.bounds.items():
            path = f"bounds.{component}"
            if low >= high:
                hint = "write the smaller one first; no slip: leave the component out"
                yield Problem(path, [low, high], "must grow", hint)
            sign = self.sign.get(component)
            if (sign == "positive" and high <= 0) or (sign == "negative" and low >= 0):
                hint = f"leave out sign.{component}, or move the bounds"
                yield Problem(path, [low, high], f"contradicts the sign {sign}", hint)
        if self.rake is not None and (self.sign or self.bounds):
            hint = "the rake says what both components may be: leave those out"
            yield Problem("rake", self.rake, "excludes sign and bounds", hint)
        if self.rake is not None and len(self.rake) == 2:
            low, high = self.rake
            if not 0 < high - low < 180:
                hint = "write [from, to], such as [60, 120]"
                yield Problem("rake", self.rake, "must span 0 to 180 degrees", hint)
        if self.most is not None and (self.rake is None or len(self.rake) != 1):
            hint = "write rake: [90] beside it, or bounds"
            yield Problem("most", self.most, "needs a single rake", hint)


_LIMITS: dict[Sign, tuple[float, float]] = {
    "positive": (0.0, math.inf),
    "negative": (-math.inf, 0.0),
    "free": (-math.inf, math.inf),
}


def limits_of(
    item: Constraint | None, component: SlipComponent, sign: Sign | None
) -> tuple[float, float]:
    """Range that sign and bounds leave to a component, m.

    Parameters
    ----------
    item : constraint of the fault. sign : of the component on all faults.
    """
    if item is None:
        return _LIMITS[sign or "free"]
    low, high = _LIMITS[item.sign.get(component, sign) or "free"]
    least, most = item.bounds.get(component, (-math.inf, math.inf))
    return max(low, least), min(high, most)


class Moment(Schema):
    """Scalar moment along a rake, known with an error, as one more datum."""

    magnitude: Magnitude = Field(description="Mw")
    error: Annotated[float, Within(above=0, most=1)] = Field(
        description="its standard deviation"
    )
    rake: Rake = Field(description="degrees, along which slip is summed")


def constraint_problems(
    sign: Mapping[SlipComponent, Sign],
    constraints: Sequence[Constraint],
    faults: Mapping[str, Sequence[str]],
) -> Iterator[Problem]:
    """Check constraints against the faults that have sources.

    Parameters
    ----------
    sign : of components on all faults.
    faults : name of each fault with sources, and its components.
    """
    for component, value in sign.items():
        if not any(component in own for own in faults.values()):
            text = "is about a component that sources do not have"
            yield Problem(f"sign.{component}", value, text)
    taken: dict[str, int] = {}
    for index, item in enumerate(constraints):
        path = f"constraints[{index}]"
        if item.fault is not None and item.fault not in faults:
            hint = f"faults with sources: {', '.join(faults)}"
            yield Problem(f"{path}.fault", item.fault, "has no sources", hint)
            continue
        for fault in [item.fault] if item.fault else faults:
            if fault in taken:
                text = f"is constrained by constraints[{taken[fault]}] already"
                yield Problem(f"{path}.fault", fault, text, "write one for each fault")
            taken[fault] = index
            yield from _of_fault(path, item, fault, faults[fault], sign)


def _of_fault(
    path: str,
    item: Constraint,
    fault: str,
    components: Sequence[str],
    sign: Mapping[SlipComponent, Sign],
) -> Iterator[Problem]:
    for key in ("sign", "bounds"):
        for component in getattr(item, key):
            if component not in components:
                text = f"is about a component that sources of {fault} do not have"
                yield Problem(f"{path}.{key}", component, text)
    if item.rake is not None and len(components) < 2:
        hint = "write components: [strike, dip] in sources"
        yield Problem(f"{path}.rake", item.rake, "needs both components", hint)
    if item.rake is not None and sign:
        hint = "leave out sign, or give it to the other faults in constraints"
        yield Problem(f"{path}.rake", item.rake, "contradicts sign", hint)
    for component, (low, high) in item.bounds.items():
        # the fault's own sign goes before that of all faults
        value = item.sign.get(component, sign.get(component))
        if component in item.sign:
            continue
        if (value == "positive" and high <= 0) or (value == "negative" and low >= 0):
            text = f"contradicts sign.{component}, which is {value}"
            hint = f"leave out sign.{component}, or move the bounds"
            yield Problem(f"{path}.bounds.{component}", [low, high], text, hint)
