"""Whether an inversion that was done again says the same."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from afterslip.errors import one_problem
from afterslip.result import facts

Float = NDArray[np.float64]

NUMBERS = (
    "moment",
    "magnitude",
    "peak_slip",
    "smoothness",
    "variance_reduction",
    "moment_interval",
    "magnitude_interval",
    "peak_slip_interval",
)


@dataclass(frozen=True, slots=True)
class Comparison:
    """One quantity, stored and found again.

    Attributes
    ----------
    change : largest difference, relative to the largest stored value; inf where the
        two have not the same shape, or one is missing.
    """

    name: str
    change: float

    def within(self, tolerance: float) -> bool:
        """Whether the change is no larger than a tolerance."""
        return self.change <= tolerance


def record_of(result: xr.Dataset) -> tuple[str, dict[str, object]]:
    """Return the campaign and the request that a result was made by.

    Raises
    ------
    SpecError
        Where the result says neither.
    """
    campaign, request = result.attrs.get("campaign"), facts(result, "request")
    if not campaign or not isinstance(request, dict):
        hint = "it must be the result.nc of an inversion"
        raise one_problem("result", None, "has no record of its request", hint)
    return str(campaign), request


def compare(stored: xr.Dataset, again: xr.Dataset) -> Iterator[Comparison]:
    """Compare data, slip, its intervals and the numbers that people quote."""
    for name in ("observed", "sigma", "slip", "slip_sigma", "predicted"):
        if name in stored or name in again:
            yield Comparison(name, _change(_values(stored, name), _values(again, name)))
    for name in NUMBERS:
        if name in stored.attrs or name in again.attrs:
            pair = (np.atleast_1d(d.attrs.get(name, [])) for d in (stored, again))
            yield Comparison(name, _change(*pair))


def _values(result: xr.Dataset, name: str) -> Float:
    return np.asarray(result[name].values if name in result else [], dtype=np.float64)


def _change(stored: Float, again: Float) -> float:
    if stored.shape != again.shape:
        return float("inf")
    same = np.array_equal(np.isnan(stored), np.isnan(again))
    if not same:
        return float("inf")
    size = float(np.nanmax(np.abs(stored), initial=0.0))
    off = float(np.nanmax(np.abs(stored - again), initial=0.0))
    return off / size if size > 0 else off
