"""Stations and data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from afterslip.errors import Problem
from afterslip.schemas.base import Schema, refusal
from afterslip.schemas.values import Duration, FileRef, Name, Within, Word

Deviation = Annotated[float, Within("m", above=0, most=100)]
Share = Annotated[float, Within(above=0, most=1)]
Factor = Annotated[float, Within(above=0, most=1e6)]
Kind = Literal["gnss", "gnssa", "obp", "insar"]
Term = Literal["offset", "rate", "annual", "semiannual"]


def _weight(value: Any) -> Any:
    if value == "auto":
        return value
    if isinstance(value, str) and not value[:1].strip("+-.").isdigit():
        raise refusal("must be auto or a number")
    return Within(above=0, most=1e6).parse(value)


Weight = Annotated[float | Literal["auto"], BeforeValidator(_weight)]


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


class Floor(Schema):
    """Errors that the given ones lack, added to them as squares."""

    horizontal: Deviation | None = Field(default=None, description="east and north, m")
    vertical: Deviation | None = Field(default=None, description="up, m")
    los: Deviation | None = Field(default=None, description="line of sight, m")
    relative: Share | None = Field(default=None, description="share of each datum")

    def problems(self) -> Iterator[Problem]:
        """Something must be said."""
        if not self.model_dump(exclude_none=True):
            yield Problem(
                "", None, "is empty", "write {horizontal: 0.01, relative: 0.02}"
            )


class Exponential(Schema):
    """Errors of pixels that fade with distance as exp(−h / length)."""

    sigma: Deviation = Field(description="standard deviation of the shared part, m")
    length: Annotated[float, Within("km", above=0, most=10000)] = Field(
        description="distance at which a share of 1/e is left, km"
    )


Span = Annotated[
    list[Annotated[float, Within("km", least=-20000, most=20000)]],
    Field(min_length=2, max_length=2),
]


class Deforming(Schema):
    """The part of a scene that moved, in km about the origin."""

    x: Span = Field(description="[west, east], km")
    y: Span = Field(description="[south, north], km")

    def problems(self) -> Iterator[Problem]:
        """Both spans go upwards."""
        for name in ("x", "y"):
            low, high = getattr(self, name)
            if low >= high:
                yield Problem(name, [low, high], "must go from low to high")


class Covariance(Schema):
    """Errors that data share."""

    exponential: Exponential | None = Field(
        default=None, description="{sigma, length} of pixels"
    )
    variogram: Deforming | None = Field(
        default=None, description="{x, y} to leave out of an empirical variogram"
    )
    file: FileRef | None = Field(
        default=None, description="text: the full matrix in m², data in file order"
    )

    def problems(self) -> Iterator[Problem]:
        """One way to say it."""
        said = [self.exponential, self.variogram, self.file]
        if sum(item is not None for item in said) != 1:
            yield Problem("", None, "must have one of exponential, variogram, file")


class Series(Schema):
    """Series of ground motion through seconds."""

    quantity: Literal["displacement", "velocity"] = Field(
        default="displacement", description="displacement (m) or velocity (m/s)"
    )
    lowpass: Annotated[float, Within("Hz", above=0, most=100)] | None = Field(
        default=None,
        description="of data and Green's functions alike: Butterworth, order 4, causal",
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
    floor: Floor | None = Field(
        default=None,
        description="{horizontal, vertical, los} in m and {relative}, added as squares",
    )
    scale: Factor | None = Field(
        default=None, description="factor on the given errors; 1 if not given"
    )
    weight: Weight | None = Field(
        default=None,
        description="divides the variances; auto: estimated; auto if not given",
    )
    covariance: Covariance | None = Field(
        default=None, description="{exponential}, {variogram} or {file}"
    )
    translation: bool | None = Field(
        default=None, description="true: an unknown constant in each component"
    )
    ramp: Literal["linear", "quadratic"] | None = Field(
        default=None, description="unknown surface in each line-of-sight scene"
    )
    terms: list[Term] | None = Field(
        default=None,
        description="unknown part of each station's series: offset, rate, annual, ...",
    )
    robust: bool | None = Field(
        default=None, description="true: data far off weigh less (Huber)"
    )
    series: Series | None = Field(
        default=None, description="{quantity, lowpass}: ground motion with time_s"
    )
    types: dict[Annotated[str, Word(60)], Kind] | None = Field(
        default=None, description="{tag of the column type: gnss, gnssa, obp or insar}"
    )

    @property
    def variance_free(self) -> bool:
        """Whether a factor on the variance of its errors is to be estimated."""
        return self.weight in (None, "auto")

    def problems(self) -> Iterator[Problem]:
        """Terms that say the same twice, and what series do not have."""
        for key in ("covariance", "ramp", "types") if self.series is not None else ():
            if getattr(self, key) is not None:
                text = "is not for series of ground motion"
                yield Problem(key, None, text, "remove it")
        terms = self.terms or []
        if len(set(terms)) < len(terms):
            yield Problem("terms", terms, "must name each only once")
        if self.translation and "offset" in terms:
            yield Problem(
                "translation",
                True,
                "is part of the offset of each station",
                "leave out one of translation, terms: [offset]",
            )
