"""Stations and data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from afterslip.errors import Problem
from afterslip.schemas.base import Schema
from afterslip.schemas.values import Duration, FileRef, Name, Within

Deviation = Annotated[float, Within("m", above=0, most=100)]


class Stations(Schema):
    """Places where the response is wanted."""

    file: FileRef = Field(description="CSV: station,lon,lat or station,x_km,y_km")


class Sigma(Schema):
    """Standard deviations where the file gives none."""

    horizontal: Deviation | None = Field(default=None, description="east and north, m")
    vertical: Deviation | None = Field(default=None, description="up, m")
    los: Deviation | None = Field(default=None, description="line of sight, m")

    def problems(self) -> Iterator[Problem]:
        """Something must be said."""
        if self.horizontal is None and self.vertical is None and self.los is None:
            yield Problem(
                "", None, "is empty", "write {horizontal: 0.01, vertical: 0.03} in m"
            )


class Dataset(Schema):
    """Observations with uncertainties."""

    name: Name = Field(description="name of the data set")
    file: FileRef = Field(description="CSV of displacements in m")
    epoch: Duration = Field(
        default=Duration(0.0, "0 d"),
        description="time after the event, for lines that give none",
    )
    sigma: Sigma | None = Field(
        default=None,
        description="{horizontal, vertical} in m, used where the file has none",
    )
