"""What is wrong with a store that lacks what every store of its physics has."""

from __future__ import annotations

from typing import Any

import xarray as xr
from numpy.typing import NDArray

from afterslip.errors import DamagedError

HINT = "run `afterslip fsck --repair` where the store is"


def values(dataset: xr.Dataset, name: str) -> NDArray[Any]:
    """Return the values of an array that every store has.

    Raises
    ------
    DamagedError
        This one has no such array.
    """
    if name not in dataset.variables:
        raise lacking(f"{name}/zarr.json", "is missing")
    found: NDArray[Any] = dataset[name].values
    return found


def lacking(file: str, what: str) -> DamagedError:
    """Return the error of a store that lacks something."""
    return DamagedError("the store of Green's functions", file, what, HINT)
