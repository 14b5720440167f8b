"""The campaign: a model, its unit sources, times, data and inversions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self, cast

from pydantic import Field, PrivateAttr

from afterslip.errors import Problem
from afterslip.physics.registry import DEFAULT, find, name_of
from afterslip.schemas.base import Schema
from afterslip.schemas.constraints import constraint_problems
from afterslip.schemas.document import load
from afterslip.schemas.earth import Model, unique_names
from afterslip.schemas.fault import MOST_SOURCES, AllSources, Sources
from afterslip.schemas.inversion import Inversion
from afterslip.schemas.observation import Dataset, Stations
from afterslip.schemas.validation import nearest, validate
from afterslip.schemas.values import Count, Duration, Name, Title
from afterslip_common.terms import SlipComponent


class Spec(Schema):
    """What campaigns and forward runs share: where they came from."""

    _base: Path | None = PrivateAttr(default=None)

    @property
    def base(self) -> Path:
        """Folder that the spec's files are relative to."""
        return self._base or Path()

    @classmethod
    def from_dict(cls, data: Any, base: str | Path | None = None) -> Self:
        """Return a spec from plain data.

        Parameters
        ----------
        data : mapping as YAML or JSON give it.
        base : folder of the files that it names.

        Raises
        ------
        SpecError
            With every problem found.
        """
        spec = validate(cls, data)
        spec._base = Path(base) if base is not None else None  # noqa: SLF001
        return spec

    @classmethod
    def from_yaml(cls, path: str | Path) -> Self:
        """Read a spec from a YAML or JSON file; its files are relative to it.

        Raises
        ------
        SpecError
            With every problem found.
        """
        return cls.from_dict(load(path), Path(path).parent)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data that makes the same spec, times as they were written."""
        return self.model_dump(mode="json", exclude_none=True)


class Campaign(Spec):
    """What campaigns of every physics have; `from_dict` returns the physics' own."""

    # a spec of a release without this key has the same canonical form
    implied: ClassVar[dict[str, Any]] = {"physics": DEFAULT}

    name: Title = Field(description="name of the campaign")
    physics: Name = Field(default=DEFAULT, description="what is solved")
    model: Model = Field(description="geometry, materials, mesh")
    sources: AllSources = Field(
        description="{fault, along_strike, down_dip}, or a list of them"
    )
    stations: Stations | None = Field(default=None, description="{file}")
    datasets: list[Dataset] = Field(
        default=[], max_length=1000, description="observations"
    )
    inversions: list[Inversion] = Field(
        default=[], max_length=1000, description="estimates of slip"
    )
    priority: Annotated[int, Count(-1000, 1000)] | None = Field(
        default=None, description="higher ones are served first; 0 if not given"
    )

    @classmethod
    def from_dict(cls, data: Any, base: str | Path | None = None) -> Self:
        """Return a campaign, in the class of its physics; see `Spec.from_dict`."""
        own = find(name_of(data)).spec if cls is Campaign else cls
        # the class of a physics is a subclass of this one
        return cast("Self", super(Campaign, own).from_dict(data, base))

    @property
    def components_of_faults(self) -> dict[str, list[SlipComponent]]:
        """Components of the sources on each fault that has some."""
        return {grid.fault: grid.components for grid in self.grids}

    @property
    def end(self) -> Duration | None:
        """Last time that the Green's functions cover; None where there is none."""
        return None

    @property
    def grids(self) -> list[Sources]:
        """The grids of unit sources, one on each fault that slips."""
        return [self.sources] if isinstance(self.sources, Sources) else self.sources

    def problems(self) -> Iterator[Problem]:
        """Names that one part uses must be there in another."""
        yield from self._source_problems()
        datasets = [dataset.name for dataset in self.datasets]
        for i, inversion in enumerate(self.inversions):
            for k, name in enumerate(inversion.datasets):
                path = f"inversions[{i}].datasets[{k}]"
                yield from known_name(path, name, datasets, "data set")
            for problem in constraint_problems(
                inversion.sign, inversion.constraints, self.components_of_faults
            ):
                yield problem.under(f"inversions[{i}]")
        yield from unique_names(
            [
                (f"datasets[{i}]", dataset.name)
                for i, dataset in enumerate(self.datasets)
            ]
        )
        yield from unique_names(
            [(f"inversions[{i}]", item.name) for i, item in enumerate(self.inversions)]
        )

    def _source_problems(self) -> Iterator[Problem]:
        """Each grid is on a fault of the model, and on its own."""
        faults = [fault.name for fault in self.model.faults]
        taken: set[str] = set()
        for index, grid in enumerate(self.grids):
            one = isinstance(self.sources, Sources)
            path = "sources.fault" if one else f"sources[{index}].fault"
            yield from known_name(path, grid.fault, faults, "fault")
            if grid.fault in taken:
                hint = "name each fault once, with all its components"
                yield Problem(path, grid.fault, "has sources already", hint)
            taken.add(grid.fault)
        count = sum(grid.count for grid in self.grids)
        if count > MOST_SOURCES:
            message = f"must be at most {MOST_SOURCES} unit sources together"
            yield Problem("sources", count, message)


def known_name(path: str, name: str, known: list[str], noun: str) -> Iterator[Problem]:
    """Say that a name is not among the known ones, and which is near."""
    if name in known:
        return
    near = nearest(name, known)
    hint = f"did you mean {near}?" if near else f"known: {', '.join(known) or 'none'}"
    yield Problem(path, name, f"is not the name of a {noun}", hint)
