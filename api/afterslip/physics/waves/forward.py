"""A forward run of waves: slip and moment tensors in, series at points out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from afterslip.errors import Problem
from afterslip.physics.waves.spec import WaveModel, WaveSettings, fitting
from afterslip.schemas.base import Schema
from afterslip.schemas.fault import Position
from afterslip.schemas.forward import Forward, Slip, SlipFile
from afterslip.schemas.values import Within

_Moment = Annotated[float, Within("N m", least=-1e24, most=1e24)]


class Tensor(Schema):
    """A moment tensor as catalogues write it: r up, t south, p east."""

    mrr: _Moment = Field(description="N m, up")
    mtt: _Moment = Field(description="N m, south")
    mpp: _Moment = Field(description="N m, east")
    mrt: _Moment = Field(description="N m, up and south")
    mrp: _Moment = Field(description="N m, up and east")
    mtp: _Moment = Field(description="N m, south and east")


class Couple(Schema):
    """A double couple: slip on a small plane."""

    strike: Annotated[float, Within("deg", least=-360, most=360)] = Field(
        description="degrees clockwise from north"
    )
    dip: Annotated[float, Within("deg", least=0, most=90)] = Field(
        description="degrees below the horizontal, to the right of the strike"
    )
    rake: Annotated[float, Within("deg", least=-360, most=360)] = Field(
        description="degrees of slip from the strike: 0 left-lateral, 90 reverse"
    )
    magnitude: Annotated[float, Within("", least=-3, most=10)] = Field(
        description="moment magnitude"
    )


class PointSource(Schema):
    """A moment tensor at a point."""

    x: Position | None = Field(default=None, description="km east, with y")
    y: Position | None = Field(default=None, description="km north, with x")
    lon: Annotated[float, Within("deg", least=-360, most=360)] | None = Field(
        default=None, description="degrees east, in place of x"
    )
    lat: Annotated[float, Within("deg", least=-90, most=90)] | None = Field(
        default=None, description="degrees north, in place of y"
    )
    depth: Annotated[float, Within("km", above=0, most=1000)] = Field(
        description="km below the ground"
    )
    tensor: Tensor | None = Field(
        default=None, description="{mrr, mtt, mpp, mrt, mrp, mtp} in N m"
    )
    couple: Couple | None = Field(
        default=None, description="{strike, dip, rake, magnitude}, in place of tensor"
    )

    def problems(self) -> Iterator[Problem]:
        """One place, and one way to say the moment."""
        local = self.x is not None and self.y is not None
        degrees = self.lon is not None and self.lat is not None
        given = sum(v is not None for v in (self.x, self.y, self.lon, self.lat))
        if given != 2 or not (local or degrees):
            hint = "give x and y in km, or lon and lat in degrees"
            yield Problem("x", self.x, "is no place", hint)
        if (self.tensor is None) == (self.couple is None):
            hint = "tensor as of catalogues, or couple: {strike, dip, rake, magnitude}"
            yield Problem("", None, "must have one of tensor, couple", hint)


class WaveForward(Forward):
    """A model, slip on its faults or moment tensors, and points of the ground."""

    physics: Literal["waves"] = Field(description="what is solved: elastic waves")
    model: WaveModel = Field(description="geometry and materials")
    slip: Slip = Field(default=[], description="[{fault, strike, dip}] in m, or {file}")
    moment_tensors: list[PointSource] = Field(
        default=[], max_length=10_000, description="[{x, y, depth, couple or tensor}]"
    )
    waves: WaveSettings = Field(description="frequency, duration, sides, ...")

    def problems(self) -> Iterator[Problem]:
        """Require a source, in a frame that knows its place."""
        if isinstance(self.slip, SlipFile) and not self.model.faults:
            hint = "name the fault that the slip is on"
            yield Problem("model.faults", None, "is missing, and slip is given", hint)
            return
        yield from super().problems()
        if not self.slip and not self.moment_tensors:
            hint = "give slip: [{fault, strike, dip}] or moment_tensors"
            yield Problem("slip", None, "is missing: nothing would move", hint)
        for index, source in enumerate(self.moment_tensors):
            if source.lon is not None and self.model.frame.kind != "geographic":
                hint = "use frame: {kind: geographic, lon0, lat0}, or x and y in km"
                path = f"moment_tensors[{index}].lon"
                yield Problem(path, source.lon, "needs a geographic frame", hint)
        if self.waves.surface is not None:
            text = "is for campaigns"
            yield Problem("waves.surface", None, text, "remove it, and list points")
        if self.waves.solve != "auto":
            text = "is for campaigns: a forward run has one source"
            yield Problem("waves.solve", self.waves.solve, text, "remove it")
        yield from fitting(self.model, self.waves)
