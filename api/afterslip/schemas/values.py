"""Values with units, ranges and meanings, as fields of the schemas."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePosixPath, PureWindowsPath
from typing import Annotated, Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from afterslip.schemas.base import refusal
from afterslip.units import UnitError, parse_number, parse_time

SHA256 = re.compile(r"^sha256:[0-9a-f]{64}\Z")


class Duration(float):
    """A time in s that remembers how the user wrote it.

    Attributes
    ----------
    text : the user's text, e.g. ``"10 yr"``.
    """

    text: str

    def __new__(cls, seconds: float, text: str = "") -> Duration:
        """Make a duration of ``seconds``."""
        self = super().__new__(cls, seconds)
        self.text = text or f"{seconds!r} s"
        return self

    def __reduce__(self) -> tuple[type[Duration], tuple[float, str]]:
        return Duration, (float(self), self.text)

    @classmethod
    def parse(cls, value: Any) -> Duration:
        """Return a duration from a text with a unit; refuse plain numbers."""
        if isinstance(value, Duration):
            return value
        if isinstance(value, int | float) and not isinstance(value, bool):
            raise refusal(
                "is a time without a unit", f'write "{value} d" or "{value} yr"'
            )
        if not isinstance(value, str):
            raise refusal("must be a time with its unit", 'write e.g. "30 d"')
        try:
            seconds = parse_time(value)
        except UnitError as error:
            raise refusal(error.message, error.hint) from None
        if not math.isfinite(seconds) or seconds < 0:
            raise refusal("must be zero or more", "times count from the event")
        return cls(seconds, value.strip())

    @classmethod
    def __get_pydantic_core_schema__(
        cls, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(
            cls.parse,
            serialization=core_schema.plain_serializer_function_ser_schema(
                lambda value: value.text
            ),
        )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {
            "type": "string",
            "description": "a time with its unit: s, min, h, d or yr",
            "examples": ["30 d", "10 yr"],
        }


class FileRef(str):
    """A file that a spec names: a relative path, or ``sha256:`` and 64 hex digits."""

    __slots__ = ()

    @classmethod
    def parse(cls, value: Any) -> FileRef:
        """Return a reference; refuse what leads out of the spec's folder."""
        if not isinstance(value, str):
            raise refusal("must be a file's name", "write e.g. stations.csv")
        if value.startswith("sha256:"):
            if not SHA256.match(value):
                raise refusal("must be sha256: and 64 hexadecimal digits")
            return cls(value)
        problem = path_problem(value)
        if problem:
            raise refusal(problem, "name a file in the spec's folder")
        return cls(value)

    @classmethod
    def __get_pydantic_core_schema__(
        cls, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(
            cls.parse,
            serialization=core_schema.plain_serializer_function_ser_schema(str),
        )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {
            "type": "string",
            "description": "a relative path, or sha256: and 64 hexadecimal digits",
            # a field's own description replaces this one
            "x-file": True,
        }


def path_problem(ref: str) -> str:
    """Return why a text is not a relative path inside a folder; empty if it is."""
    if not ref.strip():
        return "is an empty file name"
    if len(ref) > 1000:
        return "is longer than a file name can be"
    if "\0" in ref or not ref.isprintable():
        return "has characters that no file name may have"
    if "://" in ref:
        return "must be a file, not an address"
    if PurePosixPath(ref).is_absolute() or PureWindowsPath(ref).anchor:
        return "must be a relative path"
    if ".." in re.split(r"[/\\]", ref):
        return "must not lead out of its folder (..)"
    return ""


@dataclass(frozen=True)
class Within:
    """A number in a unit, in a range.

    ``hint`` may add advice for a value that looks like another unit.
    """

    unit: str = ""
    above: float | None = None
    least: float | None = None
    below: float | None = None
    most: float | None = None
    hint: Callable[[float], str] | None = None

    def parse(self, value: Any) -> float:
        """Return a finite number inside the range."""
        number = _number(value, self.unit)
        bounds = (
            (self.above is not None and number <= self.above, "above", self.above),
            (self.least is not None and number < self.least, "at least", self.least),
            (self.below is not None and number >= self.below, "below", self.below),
            (self.most is not None and number > self.most, "at most", self.most),
        )
        for broken, word, bound in bounds:
            if broken:
                unit = f" {self.unit}" if self.unit else ""
                hint = self.hint(number) if self.hint else ""
                raise refusal(f"must be {word} {bound:g}{unit}", hint)
        return number + 0.0  # no negative zero, it would change the digest

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self.parse)

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        names = {
            "exclusiveMinimum": self.above,
            "minimum": self.least,
            "exclusiveMaximum": self.below,
            "maximum": self.most,
        }
        found = {key: bound for key, bound in names.items() if bound is not None}
        unit = {"x-unit": self.unit} if self.unit else {}
        return {"type": "number", **found, **unit}


@dataclass(frozen=True)
class Count:
    """A whole number in a range."""

    least: int
    most: int

    def parse(self, value: Any) -> int:
        """Return a whole number inside the range."""
        number = _number(value, "")
        if number != int(number):
            raise refusal("must be a whole number")
        if not self.least <= number <= self.most:
            raise refusal(f"must be between {self.least} and {self.most}")
        return int(number)

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self.parse)

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {"type": "integer", "minimum": self.least, "maximum": self.most}


def _number(value: Any, unit: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise refusal("must be a number", f"in {unit}" if unit else "")
    try:
        number = parse_number(value, unit) if isinstance(value, str) else float(value)
    except UnitError as error:
        raise refusal(error.message, error.hint) from None
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise refusal("must be a finite number")
    return number


@dataclass(frozen=True)
class Word:
    """A text of one line, not empty, without the characters given."""

    most: int
    without: str = ""

    def parse(self, value: Any) -> str:
        """Return the text without spaces around it."""
        if not isinstance(value, str):
            raise refusal("must be a text", "put it in quotes")
        text = value.strip()
        if not text:
            raise refusal("must not be empty")
        if len(text) > self.most:
            raise refusal(f"may have at most {self.most} characters")
        if not text.isprintable():
            raise refusal("must be one line of printable characters")
        wrong = next((c for c in text if c in self.without), None)
        if wrong is not None:
            raise refusal(f"must not hold {wrong!r}", "use letters, digits, - and _")
        return text

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self.parse)

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {"type": "string", "minLength": 1, "maxLength": self.most}


# names of layers, faults, data sets: they become physical groups, flags and files
Name = Annotated[str, Word(60, "/\\:;,*?\"'<>| \t")]
Title = Annotated[str, Word(200)]
