"""Help and errors of options in plain words, not in those of the libraries."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from typer.core import TyperCommand

# what pydantic says → what we say; the first that fits
_WORDS = (
    (r"Input should be a valid integer.*", "must be a whole number"),
    (r"Input should be a valid (\w+).*", r"must be a \1"),
    (r"Input should be greater than or equal to (.*)", r"must be at least \1"),
    (r"Input should be less than or equal to (.*)", r"must be at most \1"),
    (r"Input should be greater than (.*)", r"must be more than \1"),
    (r"Input should be less than (.*)", r"must be less than \1"),
    (r"Input should be (.*)", r"must be \1"),
    (r"Value error, '.*' is not one of (.*?)\.?$", r"must be one of \1"),
    (r"Value error, (.*)", r"\1"),
    (r"Field required", "is missing"),
    (r"Extra inputs are not permitted", "is not a known key"),
    (r"String should have (at \w+ \d+ characters?)", r"must have \1"),
    (r"\w+ should have (at \w+ \d+) items?.*", r"must have \1 entries"),
    (r"String should match pattern '(.*)'", r"must match \1"),
)


def plain_words(message: str) -> str:
    """Return what is wrong with an option or a setting as a user would say it."""
    for pattern, words in _WORDS:
        if re.match(pattern, message, re.DOTALL):
            return re.sub(pattern, words, message, flags=re.DOTALL)
    return message


class PlainCommand(TyperCommand):
    """A verb whose usage line names its arguments as manuals do."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the usage line's parts, arguments without braces."""
        return [
            re.sub("[{}]", "", piece) for piece in super().collect_usage_pieces(ctx)
        ]


def name_parameters(command: Any) -> None:
    """Let the help name arguments in capitals, and repeated options by one value."""
    commands: Iterable[Any] = getattr(command, "commands", {}).values()
    for inner in commands:
        name_parameters(inner)
    for parameter in command.params:
        several = parameter.type_descriptor.is_list
        kind = parameter.bare_type().removeprefix("list[").removesuffix("]")
        if parameter.param_type_name == "argument":
            parameter.metavar = parameter.metavar or parameter.name.upper()
            if several:  # the usage line says so by its dots
                parameter.bare_type = kind.lower
        elif several and parameter.metavar is None:
            parameter.metavar = {"str": "TEXT", "int": "NUMBER"}.get(kind, kind.upper())
