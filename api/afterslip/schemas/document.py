"""Specs as text: YAML or JSON, read without any of their traps.

YAML 1.1 reads ``no`` as false, ``12:30`` as 750 and ``1e19`` as a text; here only
``true`` and ``false`` are truth values and every decimal number is a number. Tags,
aliases and repeated keys are refused.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import yaml

from afterslip.errors import SpecError, one_problem

MAX_BYTES = 32 * 2**20
_NUMBER_START = list("-+0123456789.")


def load(path: str | Path) -> dict[str, Any]:
    """Read a spec file, YAML or JSON by its name's ending (YAML if in doubt).

    Raises
    ------
    SpecError
        The file cannot be read or is no well-formed mapping; with line and column.
    """
    path = Path(path)
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        raise one_problem(str(path), None, "file not found") from None
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise one_problem(str(path), None, f"cannot be read: {reason}") from None
    return loads(raw, path.name)


def loads(raw: bytes | str, name: str = "spec") -> dict[str, Any]:
    """Read a spec from text.

    Parameters
    ----------
    raw : the document, UTF-8.
    name : what to call it in messages; ``.json`` at its end selects JSON.

    Raises
    ------
    SpecError
        As for `load`.
    """
    text = _decode(raw, name)
    try:
        data = _json(text) if name.endswith(".json") else _yaml(text)
    except _SyntaxError as error:
        raise one_problem(
            f"{name} {error.where}".strip(), None, error.message, error.hint
        ) from None
    except RecursionError:
        raise one_problem(name, None, "is nested too deeply") from None
    if data is None:
        raise one_problem(name, None, "is empty", "write a spec into it")
    if not isinstance(data, dict):
        raise one_problem(name, data, "must be a mapping of keys to values")
    return data


class _SyntaxError(Exception):
    def __init__(self, where: str, message: str, hint: str = "") -> None:
        self.where, self.message, self.hint = where, message, hint
        super().__init__(message)


def _decode(raw: bytes | str, name: str) -> str:
    if len(raw) > MAX_BYTES:
        raise one_problem(name, None, "is larger than 32 MiB: this is no spec")
    if isinstance(raw, str):
        return raw
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise one_problem(
            f"{name} line {line}", None, "is not UTF-8 text", "save the file as UTF-8"
        ) from None


def _json(text: str) -> Any:
    def refuse_constant(word: str) -> Any:
        raise _SyntaxError("", f"holds {word}, which is not a number", "remove it")

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        keys = [key for key, _ in items]
        twice = next((key for key in keys if keys.count(key) > 1), None)
        if twice is not None:
            raise _SyntaxError("", f"key {twice!r} is given twice", "keep one of them")
        return dict(items)

    try:
        return json.loads(text, object_pairs_hook=pairs, parse_constant=refuse_constant)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise _SyntaxError(where, f"is not JSON: {error.msg.lower()}") from None
    except ValueError:  # integers of thousands of digits
        raise _SyntaxError("", "holds a number with too many digits") from None


class _Loader(yaml.SafeLoader):
    """YAML 1.2's core schema: no dates, no base 60, no yes and no."""

    yaml_implicit_resolvers: dict[str, list[Any]] = {}  # noqa: RUF012 yaml's way

    def compose_node(self, parent: Any, index: Any) -> Any:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        if isinstance(event, yaml.AliasEvent):
            raise _at(event.start_mark, "aliases (*name) are not read", "write it out")
        if getattr(event, "tag", None) is not None:
            raise _at(event.start_mark, "tags (!name) are not read", "remove the tag")
        return super().compose_node(parent, index)

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:  # noqa: ARG002
        keys: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise _at(key.start_mark, "a key must be a plain word")
            if key.value in keys:
                raise _at(
                    key.start_mark, f"key {key.value!r} is given twice", "keep one"
                )
            keys.add(key.value)
        return {
            key.value: self.construct_object(value, deep=True)
            for key, value in node.value
        }

    def construct_yaml_map(self, node: Any) -> Any:
        data: dict[Any, Any] = {}
        yield data
        data.update(self.construct_mapping(node))


def _at(mark: Any, message: str, hint: str = "") -> _SyntaxError:
    where = f"line {mark.line + 1}, column {mark.column + 1}"
    return _SyntaxError(where, message, hint)


def _integer(loader: _Loader, node: Any) -> int:  # noqa: ARG001
    if len(node.value) > 400:
        raise _at(node.start_mark, "holds a number with too many digits")
    return int(node.value)


_Loader.add_constructor("tag:yaml.org,2002:map", _Loader.construct_yaml_map)
_Loader.add_constructor("tag:yaml.org,2002:int", _integer)
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:bool",
    re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$"),
    list("tTfF"),
)
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:null",
    re.compile(r"^(?:~|null|Null|NULL|)$"),
    ["~", "n", "N", ""],
)
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:int", re.compile(r"^[-+]?[0-9]+$"), _NUMBER_START[:-1]
)
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(
        r"^(?:[-+]?(?:\.[0-9]+|[0-9]+\.[0-9]*|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?"
        r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$"
    ),
    _NUMBER_START,
)


def _yaml(text: str) -> Any:
    try:
        return yaml.load(text, Loader=_Loader)  # noqa: S506 a SafeLoader
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        reason = error.problem or "cannot be read"
        failure = f"is not YAML: {reason}"
        if mark is None:
            raise _SyntaxError("", failure) from None
        hint = "indent with spaces" if "\\t" in reason else ""
        raise _at(mark, failure, hint) from None
    except yaml.YAMLError:
        raise _SyntaxError("", "holds characters that YAML does not allow") from None


__all__ = ["SpecError", "load", "loads"]
