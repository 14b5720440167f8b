"""Kinds of data, and the words that files use for them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from afterslip.errors import Problem
from afterslip.readers.delimited import Table
from afterslip.schemas.validation import nearest

KINDS = ("gnss", "gnssa", "obp", "insar")


def kind_of(text: str) -> str | None:
    """Return the kind of data that a text of the column ``type`` means, if any."""
    word = text.strip().lower().replace("-", "_").replace(" ", "_")
    if word.startswith(("gnssa", "gnss_a", "gpsa", "gps_a", "seafloor", "sea_floor")):
        return "gnssa"
    if word in {"gnss", "gps"} or word.startswith(("gnss_", "gps_")):
        return "gnss"
    if word == "obp" or word.startswith(("obp_", "ocean_bottom_pressure")):
        return "obp"
    if word in {"insar", "los"} or word.startswith("insar_"):
        return "insar"
    return None


def kinds(table: Table, own: Mapping[str, str], default: str) -> NDArray[np.str_]:
    """Return the kind of each line; note each unknown tag once, with its lines.

    Parameters
    ----------
    own : the user's tag → kind; it goes before the usual words.
    default : kind of all lines where there is no column ``type``.
    """
    if not table.has("type"):
        return np.full(len(table), default)
    texts = table.texts("type")
    folded = {tag.strip().lower(): kind for tag, kind in own.items()}
    lines: dict[str, list[int]] = {}
    for line, text in enumerate(texts):
        lines.setdefault(text, []).append(line)
    known = {t: folded.get(t.lower()) or kind_of(t) for t in lines}
    for tag in [text for text, kind in known.items() if kind is None]:
        first, more = lines[tag][0], len(lines[tag]) - 1
        near = nearest(tag, KINDS) if tag else None
        write = f"types: {{{tag or 'TAG'}: {near or 'gnss'}}} in the data set"
        table.problems.append(
            Problem(
                table.place(first, "type") + (f" and {more} more" if more else ""),
                tag or None,
                f"must be one of {', '.join(KINDS)}",
                f"did you mean {near}? otherwise write {write}"
                if near
                else f"or write {write}",
            )
        )
    return np.array([known[text] or "gnss" for text in texts])
