"""How materials creep: the rheologies that a spec may name.

Two are built in. Others come with packages, each a subclass of `LinearRheology` that
the entry points ``afterslip.rheologies`` name; docs/how-to/add-a-rheology.md adds one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.metadata import entry_points
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import ConfigDict, Field, GetJsonSchemaHandler, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError

from afterslip.errors import Problem, SpecError, one_problem
from afterslip.physics.registry import described
from afterslip.schemas.base import Schema
from afterslip.schemas.validation import nearest, validate
from afterslip.schemas.values import Within

GROUP = "afterslip.rheologies"
Viscosity = Annotated[float, Within("Pa s", least=1e12, most=1e27)]
# Pa, of rocks: where branches are compared for the identity of a campaign
_SAMPLED = (1e9, 3e10, 2e11)


class Branch(NamedTuple):
    """A dashpot that may have a spring beside it, in series with the rest.

    Attributes
    ----------
    viscosity : Pa s, a number or (n,) array.
    modulus : Pa of the spring, alike; 0 where there is none.
    """

    viscosity: ArrayLike
    modulus: ArrayLike = 0.0


class LinearRheology(Schema):
    """An elastic spring in series with branches; its fields are its keys in a spec."""

    def branches(self, mu: NDArray[np.float64]) -> Sequence[Branch]:
        """Return the branches of materials with shear moduli mu (n,), Pa."""
        raise NotImplementedError(f"{type(self).__name__} has no branches")

    def arrays(
        self, mu: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return viscosities (Pa s) and moduli (Pa) of the branches, (n, n_branch).

        Raises
        ------
        ValueError
            They are not those of a body; or whatever `branches` raises.
        """
        found = [Branch(*branch) for branch in self.branches(mu)]
        if not found:
            raise ValueError("needs one branch at least")
        viscosity, modulus = (
            np.stack([np.broadcast_to(np.asarray(v, float), mu.shape) for v in part], 1)
            for part in zip(*found, strict=True)
        )
        if not (np.isfinite(viscosity) & (viscosity > 0.0)).all():
            raise ValueError("has a branch whose viscosity is not positive and finite")
        if not (np.isfinite(modulus) & (modulus >= 0.0)).all():
            raise ValueError("has a branch whose modulus is negative or not finite")
        return viscosity, modulus

    def sampled(self) -> list[str]:
        """Return the branches at some shear moduli, as texts of 12 digits.

        A formula that is changed makes other numbers of the same keys: this tells.
        """
        return [
            f"{value:.12g}"
            for part in self.arrays(np.array(_SAMPLED))
            for value in part.ravel()
        ]


class Maxwell(LinearRheology):
    """Spring and dashpot in series."""

    viscosity: Viscosity = Field(description="Pa s")

    def branches(self, mu: NDArray[np.float64]) -> Sequence[Branch]:  # noqa: ARG002
        """Return the dashpot."""
        return (Branch(self.viscosity),)


class Burgers(LinearRheology):
    """Maxwell and Kelvin elements in series; both creep, the latter to a limit."""

    viscosity: Viscosity = Field(description="of the Maxwell element, Pa s")
    kelvin_viscosity: Viscosity = Field(description="of the Kelvin element, Pa s")
    kelvin_ratio: Annotated[float, Within("", least=0.001, most=1000)] = Field(
        description="shear modulus of the Kelvin element over that of the spring"
    )

    def branches(self, mu: NDArray[np.float64]) -> Sequence[Branch]:
        """Return the Maxwell dashpot and the Kelvin element."""
        kelvin = Branch(self.kelvin_viscosity, self.kelvin_ratio * mu)
        return Branch(self.viscosity), kelvin


class Rheology(Schema):
    """How a material creeps: one of maxwell, burgers and those installed beside."""

    # the keys of installed rheologies are not fields; `_parse` refuses all others
    model_config = ConfigDict(extra="allow", frozen=True)

    maxwell: Maxwell | None = Field(default=None, description="{viscosity}")
    burgers: Burgers | None = Field(
        default=None, description="{viscosity, kelvin_viscosity, kelvin_ratio}"
    )

    @property
    def given(self) -> dict[str, LinearRheology]:
        """What is given, by name: one."""
        named = {"maxwell": self.maxwell, "burgers": self.burgers, **self.added}
        return {name: law for name, law in named.items() if law is not None}

    @property
    def added(self) -> dict[str, LinearRheology]:
        """What is given and is not built in, by name."""
        return dict(self.model_extra or {})

    @property
    def law(self) -> LinearRheology:
        """The one that is given."""
        return next(iter(self.given.values()))

    @model_validator(mode="before")
    @classmethod
    def _installed(cls, data: Any) -> Any:
        if not isinstance(data, Mapping):
            return data
        problems: list[Problem] = []
        parsed = {}
        for key, value in data.items():
            own = key in cls.model_fields
            try:
                parsed[key] = value if own else _parse(str(key), value)
            except SpecError as error:
                problems += error.problems
        if problems:
            text = "; ".join(map(str, problems))
            context = {"problems": problems, "text": text}
            raise PydanticCustomError("afterslip_many", "{text}", context)
        return parsed

    def problems(self) -> Iterator[Problem]:
        """One law per material."""
        if len(self.given) != 1:
            names = ", ".join([*type(self).model_fields, *installed()])
            yield Problem("", None, f"must be one of {names}", "or write elastic")

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        schema = handler(core)
        own = handler.resolve_ref_schema(schema)
        own["additionalProperties"] = False
        for name in installed():
            own["properties"][name] = find(name).model_json_schema()
        return schema


def _parse(name: str, value: Any) -> LinearRheology:
    kind = find(name)
    if isinstance(value, kind):
        return value
    try:
        law = validate(kind, value)
    except SpecError as error:
        raise SpecError([problem.under(name) for problem in error.problems]) from None
    try:
        law.sampled()
    except Exception as error:
        # whatever somebody else's package raises
        text = f"cannot be used: {described(error)}"
        raise one_problem(name, value, text, "correct its package") from error
    return law


def installed() -> list[str]:
    """Return the names of the rheologies that packages add."""
    return sorted({point.name for point in entry_points(group=GROUP)})


@cache
def find(name: str) -> type[LinearRheology]:
    """Return a rheology that a package adds.

    Raises
    ------
    SpecError
        It is not installed here, is there twice, or cannot be imported.
    """
    points = list(entry_points(group=GROUP, name=name))
    if len(points) != 1:
        known = [*Rheology.model_fields, *installed()]
        near = nearest(name, known)
        hint = f"did you mean {near}?" if near else f"known here: {', '.join(known)}"
        if points:
            hint = "remove one of " + ", ".join(point.value for point in points)
        text = "is given by several packages" if points else "is not a known key"
        raise one_problem(name, None, text, hint)
    try:
        found: type[LinearRheology] = points[0].load()
        if not issubclass(found, LinearRheology):
            raise TypeError("is no subclass of LinearRheology")
    except Exception as error:
        # whatever somebody else's package raises
        why = f"cannot be imported from {points[0].value} ({described(error)})"
        hint = "install its package again, with what it needs"
        raise one_problem(name, None, why, hint) from error
    return found


def lacking(spec: Mapping[str, Any]) -> SpecError | None:
    """Return why a rheology that a spec names cannot be had here; None if all can.

    Parameters
    ----------
    spec : plain data of a spec that was found right elsewhere.
    """
    model = spec.get("model") or {}
    for item in [*(model.get("layers") or []), *(model.get("bodies") or [])]:
        for name in item.get("rheology") or {}:
            try:
                if name not in Rheology.model_fields:
                    find(name)
            except SpecError as error:
                return error
    return None
