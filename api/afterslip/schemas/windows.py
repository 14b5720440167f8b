"""Slip that follows a rupture front, in windows of time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from afterslip.errors import Problem
from afterslip.schemas.base import Schema, refusal
from afterslip.schemas.values import Count, Duration, Within

Kilometres = Annotated[float, Within("km", least=-20000, most=20000)]


def strength(value: Any) -> Any:
    """Return a weight, or auto."""
    if value == "auto":
        return value
    if isinstance(value, str) and not value[:1].strip("+-.").isdigit():
        raise refusal("must be auto or a number")
    return Within(least=0, most=1e30).parse(value)


Strength = Annotated[float | Literal["auto"], BeforeValidator(strength)]


class Hypocentre(Schema):
    """Where a rupture begins."""

    x: Kilometres | None = Field(default=None, description="km east, with y")
    y: Kilometres | None = Field(default=None, description="km north, with x")
    lon: Annotated[float, Within("deg", least=-360, most=360)] | None = Field(
        default=None, description="degrees east, in place of x"
    )
    lat: Annotated[float, Within("deg", least=-90, most=90)] | None = Field(
        default=None, description="degrees north, in place of y"
    )
    depth: Annotated[float, Within("km", least=0, most=1000)] = Field(
        description="km below the level of the sea, which is flat ground"
    )

    @property
    def geographic(self) -> bool:
        """Whether its place is in degrees."""
        return self.lon is not None

    def problems(self) -> Iterator[Problem]:
        """One place."""
        local, degrees = (self.x, self.y), (self.lon, self.lat)
        given = [pair for pair in (local, degrees) if any(v is not None for v in pair)]
        if len(given) != 1 or None in given[0]:
            hint = "give x and y in km, or lon and lat in degrees"
            yield Problem("", None, "must have one place", hint)


class Windows(Schema):
    """Slip in windows that begin when a front reaches each unit source.

    Each window adds the campaign's own source-time function; the first begins when a
    front of ``rupture_speed`` arrives from the hypocentre, each other one ``spacing``
    later.
    """

    count: Annotated[int, Count(1, 50)] = Field(description="windows of each source")
    spacing: Duration | None = Field(
        default=None, description="from one window to the next, e.g. 2 s"
    )
    rupture_speed: Annotated[float, Within("km/s", least=0.1, most=20)] = Field(
        description="of the front, the fastest that slip may follow, km/s"
    )
    hypocentre: Hypocentre = Field(description="{x, y, depth} or {lon, lat, depth}")
    smoothness: Strength = Field(
        default="auto",
        description="weight of changes from window to window; auto: by held-out data",
    )

    @property
    def step(self) -> float:
        """Seconds from one window to the next."""
        return float(self.spacing or 0.0)

    def problems(self) -> Iterator[Problem]:
        """Several windows follow each other."""
        if self.count > 1 and not self.spacing:
            text = None if self.spacing is None else self.spacing.text
            hint = "half the rise of the source-time function or less"
            yield Problem("spacing", text, "must be above 0 with several windows", hint)
