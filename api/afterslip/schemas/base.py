"""What every schema shares: strict keys, frozen values, problems of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, model_validator
from pydantic_core import PydanticCustomError

from afterslip.errors import Problem


def refusal(message: str, hint: str = "") -> PydanticCustomError:
    """Return what a validator raises to refuse a value in our own words."""
    text = message if not hint else f"{message} ({hint})"
    escaped = text.replace("{", "(").replace("}", ")")
    return PydanticCustomError("afterslip", escaped, {"says": message, "hint": hint})


class Schema(BaseModel):
    """A frozen mapping whose unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    # values that are left out of the canonical form, as absent ones are
    implied: ClassVar[dict[str, Any]] = {}

    def named(self) -> Iterator[tuple[str, Any]]:
        """Yield key and value of everything that a spec may hold here."""
        for key in (*type(self).model_fields, *(self.model_extra or {})):
            yield key, getattr(self, key)

    def problems(self) -> Iterable[Problem]:
        """Say what is wrong between the values; paths are relative to this model."""
        return ()

    @model_validator(mode="after")
    def _refuse_problems(self) -> Self:
        found = list(self.problems())
        if found:
            raise PydanticCustomError(
                "afterslip_many",
                "{text}",
                {"problems": found, "text": "; ".join(map(str, found))},
            )
        return self
