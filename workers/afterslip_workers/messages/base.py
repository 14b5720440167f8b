"""What every message shares: strict fields, a version, one way to read and write."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from afterslip.error_class import ErrorClass

# of all messages: raised with any change that an older reader would not understand
VERSION = 2
# 1 is of release 0.1.0, whose accepted results stay as they are; its envelopes are
# read until 0.3, so that its attempts go on
READ = (1, VERSION)

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
# what version 1 says of numbers one by one
_QUALITY = ("until", "tolerance", "time_tolerance")

Read = TypeVar("Read")


class TaskError(Exception):
    """A failure that a person can read.

    Parameters
    ----------
    error_class : decides whether it is tried again.
    message : what happened and what to do about it.
    """

    def __init__(self, error_class: ErrorClass, message: str) -> None:
        super().__init__(message)
        self.error_class = error_class
        self.message = message


def checked(name: str) -> str:
    """Return ``name`` if it can be one component of a key of a store, else raise.

    Raises
    ------
    ValueError
        For anything that could leave its folder.
    """
    if not _NAME.fullmatch(name):
        raise ValueError(
            f"{name!r} cannot name a folder of the store: "
            "use letters, digits, '.', '_' and '-'"
        )
    return name


# a campaign, an attempt or an inversion, each of which has a folder
Name = Annotated[str, AfterValidator(checked)]


class Message(BaseModel):
    """A frozen mapping whose unknown keys are refused."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        validate_by_name=True,
        serialize_by_alias=True,
        ser_json_inf_nan="constants",
    )

    def as_json(self) -> dict[str, Any]:
        """Return as plain values what was set; what was left out stays out."""
        return self.model_dump(mode="json", exclude_unset=True)


class Versioned(Message):
    """A message that is read on its own, and says everything."""

    version: int = VERSION

    def model_post_init(self, _context: Any) -> None:
        """Have defaults written as well."""
        self.model_fields_set.update(type(self).model_fields)


class Described(Message):
    """Something that says what numbers are good for.

    Attributes
    ----------
    quality : as the physics says it; its keys stood one level higher in version 1.
    """

    quality: dict[str, Any]

    @model_validator(mode="before")
    @classmethod
    def _of_first(cls, content: Any) -> Any:
        if not isinstance(content, Mapping) or "quality" in content:
            return content
        found = dict(content)
        flat = {name: found.pop(name) for name in _QUALITY if name in found}
        return {**found, "quality": flat} if flat else content


def read(
    form: TypeAdapter[Read], content: Mapping[str, Any], what: str, reader: str
) -> Read:
    """Read a message of any version that is understood.

    Parameters
    ----------
    what : name of the message.
    reader : who reads it, for people.

    Raises
    ------
    TaskError
        For another version, or content that is not such a message.
    """
    version = content.get("version", VERSION)
    same = "install the same release of afterslip in the service and its workers"
    if version not in READ:
        raise TaskError(
            ErrorClass.OTHER_RELEASE,
            f"the {what} has version {version!r}, this {reader} reads "
            f"{' and '.join(map(str, READ))}: {same}",
        )
    try:
        return form.validate_python({**content, "version": VERSION})
    except ValidationError as error:
        faults = "; ".join(
            f"{'.'.join(map(str, fault['loc'])) or what}: {fault['msg']}"
            for fault in error.errors(include_url=False, include_input=False)
        )
        text = f"the {what} cannot be read ({faults}): {same}"
        raise TaskError(ErrorClass.INTERNAL, text) from None
