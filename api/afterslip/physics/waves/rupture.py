"""Whether data and windows of an inversion go with a campaign of waves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from afterslip.errors import Problem
from afterslip.physics.waves.spec import WaveCampaign
from afterslip.readers.motion import SAMPLES_IN_PERIOD
from afterslip.readers.observations import SAME_PLACE
from afterslip.readers.rows import Rows
from afterslip.schemas.inversion import Inversion
from afterslip.schemas.observation import Dataset
from afterslip.schemas.windows import Windows
from afterslip.spec.coverage import inside_polygon, plane_fault
from afterslip.spec.inputs import Inputs
from afterslip.spec.rupture import delays, position_of
from afterslip.units import KM

Float = NDArray[np.float64]

# responses of all data to all windows, 8 bytes each
MOST_VALUES = 200_000_000
_LISTED = 5


def rupture_problems(
    spec: WaveCampaign,
    request: Inversion,
    settings: Mapping[str, Dataset],
    tables: Mapping[str, Rows],
    inputs: Inputs,
) -> Iterator[Problem]:
    """Say what is wrong; see `afterslip.physics.base.FollowsRupture`."""
    for index, name in enumerate(request.datasets):
        path = f"datasets[{index}]"
        found = [*_of_band(spec, settings[name], tables[name])]
        found += [*_of_stations(spec, tables[name], inputs)]
        yield from (problem.under(path) for problem in found)
    if request.windows is None:
        hint = "write {count, spacing, rupture_speed, hypocentre}"
        yield Problem("windows", None, "is missing: slip makes waves in windows", hint)
        return
    geographic = request.windows.hypocentre.geographic
    if geographic and not inputs.frame.geographic:
        text = "is in degrees, but the model's frame is local"
        yield Problem("windows.hypocentre", None, text, "give x and y in km")
        return
    yield from _of_hypocentre(spec, request.windows, inputs)
    yield from _of_times(spec, request, request.windows, tables, inputs)
    yield from _of_size(spec, request, request.windows, tables)


def _of_band(spec: WaveCampaign, dataset: Dataset, rows: Rows) -> Iterator[Problem]:
    """Refuse what the Green's functions do not hold: high frequencies, or statics."""
    frequency = spec.waves.frequency
    if dataset.series is None:
        absorbing = spec.waves.absorbing.kind
        if absorbing != "spring_dashpot":
            text = f"stays, and sides of kind {absorbing} hold no static displacement"
            yield Problem("", dataset.name, text, "compute spring_dashpot sides")
        return
    lowpass = dataset.series.lowpass
    if lowpass is not None and lowpass > frequency * (1 + 1e-9):
        text = f"is above what the waves carry, {frequency:g} Hz"
        hint = f"write {frequency:g} or less"
        yield Problem("series.lowpass", f"{lowpass:g} Hz", text, hint)
    sampled = rows.sampled.get(dataset.name)
    if lowpass is not None or sampled is None:
        return
    least = 1.0 / (SAMPLES_IN_PERIOD * frequency)
    if sampled.sampling < least * (1 - 1e-6):
        yield Problem(
            "series",
            f"{sampled.sampling:.4g} s",
            f"is sampled for frequencies to {0.5 / sampled.sampling:.4g} Hz, and the "
            f"waves carry {frequency:g} Hz: {SAMPLES_IN_PERIOD:g} samples in a period",
            f"write series.lowpass: {frequency:g} or less, or give filtered series "
            f"sampled in {least:.4g} s or more",
        )


def _of_stations(spec: WaveCampaign, rows: Rows, inputs: Inputs) -> Iterator[Problem]:
    """Refuse stations without Green's functions."""
    known = inputs.stations
    if spec.waves.surface is not None or known is None:
        return
    apart = np.hypot(rows.x[:, None] - known.x, rows.y[:, None] - known.y)
    away = apart.min(axis=1)
    wrong = np.flatnonzero(away > SAME_PLACE)
    for row in wrong[:_LISTED]:
        nearest = known.name[int(apart[row].argmin())]
        yield Problem(
            "",
            rows.stations[row],
            f"is not a station of the campaign, {nearest} is {away[row] / KM:.3g} km "
            "away, and waves are stored at those alone",
            "leave it out, or compute waves with it or with waves.surface",
        )
    if len(wrong) > _LISTED:
        text = f"and {len(wrong) - _LISTED} more are not stations of the campaign"
        yield Problem("", rows.stations[wrong[_LISTED]], text)


def _places(spec: WaveCampaign, inputs: Inputs) -> tuple[Float, float]:
    """Return (n, 3) m, places all over the fault that slips, and half a patch, m.

    They are in the box, whose top is the ground.
    """
    name, grid = spec.sources.fault, spec.sources
    fault = next(item for item in spec.model.faults if item.name == name)
    counts = np.array([grid.along_strike, grid.down_dip])
    if fault.plane is not None:
        plane = plane_fault(name, fault.plane, inputs.frame)
        shares = [(np.arange(n) + 0.5) / n for n in counts]
        along, down = (part.ravel() for part in np.meshgrid(*shares))
        strike, updip, _ = plane.axes
        places = plane.origin + plane.length * along[:, None] * strike
        places -= plane.width * down[:, None] * updip
        return places, 0.5 * float(
            (np.array([plane.length, plane.width]) / counts).max()
        )
    known = inputs.interfaces[name]
    places = known.points
    if known.outline is not None:
        places = places[inside_polygon(places[:, :2], known.outline)]
    # points of an interface may be farther apart than patches are long
    return places, float(np.linalg.norm(np.ptp(places, axis=0)) / counts.min())


def _risen(places: Float, inputs: Inputs) -> Float:
    """Return places of the box where they are under the ground, as sources are."""
    if inputs.topography is None:
        return places
    height = inputs.topography.at(places[:, 0], places[:, 1])
    risen = inputs.box.stretched(places[:, 2], height)
    return np.column_stack([places[:, :2], risen])


def _of_hypocentre(
    spec: WaveCampaign, windows: Windows, inputs: Inputs
) -> Iterator[Problem]:
    """Refuse a hypocentre that is farther from the fault than half a patch."""
    place = position_of(windows.hypocentre, inputs.frame)
    if inputs.topography is not None:
        place = inputs.topography.in_box(place[None])[0]
    places, half = _places(spec, inputs)
    name = spec.sources.fault
    fault = next(item for item in spec.model.faults if item.name == name)
    if fault.plane is not None:
        plane = plane_fault(name, fault.plane, inputs.frame)
        strike, updip, normal = plane.axes
        from_start = place - plane.origin
        along, down = float(from_start @ strike), -float(from_start @ updip)
        beside = along - np.clip(along, 0.0, plane.length)
        below = down - np.clip(down, 0.0, plane.width)
        away = float(np.linalg.norm([beside, below, from_start @ normal]))
    else:
        away = float(np.linalg.norm(places - place, axis=1).min())
    if away > half:
        yield Problem(
            "windows.hypocentre",
            windows.hypocentre.model_dump(exclude_none=True),
            f"is {away / KM:.3g} km from the fault {name}, and half a patch is "
            f"{half / KM:.3g} km",
            "give the point of the fault next to it",
        )


def _of_times(
    spec: WaveCampaign,
    request: Inversion,
    windows: Windows,
    tables: Mapping[str, Rows],
    inputs: Inputs,
) -> Iterator[Problem]:
    """Refuse windows after the waves, and series that end before slip arrives."""
    places = _risen(_places(spec, inputs)[0], inputs)
    last = delays(windows, inputs.frame, places)[-1]
    function = spec.waves.source_time.function
    end = float(last.max()) + (0.0 if function is None else function.end)
    if end > spec.waves.duration:
        yield Problem(
            "windows",
            f"{windows.count} of {windows.step:g} s",
            f"end {end:.4g} s after the event, and the waves end at "
            f"{float(spec.waves.duration):.4g} s",
            "take fewer or shorter ones, a faster rupture_speed, or waves.duration "
            "longer",
        )
        return
    fastest = KM * max(item.vs for _, item in spec.model.materials())
    if inputs.grid is not None:
        fastest = max(fastest, float(np.nanmax(inputs.grid.vs)))
    for index, name in enumerate(request.datasets):
        for problem in _short(tables[name], places, last, fastest):
            yield problem.under(f"datasets[{index}]")


def _short(rows: Rows, places: Float, last: Float, vs: float) -> Iterator[Problem]:
    """Say which series end before S waves of the last window arrive."""
    if not rows.moving.any():
        return
    ends = np.zeros(len(rows.stations))
    np.maximum.at(ends, rows.station, rows.epoch)
    ground = np.column_stack([rows.x, rows.y, np.zeros(len(rows.x))])
    way = np.linalg.norm(ground[:, None] - places, axis=2)
    needed = (last + way / vs).max(axis=1)
    short = np.flatnonzero(ends < needed)
    for station in short[:_LISTED]:
        more = f" ({len(short)} stations do)" if len(short) > 1 else ""
        yield Problem(
            "",
            rows.stations[station],
            f"ends at {ends[station]:.4g} s{more}, and S waves of the last window may "
            f"arrive until {needed[station]:.4g} s",
            "give longer series, fewer windows or a faster rupture_speed",
        )


def _of_size(
    spec: WaveCampaign,
    request: Inversion,
    windows: Windows,
    tables: Mapping[str, Rows],
) -> Iterator[Problem]:
    """Refuse more numbers than memory should hold."""
    data = sum(len(tables[name]) for name in request.datasets)
    unknown = spec.sources.count * windows.count
    if data * unknown > MOST_VALUES:
        yield Problem(
            "windows.count",
            windows.count,
            f"makes {unknown:,} unknowns of {data:,} data, {8e-9 * data * unknown:.1f} "
            f"GB, and {8e-9 * MOST_VALUES:.1f} GB are allowed",
            "lower series.lowpass, which thins series, or take fewer windows",
        )
