"""The arrays of a store of waves: series at stations, and of the whole ground."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import ArrayLike

from afterslip.archive.layout import StoreLayout, Variable, fixed, grouped
from afterslip.archive.tables import (
    SourceTable,
    StationTable,
    Values,
    source_arrays,
    station_arrays,
)
from afterslip.units import COMPONENTS
from afterslip_common.terms import GROUP_SIZE


@dataclass(frozen=True, slots=True)
class Sizes:
    """Lengths of the dimensions; no station or no row: not recorded."""

    source: int
    sample: int
    station: int = 0
    row: int = 0
    column: int = 0


def layout_of(sizes: Sizes) -> StoreLayout:
    """Return the layout of a store."""
    return StoreLayout(asdict(sizes), GROUP_SIZE, tuple(_grouped(sizes)))


def _grouped(sizes: Sizes) -> Iterator[Variable]:
    if sizes.station:
        dims = "station component sample"
        text = (
            "velocity at the stations per metre of slip, with the source-time function"
        )
        yield grouped("seismogram", dims, "f4", "s-1", text)
        text = "displacement at the stations per metre of slip"
        yield grouped("displacement", dims, "f4", "m m-1", text)
        text = "displacement at the end per metre of slip; NaN without springs"
        yield grouped("offset", "station component", "f8", "m m-1", text)
    if sizes.row:
        dims = "row column component sample"
        text = "displacement of the ground per metre of slip"
        whole = ("column", "component", "sample")
        yield grouped("wavefield", dims, "f4", "m m-1", text, whole)
    yield grouped("steps", "", "i4", "1", "steps of a source, 0: not solved yet")
    text = "kinetic energy at the end over its largest"
    yield grouped("energy_left", "", "f8", "1", text)


def fixed_arrays(
    sources: SourceTable,
    stations: StationTable | None,
    sampling: float,
    sizes: Sizes,
    x: ArrayLike,
    y: ArrayLike,
) -> Values:
    """Yield the arrays that are written when the store is created, with values.

    Parameters
    ----------
    sampling : s. x, y : (n_column,), (n_row,) m, of the points of the ground.
    """
    yield fixed("component", "component", "str", "", "axes of motion"), COMPONENTS
    text = "time after the begin of slip"
    times = sampling * np.arange(sizes.sample)
    yield fixed("sample", "sample", "f8", "s", text), times
    if sizes.row:
        yield fixed("column", "column", "f8", "m", "x of the points"), x
        yield fixed("row", "row", "f8", "m", "y of the points"), y
    yield from source_arrays(sources)
    yield from station_arrays(stations)
