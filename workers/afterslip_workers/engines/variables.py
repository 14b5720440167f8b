"""Variables of results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import xarray as xr


def variable(
    dims: Sequence[str], values: Any, attrs: Mapping[str, Any] | None = None
) -> xr.Variable:
    """Make a variable; xarray is imported for the first one, not with an engine."""
    import xarray as xr

    return xr.Variable(dims, values, attrs)
