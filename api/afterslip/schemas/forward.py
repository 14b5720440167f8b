"""A forward run: given slip, displacement at points."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self, cast

from pydantic import BeforeValidator, Discriminator, Field, StrictBool, Tag

from afterslip.errors import Problem, one_problem
from afterslip.physics.registry import DEFAULT, find, name_of
from afterslip.schemas.base import Schema, refusal
from afterslip.schemas.campaign import Spec, known_name
from afterslip.schemas.earth import Model
from afterslip.schemas.values import FileRef, Name, Title, Within

Metres = Annotated[float, Within("m", least=-200, most=200)]


class UniformSlip(Schema):
    """The same slip everywhere on a fault."""

    fault: Name = Field(description="name of the fault")
    strike: Metres = Field(default=0.0, description="left-lateral, m")
    dip: Metres = Field(default=0.0, description="reverse, m")
    taper: StrictBool | None = Field(
        default=None, description="true: falls to zero at buried edges"
    )

    def problems(self) -> Iterator[Problem]:
        """Require slip: where nothing moves there is nothing to solve."""
        if self.strike == self.dip == 0.0:
            hint = "give one of them in m, not zero, or leave this fault out"
            yield Problem("", None, "has neither strike nor dip", hint)


class SlipFile(Schema):
    """Slip from a table, interpolated linearly on the fault, zero outside."""

    file: FileRef = Field(description="CSV: position, strike, dip in m")
    fault: Name | None = Field(
        default=None, description="name of the fault, where there are several"
    )


class PointFile(Schema):
    """Points from a table."""

    file: FileRef = Field(description="CSV: x_km,y_km or lon,lat, maybe depth_km")


def _point(value: Any) -> Any:
    if not isinstance(value, list | tuple) or len(value) not in (2, 3):
        raise refusal("must be [x, y] or [x, y, depth] in km")
    position = Within("km", least=-20000, most=20000)
    numbers = [position.parse(item) for item in value[:2]]
    if len(value) == 3:
        numbers.append(Within("km", least=0, most=6371).parse(value[2]))
    return tuple(numbers)


Point = Annotated[tuple[float, ...], BeforeValidator(_point)]


def _kind(value: Any) -> str:
    if isinstance(value, SlipFile | PointFile | dict):
        return "<file>"
    return "<list>"


SlipList = Annotated[list[UniformSlip], Field(min_length=1)]
Slip = Annotated[
    Annotated[SlipList, Tag("<list>")] | Annotated[SlipFile, Tag("<file>")],
    Discriminator(_kind),
]
PointList = Annotated[list[Point], Field(min_length=1, max_length=1_000_000)]
Points = Annotated[
    Annotated[PointList, Tag("<list>")] | Annotated[PointFile, Tag("<file>")],
    Discriminator(_kind),
]


class Forward(Spec):
    """A model, slip on its faults, and points where the motion is wanted.

    `from_dict` returns the physics' own.
    """

    # a spec of a release without this key has the same canonical form
    implied: ClassVar[dict[str, Any]] = {"physics": DEFAULT}

    name: Title = Field(default="forward", description="name of the run")
    physics: Name = Field(default=DEFAULT, description="what is solved")
    model: Model = Field(description="geometry, materials, mesh")
    slip: Slip = Field(description="[{fault, strike, dip}] in m, or {file}")
    taper: StrictBool = Field(
        default=False, description="true: uniform slip falls to zero at buried edges"
    )
    points: Points = Field(description="[[x, y], ...] in km, or {file}")

    @classmethod
    def from_dict(cls, data: Any, base: str | Path | None = None) -> Self:
        """Return a forward run with what its physics adds; see `Spec.from_dict`."""
        name = name_of(data)
        own = find(name).forward if cls is Forward else cls
        if own is None:
            raise one_problem("physics", name, "has no forward runs")
        # the class of a physics is a subclass of this one
        return cast("Self", super(Forward, own).from_dict(data, base))

    def problems(self) -> Iterator[Problem]:
        """Slip is on faults of the model, once each."""
        faults = [fault.name for fault in self.model.faults]
        if isinstance(self.slip, SlipFile):
            if self.slip.fault is not None:
                yield from known_name("slip.fault", self.slip.fault, faults, "fault")
            elif len(faults) > 1:
                yield Problem(
                    "slip.fault", None, "is missing", f"one of {', '.join(faults)}"
                )
            return
        given: set[str] = set()
        for index, item in enumerate(self.slip):
            yield from known_name(f"slip[{index}].fault", item.fault, faults, "fault")
            if item.fault in given:
                yield Problem(
                    f"slip[{index}].fault", item.fault, "has slip already", "add them"
                )
            given.add(item.fault)

    def tapered(self, item: UniformSlip) -> bool:
        """Say whether a uniform slip falls to zero at buried edges."""
        return self.taper if item.taper is None else item.taper
