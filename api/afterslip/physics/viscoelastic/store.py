"""The arrays of a store of curves: modes of the response, and what joins them.

``response(source, mode, node, component)`` has the elastic response as mode 0, then
Lanczos modes, whose coefficients follow from ``recurrence``, or the steps of time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from afterslip.archive.layout import StoreLayout, Variable, fixed, grouped
from afterslip.archive.tables import (
    SourceTable,
    StationTable,
    SurfaceTable,
    Values,
    source_arrays,
    station_arrays,
    surface_arrays,
)
from afterslip.units import COMPONENTS, YEAR
from afterslip_common.terms import GROUP_SIZE

Float = NDArray[np.float64]
Integrator = Literal["spectral", "stepping"]
_ERROR_TIMES = 6


@dataclass(frozen=True, slots=True)
class Sizes:
    """Lengths of the dimensions.

    Attributes
    ----------
    mode : largest number of modes of a source, the elastic one included; for
        stepping the number of steps and one.
    station, time : 0 stations: there is no ``displacement``.
    error_time : of `error_times`, and one; 0: there is no ``space_error``.
    """

    source: int
    mode: int
    node: int
    face: int
    station: int = 0
    time: int = 0
    error_time: int = 0


def error_times(output: ArrayLike) -> Float:
    """Return at which output times (s) the error of the change is stored, few of them.

    Between them it is interpolated, from zero at the time of the slip.
    """
    times = np.asarray(output, dtype=np.float64)
    later = times[times > 0.0]
    places = np.linspace(0, len(later) - 1, min(len(later), _ERROR_TIMES))
    return later[np.round(places).astype(np.int64)]


def layout_of(sizes: Sizes, integrator: Integrator = "spectral") -> StoreLayout:
    """Return the layout of a store."""
    return StoreLayout(
        dims={**asdict(sizes), "pair": 2},
        group_size=GROUP_SIZE,
        grouped=tuple(_grouped(sizes, integrator)),
        ragged=frozenset({"mode"}),
    )


def _grouped(sizes: Sizes, integrator: Integrator) -> Iterator[Variable]:
    yield grouped(
        "response",
        "mode node component",
        "f4",
        "m m-1",
        "displacement per metre of slip: mode 0 elastic, then Lanczos modes or steps",
        whole=("node", "component"),
        mesh="mesh",
        location="node",
    )
    if integrator == "spectral":
        yield grouped(
            "recurrence", "mode pair", "f8", "s-1", "alpha and beta of the modes"
        )
        yield grouped("start_norm", "", "f8", "1", "norm of the first creep rate")
        yield grouped("shift", "", "f8", "s", "gamma of shift-invert, 0: polynomial")
    if sizes.station:
        text = "displacement per metre of slip at the stations"
        yield grouped("displacement", "time station component", "f8", "m m-1", text)
    if sizes.error_time:
        yield grouped(
            "space_error",
            "error_time node",
            "f4",
            "m m-1",
            "estimated error of the mesh: first of the elastic displacement per metre "
            "of slip, then of the change since",
            mesh="mesh",
            location="node",
        )
    yield grouped("mode_count", "", "i4", "1", "modes of a source, 0: not solved yet")
    yield grouped("residual", "", "f8", "1", "largest relative residual reached")
    yield grouped("time_error", "", "f8", "1", "estimated relative error of the curve")
    yield grouped("iterations", "", "i4", "1", "iterations of the linear solver")


def fixed_arrays(
    sources: SourceTable,
    surface: SurfaceTable,
    stations: StationTable | None,
    times: ArrayLike,
    n_mode: int,
    step_times: ArrayLike | None = None,
    errors_at: ArrayLike | None = None,
) -> Values:
    """Yield the arrays that are written when the store is created, with values.

    Parameters
    ----------
    times : (n_time,) s, output times.
    n_mode : largest number of modes of a source, the elastic one included.
    step_times : (n_mode,) s, for stepping, the first 0.
    errors_at : s, of `error_times`, where the mesh's error is estimated.
    """
    yield fixed("component", "component", "str", "", "axes of motion"), COMPONENTS
    yield fixed("mode", "mode", "i4", "1", "0: elastic"), np.arange(n_mode)
    text = "output times after the event"
    yield fixed("time", "time", "f8", "yr", text), _years(times)
    if step_times is not None:
        text = "time of a step"
        yield fixed("step_time", "mode", "f8", "yr", text), _years(step_times)
    if errors_at is not None:
        text = "time of an error of the change; 0: error of the elastic displacement"
        moments = np.append(0.0, errors_at)
        yield fixed("error_time", "error_time", "f8", "yr", text), _years(moments)
    yield from source_arrays(sources)
    yield from surface_arrays(surface)
    yield from station_arrays(stations)


def _years(seconds: ArrayLike) -> Float:
    return np.asarray(np.asarray(seconds, dtype=np.float64) / YEAR)


def attributes(integrator: Integrator, until: float) -> dict[str, str | float]:
    """Return what the root says of the curves; ``until`` in s."""
    return {"integrator": integrator, "until_yr": float(until) / YEAR}
