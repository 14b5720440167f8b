"""When data were there: a table's column of times after the event."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from afterslip.errors import Problem
from afterslip.readers.delimited import Float, Table
from afterslip.units import DAY, YEAR, UnitError, parse_time

LATEST = 1e6 * YEAR
COLUMNS = {"time": YEAR, "time_yr": YEAR, "time_d": DAY, "time_s": 1.0}
"""Columns that are read, the first that is there, and s in their units."""
_WORDS = {YEAR: "years", DAY: "days", 1.0: "seconds"}
LIKE_TIME = re.compile(
    r"epochs?|date|datetime|days?|years?|yrs?|decimal_?years?|decyr|mjd"
    r"|t|(?:t|time)[\W_].*"
)


def times(table: Table, epoch: float) -> Float:
    """(n_row,) s after the event; ``epoch`` where the table gives no time."""
    column = next((name for name in COLUMNS if table.has(name)), None)
    if column is None:
        _refuse_other_times(table)
        return np.full(len(table), epoch)
    if column == "time" and _mostly_with_units(table.texts(column)):
        values = _with_units(table, column)
    else:
        factor = COLUMNS[column]
        hint = f"write a number of {_WORDS[factor]}, without a unit"
        numbers = table.numbers(column, unit_hint=hint)
        # a time that is too large to be one need not be exact
        values = np.clip(numbers, -1e300, 1e300 / YEAR) * factor
    table.refuse(values < 0, column, "is before the event", "times count from it")
    table.refuse(
        values > LATEST, column, "is more than a million years", "see its unit"
    )
    return np.where(np.isnan(values), epoch, values)


def _has_unit(text: str) -> bool:
    return text[-1:].isalpha() and text.lower() != "nan"


def _mostly_with_units(texts: Sequence[str]) -> bool:
    """Tell which way of writing is the rule, so that others are the mistakes."""
    with_unit = sum(map(_has_unit, texts))
    return 0 < with_unit >= 0.5 * sum(map(bool, texts))


def _with_units(table: Table, column: str) -> Float:
    """(n_row,) s of a column of times with units; NaN where a field is empty."""
    texts = table.texts(column)
    values, wrong = np.full(len(table), np.nan), np.zeros(len(table), bool)
    for row, text in enumerate(texts):
        try:
            values[row] = parse_time(text) if text else np.nan
        except UnitError:
            wrong[row] = True
    plain = wrong & ~np.array([_has_unit(text) for text in texts], bool)
    says = "is not a time with its unit"
    table.refuse(wrong & ~plain, column, says, 'e.g. "30 d"')
    table.refuse(
        plain, column, says, 'other lines have one: write e.g. "30 d"', one_cause=True
    )
    return values


def _refuse_other_times(table: Table) -> None:
    """Note columns of times under names that are not read.

    Without them all lines would be of one epoch, and nothing would say so.
    """
    for name in table.columns:
        texts = table.texts(name)
        if LIKE_TIME.fullmatch(name) and any(texts):
            first = next(row for row, text in enumerate(texts) if text)
            table.problems.append(
                Problem(
                    table.place(first, name),
                    texts[first],
                    "looks like a time, in a column that is not read",
                    "count from the event and name the column time_yr (years), time_d "
                    "(days), time_s (seconds) or time (years, or with units, 30 d); "
                    "remove it where all lines are of the data set's epoch",
                )
            )
