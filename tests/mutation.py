"""Damaged and hostile versions of files that are valid."""

from __future__ import annotations

import os
import random

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

LONG = "EXAMPLES" in os.environ


def examples(count: int) -> settings:
    """Return settings of a fuzz: ``count`` fixed examples, or $EXAMPLES random ones."""
    return settings(
        max_examples=int(os.environ.get("EXAMPLES", count)),
        deadline=None,
        derandomize=not LONG,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )


ODD_NUMBERS = (
    "nan", "inf", "-inf", "1e400", "1e308", "-1e308", "1e154", "5e-324", "1e-320", "-0",
    "0", "9223372036854775808", "18446744073709551616", "-1", "180", "-180", "90",
    "-90", "360", "1e5", "91", "0x10", "1_0", "1,5", "١", "9" * 5000,
)  # fmt: skip
ODD_TEXTS = (
    "", " ", '"', '"a', "\0", "\ufeff", "\ud7ff", "=1+1", "#", ">", "a\rb", "é", ";",
    "\x1b[31m", "x" * 200, "x" * 200_000, '"' + "x" * 200_000 + '"', "gnss", "insar",
    "obp", "30 d", "NaT",
)  # fmt: skip
odd_cells = st.sampled_from(ODD_NUMBERS + ODD_TEXTS) | st.text(max_size=6)
# what counts, sizes and offsets of binary formats may be replaced with
ODD_BYTES = (
    b"\0\0\0\0", b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\x80\0\0\0", b"\0\0\0\x01",
    b"\xff" * 8, b"\0" * 8, b"\0\0\0\0\0\0\0\x80", b"\xff\xff\xff\x7f", b"\x01\0\0\0",
    b"\0\0\0\0\0\0\xf8\x7f", b"\x7f\xf8\0\0\0\0\0\0", b"-1", b"1e9", b"999999999999",
    b"<", b"\n", b"\"", b"\0",
)  # fmt: skip


@st.composite
def damaged(draw: st.DrawFn, content: bytes) -> bytes:
    """Draw a file with some bytes replaced, cut out, repeated, or with its end lost."""
    # positions are uniform: a drawn integer prefers the ends of a file
    where = random.Random(draw(st.integers(0, 2**32)))
    changed = bytearray(content)
    for _ in range(draw(st.integers(1, 4))):
        if not changed:
            break
        at = where.randrange(len(changed))
        length = draw(st.sampled_from((1, 2, 4, 8, 64, 1000)))
        kind = draw(st.sampled_from(("flip", "odd", "odd", "cut", "repeat", "end")))
        if kind == "flip":
            changed[at] ^= 1 << where.randrange(8)
        elif kind == "odd":
            odd = draw(st.sampled_from(ODD_BYTES))
            changed[at : at + len(odd)] = odd
        elif kind == "cut":
            del changed[at : at + length]
        elif kind == "repeat":
            changed[at:at] = changed[at : at + length]
        else:
            del changed[at:]
    return bytes(changed)


def encoded(text: str, how: str) -> bytes:
    """Return a text as odd programs save it."""
    if how == "mixed":
        lines = text.split("\n")
        ends = ("\n", "\r\n", "\r")
        text = "".join(line + ends[i % 3] for i, line in enumerate(lines))
    if how == "crlf":
        text = text.replace("\n", "\r\n")
    if how.startswith("utf-16"):
        return text.encode(how, "replace")
    mark = b"\xef\xbb\xbf" if how == "bom" else b""
    tail = b"\0" if how == "nul" else b"\xff" if how == "latin" else b""
    return mark + text.encode("utf-8", "replace") + tail


ENCODINGS = ("plain", "plain", "bom", "mixed", "crlf", "utf-16", "utf-16-le", "nul",
             "latin")  # fmt: skip


@st.composite
def changed_tables(draw: st.DrawFn, header: str, rows: tuple[str, ...]) -> bytes:
    """Draw a table in which some fields, columns or line ends are not right."""
    table = [line.split(",") for line in (header, *rows)]
    for _ in range(draw(st.integers(0, 3))):
        row = draw(st.sampled_from(table))
        if row:
            row[draw(st.integers(0, len(row) - 1))] = draw(odd_cells)
    change = draw(
        st.sampled_from(("none", "drop", "twice", "swap", "ragged", "wide", "tall"))
    )
    column = draw(st.integers(0, max(0, min(map(len, table)) - 1)))
    if change == "drop":
        table = [row[:column] + row[column + 1 :] for row in table]
    elif change == "twice":
        table = [[*row, row[column]] for row in table]
    elif change == "swap":
        table = [row[::-1] for row in table]
    elif change == "ragged":
        table[-1] = table[-1] * draw(st.sampled_from((0, 2, 1000)))
    elif change == "wide":
        table = [row + [f"{i}{n}" for n in range(200_000)] for i, row in
                 enumerate(table[:2])]  # fmt: skip
    elif change == "tall" and sum(map(len, table[-1])) < 10_000:
        table += [[*table[-1][:-1], f"{table[-1][-1][:20]}{n}"] for n in range(2000)]
    joint = draw(st.sampled_from((",", ",", ",", ";", "\t", " ", ", ")))
    text = "\n".join(joint.join(row) for row in table)
    return encoded(text, draw(st.sampled_from(ENCODINGS)))
