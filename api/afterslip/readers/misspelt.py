"""Columns that are not read, though they are called nearly as one that would be."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from difflib import SequenceMatcher

from afterslip.errors import Problem, show
from afterslip.readers.delimited import ALIASES, Table
from afterslip.schemas.validation import nearest

# of the letters of two names; files have columns of their own, such as n_obs, rms
_ALIKE = 0.8
# letters of another name that is compared: shorter ones are like too much
_SHORTEST = 4
_LONGEST = 100
_UNIT = re.compile(r"[\W_]+(?:m|cm|mm|met(?:re|er)s?)\W*$")


def refuse_misspelt(
    table: Table, known: Collection[str], meant: Mapping[str, str]
) -> None:
    """Note columns that look like one that the table lacks.

    They would be left out, and what they give would be missing or replaced by a
    default, with nothing to say so.

    Parameters
    ----------
    known : names of columns that are right, whether they are read or not.
    meant : name or other word → the column that the table lacks and would be read.
    """
    lacking = set(meant.values())
    words = dict(meant) | {
        name: column
        for name, column in ALIASES.items()
        if column in lacking and len(name) >= _SHORTEST
    }
    for name in table.columns:
        if name in known or len(name) > _LONGEST or not any(table.texts(name)):
            continue
        bare = _UNIT.sub("", name)
        column = ALIASES.get(bare) if bare != name else None
        if column not in lacking:
            near = nearest(bare, list(words))
            column = words[near] if near and _alike(bare, near) else None
        if column is not None:
            unit = ", in m" if bare != name else ""
            table.problems.append(
                Problem(
                    f"{table.label}, column {show(name)}",
                    None,
                    "is not read",
                    f"did you mean {column}{unit}? rename it, or remove it",
                )
            )


def _alike(name: str, other: str) -> bool:
    # two letters in the wrong order are one mistake
    exchanged = sorted(name) == sorted(other)
    return exchanged or SequenceMatcher(None, name, other).ratio() >= _ALIKE
