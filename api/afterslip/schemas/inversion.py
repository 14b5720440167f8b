"""Inversions that a campaign asks for."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from afterslip.errors import Problem
from afterslip.schemas.base import Schema, refusal
from afterslip.schemas.constraints import Constraint, Moment, Sign
from afterslip.schemas.values import Count, Duration, Name, Title
from afterslip.schemas.windows import Strength, Windows, strength
from afterslip_common.terms import SlipComponent


def _amplitude(value: Any) -> Any:
    found = strength(value)
    if found != "auto" and not 1e-6 <= found <= 1e6:
        raise refusal("must be auto or a share from 1e-6 to 1e6", "1 is as large")
    return found


def _prior(value: Any) -> Any:
    """Read a name alone as a prior with the parameters' defaults."""
    return {value: {}} if isinstance(value, str) else value


Amplitude = Annotated[float | Literal["auto"], BeforeValidator(_amplitude)]
Prior = Annotated[dict[Name, dict[str, float]], BeforeValidator(_prior)]


MOST_CHANGES = 30
"""Changes of the earth; memory and time of the draws grow with their square."""

MOST_PERTURBED = 30
"""Campaigns that one inversion may ask for beside its own."""


class Increments(Schema):
    """Afterslip: what each interval adds to the coseismic slip."""

    ends: list[Duration] = Field(
        min_length=1, max_length=100, description="ends of the intervals, from 0"
    )
    smoothness: Strength = Field(
        default="auto", description="weight of changes of the rate; auto: as smoothness"
    )
    amplitude: Amplitude = Field(
        default="auto", description="size of afterslip over that of coseismic slip"
    )

    def problems(self) -> Iterator[Problem]:
        """Intervals follow each other."""
        ends = [0.0, *map(float, self.ends)]
        for index, (start, end) in enumerate(itertools.pairwise(ends)):
            if end <= start:
                yield Problem(
                    f"ends[{index}]",
                    self.ends[index].text,
                    "must be later than the one before, the first later than 0",
                )


def _alternatives(value: Any) -> Any:
    """Read an id alone as a change of the earth without alternatives."""
    return [value] if isinstance(value, str) else value


Alternatives = Annotated[
    list[Name], Field(min_length=1, max_length=10), BeforeValidator(_alternatives)
]


def _values(value: Any) -> Any:
    """Read a value alone as a change without alternatives; numbers as their text."""
    every = value if isinstance(value, list) else [value]
    return [
        repr(one) if isinstance(one, int | float) and not isinstance(one, bool) else one
        for one in every
    ]


Values = Annotated[
    list[Title], Field(min_length=1, max_length=10), BeforeValidator(_values)
]


class ModelErrors(Schema):
    """Which errors of the Green's functions stand beside those of the data."""

    mesh: bool = Field(
        default=True, description="those of the mesh, where they were estimated"
    )
    campaigns: list[Alternatives] | None = Field(
        default=None,
        min_length=1,
        max_length=MOST_CHANGES,
        description="ids of campaigns in other earths; a list in it: alternatives",
    )
    perturb: dict[Title, Values] | None = Field(
        default=None,
        min_length=1,
        max_length=MOST_CHANGES,
        description="{path below model: [values]}: earths whose campaigns are made",
    )

    @property
    def changes(self) -> int:
        """Number of things in the earth that are uncertain."""
        return len(self.campaigns or []) + len(self.perturb or {})

    def places(self) -> Iterator[tuple[str, str]]:
        """Yield (path in the inversion, id) of each campaign."""
        for i, group in enumerate(self.campaigns or []):
            for k, identity in enumerate(group):
                yield f"model_error.campaigns[{i}][{k}]", identity

    def problems(self) -> Iterator[Problem]:
        """Each campaign once."""
        named = [identity for _, identity in self.places()]
        for one in sorted({one for one in named if named.count(one) > 1}):
            yield Problem("campaigns", one, "must be named only once")
        if self.changes > MOST_CHANGES:
            text = f"makes {self.changes} changes of the earth with campaigns"
            yield Problem("perturb", None, text, f"name {MOST_CHANGES} at most")
        made = sum(map(len, (self.perturb or {}).values()))
        if made > MOST_PERTURBED:
            text = f"asks for {made} campaigns"
            yield Problem("perturb", None, text, f"ask for {MOST_PERTURBED} at most")


class Inversion(Schema):
    """A regularised estimate of slip from data."""

    name: Name = Field(description="name of the inversion")
    datasets: list[Name] = Field(min_length=1, description="names of data sets")
    smoothness: Strength = Field(
        default="auto", description="weight of roughness; auto: as choice says"
    )
    sparsity: Strength = Field(
        default=0.0,
        description="weight of the sum of slips; auto: by cross-validation",
    )
    choice: Literal["evidence", "cross_validation", "one_standard_error"] = Field(
        default="evidence", description="what chooses the smoothness"
    )
    folds: Annotated[int, Count(2, 50)] = Field(
        default=5,
        description="folds of the cross-validation, of whole stations",
    )
    repeats: Annotated[int, Count(1, 100)] = Field(
        default=1, description="how often stations are dealt into folds"
    )
    blocks: bool = Field(
        default=False, description="folds are compact blocks of the map"
    )
    seed: Annotated[int, Count(0, 1_000_000)] = Field(
        default=0, description="of the folds and of the draws"
    )
    sign: dict[SlipComponent, Sign] = Field(
        default={}, description="{dip: positive}: positive, negative or free"
    )

    constraints: list[Constraint] = Field(
        default=[], max_length=100, description="what slip of a fault may be"
    )
    moment: Moment | None = Field(
        default=None, description="{magnitude, error, rake} that are known"
    )
    prior: Prior = Field(
        default={"laplacian": {}},
        description="laplacian, or {von_karman: {hurst, along_km, down_km}}",
    )

    increments: Increments | None = Field(
        default=None, description="{ends, smoothness, amplitude} of afterslip"
    )

    windows: Windows | None = Field(
        default=None,
        description="{count, spacing, rupture_speed, hypocentre} of a rupture",
    )

    model_error: ModelErrors = Field(
        default=ModelErrors(),
        description="{mesh, campaigns, perturb}: errors of Green's functions",
    )

    def problems(self) -> Iterator[Problem]:
        """Each data set once, and one prior."""
        if len(set(self.datasets)) < len(self.datasets):
            yield Problem("datasets", self.datasets, "must name each only once")
        named = "campaigns" if self.model_error.campaigns else "perturb"
        if self.model_error.changes:
            hint = "leave one of them out"
            for key in ("sparsity", "increments"):
                if getattr(self, key):
                    text = f"cannot be used with model_error.{named}"
                    yield Problem(key, None, text, hint)
        if self.windows is not None and self.increments is not None:
            yield Problem("increments", None, "and windows exclude each other")
        if self.windows is not None and self.model_error.changes:
            text, hint = "cannot be used with windows", "leave one of them out"
            yield Problem(f"model_error.{named}", None, text, hint)
        if len(self.prior) != 1:
            yield Problem("prior", self.prior, "must be one prior", "write {name: {}}")
