"""JSON of untrusted clients: read once, in time and memory that its size bounds.

Python's parser is kinder than RFC 8259: it takes NaN, keys that come twice and any
depth, and makes 20 bytes of objects from one byte of text. What would be built is
therefore counted in the bytes, by numpy, before anything is built.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

import numpy as np

DEEPEST = 64
DIGITS = 400
KEYS = 1000
_CHUNK = 1 << 18
_QUOTE, _COMMA = ord('"'), ord(",")
_STEP = np.zeros(256, dtype=np.int8)
_STEP[[ord("["), ord("{")]] = 1
_STEP[[ord("]"), ord("}")]] = -1
# what a text may not hold can only be there as an escape
_SUSPECT = re.compile(rb"\\u(?:0000|[dD][89a-fA-F])")


class BodyError(Exception):
    """A body is not JSON as this service takes it; the message ends a sentence."""


class TooManyValuesError(BodyError):
    """A body holds more values than its route takes."""


def read(body: bytes, most_values: int) -> Any:
    """Return what a body says.

    Parameters
    ----------
    most_values : numbers, texts, lists and objects that it may hold, in all.

    Raises
    ------
    TooManyValuesError
        If it holds more; found before any of them is built.
    BodyError
        If it is not UTF-8, not JSON, nested too deeply, gives a key twice or an
        object too many, or holds a number or a text that neither a double nor a
        database can hold.
    """
    check_structure(body, most_values)
    try:
        value = json.loads(
            body.decode("utf-8"),
            object_pairs_hook=_pairs,
            parse_constant=_constant,
            parse_float=_float,
            parse_int=_integer,
        )
    except UnicodeDecodeError:
        raise BodyError("is not UTF-8") from None
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise BodyError(f"is not JSON: {error.msg.lower()} ({where})") from None
    if _SUSPECT.search(body):
        _check_texts(value)
    return value


def check_structure(body: bytes, most_values: int) -> None:
    """Count values and levels in the bytes of a body, outside of its texts.

    Each value but the first stands behind a comma or a bracket that opens.

    Raises
    ------
    TooManyValuesError, BodyError
        If there are too many.
    """
    if b"\\" in body:
        # an escaped quote ends no text; pairs of backslashes go first
        body = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    content = np.frombuffer(body, dtype=np.uint8)
    values, level, within = 1, 0, np.False_
    for start in range(0, len(content), _CHUNK):
        part = content[start : start + _CHUNK]
        text = np.logical_xor.accumulate(part == _QUOTE) ^ within
        within = text[-1]
        outside = ~text
        step = _STEP[part] * outside
        values += int(np.count_nonzero(step == 1))
        values += int(np.count_nonzero((part == _COMMA) & outside))
        if values > most_values:
            raise TooManyValuesError(
                f"holds more than the {most_values:,} values that are allowed here"
            )
        levels = np.cumsum(step, dtype=np.int64)
        if level + int(levels.max()) > DEEPEST:
            raise BodyError(f"is nested deeper than {DEEPEST} levels")
        level += int(levels[-1])


def _constant(word: str) -> Any:
    raise BodyError(f"holds {word}, which is not a number of JSON")


def _integer(digits: str) -> int:
    _check_digits(digits)
    return int(digits)


def _float(digits: str) -> float:
    _check_digits(digits)
    value = float(digits)
    if math.isinf(value):
        raise BodyError(f"holds the number {digits[:40]}, which no double holds")
    return value


def _check_digits(digits: str) -> None:
    if len(digits) > DIGITS:
        raise BodyError(f"holds a number of more than {DIGITS} digits")


def _pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(items) > KEYS:
        raise BodyError(f"gives an object more than {KEYS:,} keys")
    found = dict(items)
    if len(found) < len(items):
        known: set[str] = set()
        for key, _ in items:
            if key in known:
                raise BodyError(f"gives the key {key[:80]!r} twice")
            known.add(key)
    return found


def _check_texts(value: Any) -> None:
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            _check_text(item)
        elif isinstance(item, dict):
            waiting += item
            waiting += item.values()
        elif isinstance(item, list):
            waiting += item


def _check_text(text: str) -> None:
    if "\0" in text:
        raise BodyError("holds a text with a NUL character")
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise BodyError(
                "holds half of a surrogate pair, which is no text"
            ) from None
