"""Units that users write, and what they are in SI.

Inside everything is SI. Users write km, km/s, kg/m3, degrees, Pa s and times with
their unit ("30 d", "10 yr"). A year is a Julian year of 365.25 days.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

from afterslip_common.terms import COMPONENTS, DAY, KM, SLIP_COMPONENTS, YEAR

__all__ = [
    "COMPONENTS",
    "DAY",
    "KM",
    "SLIP_COMPONENTS",
    "YEAR",
    "UnitError",
    "parse_number",
    "parse_time",
    "power_of_ten",
    "readable_time",
]

# seconds per unit; months are left out because they have no one length
_TIME_UNITS = {
    **dict.fromkeys(("s", "sec", "second", "seconds"), Decimal(1)),
    **dict.fromkeys(("min", "minute", "minutes"), Decimal(60)),
    **dict.fromkeys(("h", "hr", "hour", "hours"), Decimal(3600)),
    **dict.fromkeys(("d", "day", "days"), Decimal(86400)),
    **dict.fromkeys(("wk", "week", "weeks"), Decimal(604800)),
    **dict.fromkeys(("yr", "y", "a", "year", "years"), Decimal(31557600)),
}
# what a number with a unit is in the unit of the schema
_FACTORS: dict[str, dict[str, Decimal]] = {
    "km": {"km": Decimal(1), "m": Decimal("0.001")},
    "m": {"m": Decimal(1), "cm": Decimal("0.01"), "mm": Decimal("0.001")},
    "km/s": {"km/s": Decimal(1), "m/s": Decimal("0.001")},
    "kg/m3": {"kg/m3": Decimal(1), "g/cm3": Decimal(1000)},
    "%": {"%": Decimal(1)},
    "Hz": {"Hz": Decimal(1), "mHz": Decimal("0.001")},
    "Pa s": {"Pa s": Decimal(1), "Pas": Decimal(1), "Pa.s": Decimal(1)},
    "deg": {"deg": Decimal(1), "degrees": Decimal(1), "°": Decimal(1)},
}
_QUANTITY = re.compile(
    r"^\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,4})?)\s*(.*?)\s*$"
)


class UnitError(ValueError):
    """A text is not a quantity of the wanted kind; says why and how to correct it."""

    def __init__(self, message: str, hint: str = "") -> None:
        self.message = message
        self.hint = hint
        super().__init__(message)


def parse_time(text: str) -> float:
    """Return a time in s from a text such as ``"30 d"`` or ``"10 yr"``.

    The product is taken in decimal arithmetic, so equal times written in different
    units give the same float.

    Raises
    ------
    UnitError
        Not a number with a unit of time.
    """
    number, unit = _split(text, "30 d")
    if not unit:
        given = text.strip()
        raise UnitError(
            "is a time without a unit", f'write "{given} d" or "{given} yr"'
        )
    factor = _TIME_UNITS.get(unit) or _TIME_UNITS.get(unit.lower())
    if factor is None:
        raise UnitError(
            f"has no known unit of time ({unit!r})", "use s, min, h, d or yr"
        )
    return float(number * factor)


def readable_time(text: str) -> str:
    """Return a time in the largest unit that gives it exactly, else as it is.

    ``"157788000.0 s"`` is ``"5 yr"``; both are parsed as the same number.
    """
    seconds = parse_time(text)
    for unit in ("yr", "d", "h", "min", "s"):
        number = Decimal(repr(seconds)) / _TIME_UNITS[unit]
        if number == number.to_integral_value():
            return f"{number:.0f} {unit}"
    return text


def parse_number(text: str, unit: str = "") -> float:
    """Return the number in a text, in ``unit``.

    Parameters
    ----------
    text : ``"1e19"``, or with a unit of the same kind, ``"35000 m"``.
    unit : the unit wanted, one of km, m, km/s, kg/m3, %, Hz, Pa s, deg; empty: a plain
        number.

    Raises
    ------
    UnitError
        Not a number, or in a unit of another kind.
    """
    number, given = _split(text, "1.0e19" if unit == "Pa s" else "12.5")
    if not given:
        return float(number)
    factors = _FACTORS.get(unit, {})
    factor = factors.get(given.replace("·", ".").replace("³", "3").replace("^", ""))
    if factor is None:
        wanted = f"must be in {unit}" if unit else "must be a number without a unit"
        hint = f"write the number in {unit}" if unit else "write the number alone"
        raise UnitError(f"{wanted}, not {given!r}", hint)
    return float(number * factor)


def _split(text: str, example: str) -> tuple[Decimal, str]:
    match = _QUANTITY.match(text)
    if match is None:
        raise UnitError("is not a number", f"write e.g. {example}")
    try:
        number = Decimal(match[1])
    except InvalidOperation:
        raise UnitError("is not a number", f"write e.g. {example}") from None
    return number, match[2]


def limits(pair: Sequence[float] | None, form: str) -> str:
    """Write the limits of 95 % behind a number; nothing where there are none.

    Parameters
    ----------
    form : format specification of the limits, such as ``.2f``.
    """
    return "" if pair is None else f" ({pair[0]:{form}} to {pair[1]:{form}})"


def largest_slip(said: Mapping[str, Any], form: str, where: str = "") -> str:
    """Write the largest slip, and its average over what is resolved with its limits.

    Only the average has limits: data say little of slip that varies over less.

    Parameters
    ----------
    said : attributes of a result or the summary of an inversion.
    form : format specification of slip in m.
    where : it is, with a blank before it.
    """
    text = f"{float(said['peak_slip']):{form}} m{where}"
    average, pair = said.get("peak_slip_average"), said.get("peak_slip_interval")
    if average is None or pair is None:
        return text
    length = rounded(float(said["peak_slip_length"]) / 1e3)
    return f"{text}, mean over {length} km {average:{form}} m{limits(pair, form)}"


def rounded(value: float) -> str:
    """Write a number with two digits, and without a power of ten up to 999,999."""
    return f"{float(f'{value:.2g}'):g}"


def power_of_ten(value: float) -> str:
    """Write a number as ``4.21 × 10²²``."""
    if value == 0.0 or not math.isfinite(value):
        return f"{value:g}"
    digits, _, power = f"{value:.2e}".partition("e")
    raised = str(int(power)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"{digits} × 10{raised}"


def several(count: int, what: str) -> str:
    """Return ``1 group``, ``2,000 groups``."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"
