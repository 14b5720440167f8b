"""Text tables with a header line: CSV, or columns between blanks."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from afterslip.errors import Problem, SpecError, one_problem, show
from afterslip.schemas.validation import ADVICE, nearest

Float = NDArray[np.float64]
Int = NDArray[np.int64]
Bool = NDArray[np.bool_]

# more would bury the first, which mostly explains the others
MAX_PROBLEMS = 20
# more are no table of stations, data or points
MAX_COLUMNS = 1000

# words that stand for a standard deviation before or after those of a component
_DEVIATIONS = ("sigma", "sig", "std", "sd", "err", "error")
_COMPONENTS = {
    "e": ("e", "east"),
    "n": ("n", "north"),
    "u": ("u", "up", "vert", "vertical"),
    "los": ("los",),
}
ALIASES = {
    "longitude": "lon",
    "lon_deg": "lon",
    "latitude": "lat",
    "lat_deg": "lat",
    "name": "station",
    "site": "station",
    "sta": "station",
    "code": "station",
    "e": "east",
    "n": "north",
    "u": "up",
    "de": "east",
    "dn": "north",
    "du": "up",
    "vert": "up",
    "vertical": "up",
    "uplift": "up",
    "east_m": "east",
    "north_m": "north",
    "up_m": "up",
    "se": "sigma_e",
    "sn": "sigma_n",
    "su": "sigma_u",
    **{
        name: f"sigma_{component}"
        for component, words in _COMPONENTS.items()
        for word in words
        for deviation in _DEVIATIONS
        for name in (f"{deviation}_{word}", f"{word}_{deviation}")
    },
    "corr_ne": "corr_en",
    "corr_ue": "corr_eu",
    "corr_un": "corr_nu",
    "los_m": "los",
    "los_east": "los_e",
    "los_north": "los_n",
    "los_up": "los_u",
    # quadtrees of Kite
    "node_id": "station",
    "mean_displacement": "los",
    "unite": "los_e",
    "unitn": "los_n",
    "unitu": "los_u",
    "strike_m": "strike",
    "dip_m": "dip",
    "strike_slip": "strike",
    "dip_slip": "dip",
}
_EMPTY = {"nan", "na", "-"}
_DECIMAL_COMMA = re.compile(r"[+-]?\d{1,20},\d{1,20}")


class Table:
    """Lines of text under named columns, and what is wrong with them.

    Attributes
    ----------
    label : what to call the table in messages.
    columns : names in lower case.
    lines : (n_row,) int64, line numbers in the file, from 1.
    problems : found so far; `check` raises them.
    """

    def __init__(
        self, label: str, columns: Sequence[str], rows: list[list[str]], lines: Int
    ) -> None:
        self.label = label
        self.columns = tuple(columns)
        self.lines = lines
        self.problems: list[Problem] = []
        self._cells = {
            name: [row[index] for row in rows] for index, name in enumerate(columns)
        }

    def __len__(self) -> int:
        return len(self.lines)

    def has(self, *names: str) -> bool:
        """Say whether all the columns are there."""
        return all(name in self._cells for name in names)

    def require(self, *names: str) -> bool:
        """Note which columns are missing; True where none is."""
        for name in names:
            if name not in self._cells:
                near = nearest(name, self.columns)
                known = ", ".join(show(column) for column in self.columns[:20])
                hint = f"rename {show(near)}?" if near else f"columns are: {known}"
                hint = ADVICE.get(near or "", hint)
                self.problems.append(
                    Problem(self.label, None, f"has no column {name}", hint)
                )
        return self.has(*names)

    def texts(self, name: str) -> list[str]:
        """Return a column's fields without blanks around them."""
        return self._cells[name]

    def numbers(self, name: str, needed: bool = False, unit_hint: str = "") -> Float:
        """Return a column as finite numbers, NaN where a field is empty.

        Parameters
        ----------
        name : the column; one that is not there is all NaN.
        needed : note empty fields as problems.
        unit_hint : what to do about a field that is no number, where its text does
            not say.

        Returns
        -------
        (n_row,) float64, in the unit of the file.
        """
        cells = self._cells.get(name)
        if cells is None:
            return np.full(len(self), np.nan)
        try:
            values = np.array([float(c) if c else np.nan for c in cells])
        except (ValueError, OverflowError):
            values = np.array([_number(c) for c in cells])
        empty = np.array([not c for c in cells], dtype=bool)
        wrong = ~np.isfinite(values) & ~empty
        wrong |= np.array(["_" in c for c in cells], dtype=bool)
        self._refuse_numbers(wrong, name, unit_hint)
        if needed:
            self.refuse(empty, name, "is missing")
        return np.where(wrong, np.nan, values)

    def refuse(
        self,
        rows: Bool,
        column: str,
        message: str,
        hint: str | Callable[[str], str] = "",
        *,
        one_cause: bool = False,
    ) -> None:
        """Note a problem for every row that is marked.

        Parameters
        ----------
        rows : (n_row,) bool.
        column : where; empty: the whole line.
        hint : what to do, or what to do by the field's text.
        one_cause : all rows have it from one mistake: name the first and count them.
        """
        marked = np.flatnonzero(rows)
        for index in marked[:1] if one_cause else marked:
            cells = self._cells.get(column)
            text = cells[index] if cells else None
            help_text = hint if isinstance(hint, str) else hint(text or "")
            place = self.place(int(index), column)
            if one_cause and len(marked) > 1:
                place += f" and {len(marked) - 1} more lines"
            self.problems.append(Problem(place, text or None, message, help_text))

    def _refuse_numbers(self, wrong: Bool, name: str, otherwise: str) -> None:
        """Note fields that are no numbers; decimal commas have one cause."""
        if not wrong.any():
            return
        cells, says = self._cells[name], "is not a finite number"
        commas = np.array([bool(_DECIMAL_COMMA.fullmatch(c)) for c in cells])
        self.refuse(wrong & commas, name, says, _with_point, one_cause=True)
        self.refuse(
            wrong & ~commas, name, says, lambda text: _empty_hint(text) or otherwise
        )

    def place(self, row: int, column: str = "") -> str:
        """Return the label of a row, e.g. ``stations.csv line 7, column lat``."""
        at = f", column {column}" if column else ""
        return f"{self.label} line {self.lines[row]}{at}"

    def check(self) -> None:
        """Raise the problems found, the first ones where there are many.

        Raises
        ------
        SpecError
            There is a problem.
        """
        if self.problems:
            raise SpecError(shortened(self.problems, self.label))


def _with_point(text: str) -> str:
    return f"write {text.replace(',', '.')} with a point"


def _empty_hint(text: str) -> str:
    missing = text.lower() in _EMPTY
    return "leave the field empty where there are no data" if missing else ""


def shortened(problems: list[Problem], label: str) -> list[Problem]:
    """Return the first problems of many, and how many more there are."""
    if len(problems) <= MAX_PROBLEMS:
        return problems
    more = len(problems) - MAX_PROBLEMS
    return [*problems[:MAX_PROBLEMS], Problem(label, None, f"has {more} more problems")]


def read_table(
    content: bytes, label: str, example: str, bare: Sequence[str] = ()
) -> Table:
    """Split a text into named columns.

    Commas, semicolons, tabs or blanks separate fields; lines that start with #, empty
    lines, a byte order mark and either kind of line end are no matter. Where the first
    line has only numbers, the header may be the comment before it.

    Parameters
    ----------
    label : what to call the file in messages.
    example : header to show where there is none.
    bare : names of the columns of a file that may lack a header.

    Raises
    ------
    SpecError
        Not a text, no header, no lines, repeated or too many columns, uneven lines.
    """
    lines = text_lines(content, label)
    if not lines:
        raise SpecError([Problem(label, None, "is empty", f"write {example}")])
    number, first = lines[0]
    place = f"{label} line {number}"
    separator = next((s for s in (",", ";", "\t") if s in first), None)
    names, start = _split(first, separator, place), 1
    if len(names) > MAX_COLUMNS:
        message = f"has {len(names)} fields, and a table has {MAX_COLUMNS} at most"
        raise one_problem(place, None, message, "end each line with a line break")
    if _no_header(names):
        found = list(bare) or _commented(content, number, separator, label)
        if len(found) != len(names):
            message = "must be the names of the columns"
            hint = f"put a line before it, such as {example}"
            raise SpecError([Problem(place, first, message, hint)])
        names, start = found, 0
    columns = [ALIASES.get(name.lower(), name.lower()) for name in names]
    twice = next((name for name, n in Counter(columns).items() if n > 1), None)
    if twice is not None:
        same = [n for n, column in zip(names, columns, strict=True) if column == twice]
        hint = f"remove or rename all but one of {', '.join(map(show, same[:5]))}"
        raise one_problem(place, twice, "is the name of two columns", hint)
    if len(lines) == start:
        raise SpecError([Problem(label, None, "has no lines after the header")])
    rows, problems = [], []
    for number, line in lines[start:]:
        row = _split(line, separator, f"{label} line {number}")
        while len(row) > len(columns) and not row[-1]:
            row.pop()
        if len(row) != len(columns):
            message = f"has {len(row)} fields, and the header has {len(columns)}"
            problems.append(Problem(f"{label} line {number}", None, message))
        rows.append(row)
    if problems:
        raise SpecError(shortened(problems, label))
    numbers = np.array([number for number, _ in lines[start:]], dtype=np.int64)
    return Table(label, columns, rows, numbers)


def _commented(
    content: bytes, number: int, separator: str | None, label: str
) -> list[str]:
    """Return the fields of the last comment before a line."""
    text = content.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    before = [line.strip() for line in text.split("\n")[: number - 1]]
    comments = [line.lstrip("# ") for line in before if line.startswith("#")]
    names = _split(comments[-1], separator, label) if comments else []
    return [] if _numeric(names) else names


def text_lines(content: bytes, label: str) -> list[tuple[int, str]]:
    """Return (number, text) of the lines that are neither empty nor comments."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        problem = Problem(
            f"{label} line {line}", None, "is not UTF-8 text", "save it as CSV in UTF-8"
        )
        raise SpecError([problem]) from None
    if "\0" in text:
        raise SpecError([Problem(label, None, "is not a text", "save it as CSV")])
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    stripped = ((i + 1, line.strip()) for i, line in enumerate(text.split("\n")))
    return [(i, line) for i, line in stripped if line and not line.startswith("#")]


def _split(line: str, separator: str | None, place: str) -> list[str]:
    if separator is None:
        return line.split()
    if '"' in line:
        try:
            fields = next(csv.reader([line], delimiter=separator))
        except csv.Error as error:
            message = f"cannot be split into fields: {error}"
            raise one_problem(
                place, None, message, "close the quotation mark"
            ) from None
    else:
        fields = line.split(separator)
    return [field.strip() for field in fields]


def _no_header(fields: list[str]) -> bool:
    """Tell data from the names of columns, which are no numbers."""
    return _numeric(fields) or sum(map(_numeric, ([f] for f in fields))) > 1


def _numeric(fields: list[str]) -> bool:
    return all(np.isfinite(_number(field)) for field in fields)


def _number(text: str) -> float:
    try:
        return float(text)
    except (ValueError, OverflowError):
        return np.nan
