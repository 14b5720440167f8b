"""Faults and the unit sources on them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag, model_validator

from afterslip.errors import Problem
from afterslip.schemas.base import Schema
from afterslip.schemas.values import Count, FileRef, Name, Within
from afterslip_common.geometry import EdgeCondition
from afterslip_common.terms import SlipComponent

Length = Annotated[float, Within("km", above=0, most=10000)]
Position = Annotated[float, Within("km", least=-20000, most=20000)]


class Interface(Schema):
    """A curved fault through points."""

    file: FileRef = Field(description="points of a smooth interface, depth in km")
    outline: FileRef | None = Field(
        default=None, description="polygon around the part that may slip"
    )


class Plane(Schema):
    """A rectangle; it dips to the right of its strike."""

    x: Position | None = Field(default=None, description="km east, with y")
    y: Position | None = Field(default=None, description="km north, with x")
    lon: Annotated[float, Within("deg", least=-360, most=360)] | None = Field(
        default=None, description="degrees east, in place of x"
    )
    lat: Annotated[float, Within("deg", least=-90, most=90)] | None = Field(
        default=None, description="degrees north, in place of y"
    )
    top: Annotated[float, Within("km", least=0, most=1000)] | None = Field(
        default=None, description="depth of the top edge, whose centre the place is"
    )
    depth: Annotated[float, Within("km", least=0, most=1000)] | None = Field(
        default=None, description="depth of the centroid, where the place is that"
    )
    strike: Annotated[float, Within("deg", least=-360, most=360)] = Field(
        description="degrees clockwise from north"
    )
    dip: Annotated[float, Within("deg", above=0, most=90)] = Field(
        description="degrees below the horizontal"
    )
    length: Length = Field(description="along strike, km")
    width: Length = Field(description="down dip, km")

    @property
    def geographic(self) -> bool:
        """Whether its place is in degrees."""
        return self.lon is not None

    def problems(self) -> Iterator[Problem]:
        """One place, of the top edge or of the centroid."""
        hint = "give x and y in km, or lon and lat in degrees"
        local, degrees = (self.x, self.y), (self.lon, self.lat)
        if any(v is not None for v in local) and any(v is not None for v in degrees):
            yield Problem("lon", self.lon, "and x, y are both given", hint)
        else:
            names = (
                ("lon", "lat") if any(v is not None for v in degrees) else ("x", "y")
            )
            for name in names:
                if getattr(self, name) is None:
                    yield Problem(name, None, "is missing", hint)
        if (self.top is None) == (self.depth is None):
            message = "is missing" if self.top is None else "and depth are both given"
            hint = "top: depth of the top edge; or depth: of the centroid"
            yield Problem("top", self.top, message, hint)
        elif self.depth is not None:
            half = 0.5 * self.width * math.sin(math.radians(self.dip))
            if self.depth < half * (1.0 - 1e-9):
                message = "puts the top edge above the ground"
                yield Problem("depth", self.depth, message, f"give {half:.4g} or more")


class Fault(Schema):
    """A surface that may slip."""

    name: Name = Field(description="name of the fault")
    surface: Interface | None = Field(default=None, description="{file, outline}")
    plane: Plane | None = Field(
        default=None, description="{x, y, top, strike, dip, length, width}"
    )

    def problems(self) -> Iterator[Problem]:
        """One geometry per fault."""
        if (self.surface is None) == (self.plane is None):
            yield Problem("", self.name, "must have one of surface, plane")


MOST_SOURCES = 100_000


class Edges(Schema):
    """What slip does at each edge of a fault, for B-splines."""

    top: EdgeCondition = Field(default="free", description="upper edge")
    bottom: EdgeCondition = Field(default="free", description="lower edge")
    start: EdgeCondition = Field(default="free", description="where strike begins")
    end: EdgeCondition = Field(default="free", description="where strike ends")


class Sources(Schema):
    """A grid of unit sources on a fault."""

    fault: Name = Field(description="name of the fault")
    along_strike: Annotated[int, Count(1, 1000)] = Field(description="how many")
    down_dip: Annotated[int, Count(1, 1000)] = Field(description="how many")
    shape: Literal["patch", "bspline"] = Field(
        default="bspline", description="patch: constant slip; bspline: bicubic"
    )
    edges: Edges | None = Field(
        default=None, description="{top, bottom, start, end}: free, zero or clamped"
    )
    components: list[SlipComponent] = Field(
        default=["strike", "dip"],
        min_length=1,
        description="strike: left-lateral; dip: reverse",
    )

    @model_validator(mode="before")
    @classmethod
    def _with_edges(cls, data: Any) -> Any:
        """B-splines have edges, whose default is then part of the canonical form."""
        if isinstance(data, dict) and data.get("shape", "bspline") == "bspline":
            given = data.get("edges")
            return {**data, "edges": {} if given is None else given}
        return data

    def problems(self) -> Iterator[Problem]:
        """Each component once, and not more sources than a store should hold."""
        if len(set(self.components)) < len(self.components):
            yield Problem("components", self.components, "must name each only once")
        if self.shape == "patch" and self.edges is not None:
            yield Problem(
                "edges",
                self.edges.model_dump(),
                "is for B-splines: constant slip does not vanish at an edge",
                "leave it out, or use shape: bspline",
            )
        if self.count > MOST_SOURCES:
            yield Problem(
                "", self.count, f"must be at most {MOST_SOURCES} unit sources together"
            )

    @property
    def count(self) -> int:
        """Number of unit sources."""
        return self.along_strike * self.down_dip * len(self.components)


def _kind(value: Any) -> str:
    return "<list>" if isinstance(value, list | tuple) else "<one>"


SourcesList = Annotated[list[Sources], Field(min_length=1, max_length=100)]
AllSources = Annotated[
    Annotated[SourcesList, Tag("<list>")] | Annotated[Sources, Tag("<one>")],
    Discriminator(_kind),
]
"""A grid of sources, or a list of them, each on its own fault."""
