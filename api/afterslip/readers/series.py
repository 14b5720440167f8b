"""Daily positions of GNSS stations, and the offset that an earthquake made in them.

Formats: ``.tenv3`` of the Nevada Geodetic Laboratory (Blewitt et al. 2018), ``.pos`` of
PBO, NOTA and UNAVCO, and lines of north, east, up (``.neu`` of SOPAC and others).
"""

from __future__ import annotations

import calendar
import csv
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from afterslip.errors import Problem, SpecError, one_problem
from afterslip.readers.cells import LONGEST_NAME, NAME_ADVICE, guarded
from afterslip.readers.delimited import Float, shortened, text_lines
from afterslip.readers.series_format import PBO
from afterslip.units import COMPONENTS, DAY, UnitError, parse_time

Times = NDArray[np.datetime64]

HALF_A_DAY = np.timedelta64(12, "h")
# years of positions by satellite, with room; far outside, times would overflow
_YEARS = (1950.0, 2100.0)
_MJDS = (33282.0, 88069.0)
_MJD_ZERO = np.datetime64("1858-11-17T00:00:00", "ns")
# m; no station moves as far, and differences stay far from overflow
_FARTHEST = 1e8
# positions of north, east, up and their sigmas in a line of .pos
_POS_COLUMNS = [15, 16, 17, 18, 19, 20]
_TENV3_COUNTS = (20, 23)
_COLUMNS = ("station", "lon", "lat", "east", "north", "up",
            "sigma_e", "sigma_n", "sigma_u", "type")  # fmt: skip


def read_tenv3(
    content: bytes,
    lon: float | None = None,
    lat: float | None = None,
    label: str = "series.tenv3",
) -> xr.Dataset:
    """Read a station's ``.tenv3``.

    Parameters
    ----------
    lon, lat : degrees, for old files, whose lines lack them.
    label : what to call the file in messages.

    Returns
    -------
    Dataset with ``position`` and ``sigma`` (time, component east, north, up) in m,
    the position from the first day's whole metres; attributes station, lon, lat.
    Times are UTC.

    Raises
    ------
    SpecError
        With the line of everything wrong.
    """
    lines = text_lines(content, label)
    if lines and lines[0][1].startswith("site"):
        del lines[0]
    rows = _numbers(lines, label, _TENV3_COUNTS, skip=2)
    _refuse_far(rows[:, 7:13], lines, label)
    if len({line.split()[0] for _, line in lines}) > 1:
        raise one_problem(label, None, "has lines of several stations")
    _refuse_times(rows[:, 3], _MJDS, lines, label)
    whole, part = rows[:, [7, 9, 11]], rows[:, [8, 10, 12]]
    # metres apart from their fractions, which are written to the micrometre
    position = (whole - whole[0]) + part
    if rows.shape[1] == max(_TENV3_COUNTS):
        lat, lon = float(rows[0, 20]), float(rows[0, 21])
    # a daily solution belongs to the middle of its day
    times = _from_mjd(rows[:, 3] + 0.5)
    found = _Raw(lines[0][1].split()[0], lon, lat, times, position, rows[:, 14:17])
    return found.checked(lines, label)


def read_pos(content: bytes, label: str = "series.pos") -> xr.Dataset:
    """Read a station's ``.pos``; north, east and up are those of its lines.

    Returns
    -------
    As `read_tenv3`; positions are from the reference position of the file.

    Raises
    ------
    SpecError
        With the line of everything wrong.
    """
    lines = text_lines(content, label)
    number = next(
        (i for i, (_, t) in enumerate(lines) if t.lower().startswith("*yyyymmdd")),
        None,
    )
    if number is None:
        number = next(
            (i for i, (_, t) in enumerate(lines) if t.startswith("End Field")), None
        )
    if number is None or not content.lstrip(b"\xef\xbb\xbf").startswith(PBO):
        raise one_problem(label, None, "has no header of a .pos file")
    head = "\n".join(text for _, text in lines[:number])
    name = re.search(r"4-character ID\s*:\s*(\S+)", head)
    place = re.search(r"NEU Reference position\s*:\s*(\S+)\s+(\S+)", head)
    if name is None or place is None:
        raise one_problem(
            label, None, "lacks the header 4-character ID or NEU Reference position"
        )
    lines = lines[number + 1 :]
    rows = _numbers(lines, label, (24, 25), skip=0)
    _refuse_times(rows[:, 2], _MJDS, lines, label)
    neu = rows[:, _POS_COLUMNS]
    try:
        lat, lon = float(place[1]), float(place[2])
    except ValueError:
        raise one_problem(label, place[0], "is no reference position") from None
    times = _from_mjd(rows[:, 2])
    return _Raw(name[1], lon, lat, times, neu[:, [1, 0, 2]], neu[:, [4, 3, 5]]).checked(
        lines, label
    )


def read_neu(
    content: bytes, station: str, lon: float, lat: float, label: str = "series.neu"
) -> xr.Dataset:
    """Read lines of ``year, north, east, up`` and their three sigmas, in m.

    Lines of nine fields have the year and the day of the year after the decimal year,
    as SOPAC writes them. Neither name nor place of the station are in such a file.

    Returns
    -------
    As `read_tenv3`; positions are those of the file.

    Raises
    ------
    SpecError
        With the line of everything wrong.
    """
    lines = text_lines(content, label)
    rows = _numbers(lines, label, (7, 9), skip=0)
    _refuse_times(rows[:, 0], _YEARS, lines, label)
    if rows.shape[1] == 9:
        _refuse_times(rows[:, 1], _YEARS, lines, label)
        _refuse_times(rows[:, 2], (1.0, 366.0), lines, label)
        days = np.round(rows[:, 2]) - 0.5
        start = [np.datetime64(f"{int(year):04d}-01-01", "ns") for year in rows[:, 1]]
        times = np.array(start) + _timedelta(days * DAY)
    else:
        times = np.array([decimal_year(year) for year in rows[:, 0]])
    neu = rows[:, -6:]
    found = _Raw(station, lon, lat, times, neu[:, [1, 0, 2]], neu[:, [4, 3, 5]])
    return found.checked(lines, label)


def decimal_year(year: float) -> np.datetime64:
    """Return the time (UTC) of a decimal calendar year, such as 2011.189."""
    whole = int(np.floor(year))
    days = 366 if calendar.isleap(whole) else 365
    start = np.datetime64(f"{whole:04d}-01-01", "ns")
    return start + _span((year - whole) * days * DAY)


def coseismic_offset(
    series: xr.Dataset, event: str | float, before: str, after: str
) -> xr.Dataset:
    """Return how far the mean position jumps from before to after an earthquake.

    Means are weighted by 1/sigma². The day of the event, within twelve hours of it, is
    left out: its solution mixes both sides. What moves within the windows (afterslip,
    the plates) is in the offset, so keep ``after`` short; the error is the formal one,
    of independent days.

    Parameters
    ----------
    series : as `read_tenv3`, `read_pos` and `read_neu` return.
    event : time (UTC), ``"2011-03-11T05:46:18"``, or a decimal calendar year.
    before, after : lengths of the windows, such as ``"10 d"``.

    Returns
    -------
    Dataset with ``offset`` and ``sigma`` (component) in m, and the attributes station,
    lon, lat, event, days_before, days_after.

    Raises
    ------
    SpecError
        Wrong times, or no position within a window.
    """
    moment = _event(event)
    times = series["time"].values
    sides = {
        "before": (times < moment - HALF_A_DAY, times >= moment - _window(before)),
        "after": (times > moment + HALF_A_DAY, times <= moment + _window(after)),
    }
    name = str(series.attrs["station"])
    means, variances, days = [], [], []
    for side, (apart, near) in sides.items():
        rows = apart & near
        if not rows.any():
            span = f"series from {times.min()} to {times.max()}"
            raise one_problem(f"{name} {side} {event}", None, "has no positions", span)
        weight = series["sigma"].values[rows] ** -2.0
        total = weight.sum(axis=0)
        means.append((weight * series["position"].values[rows]).sum(axis=0) / total)
        variances.append(1.0 / total)
        days.append(int(rows.sum()))
    return xr.Dataset(
        {
            "offset": ("component", means[1] - means[0], {"units": "m"}),
            "sigma": ("component", np.sqrt(variances[0] + variances[1])),
        },
        {"component": list(COMPONENTS)},
        {
            **{key: series.attrs[key] for key in ("station", "lon", "lat")},
            "event": str(moment),
            "days_before": days[0],
            "days_after": days[1],
        },
    )


def write_offsets(offsets: Iterable[xr.Dataset], path: str | Path) -> Path:
    """Write offsets of stations as the CSV of observations that specs name.

    Parameters
    ----------
    offsets : as `coseismic_offset` returns.
    """
    path = Path(path)
    with path.open("w", newline="", encoding="utf-8") as file:
        out = csv.writer(file)
        out.writerow(_COLUMNS)
        for item in offsets:
            numbers = [*item["offset"].values, *item["sigma"].values]
            place = [f"{item.attrs[key]:.7f}" for key in ("lon", "lat")]
            motion = [f"{number:.6f}" for number in numbers]
            name = guarded(str(item.attrs["station"]))
            out.writerow([name, *place, *motion, "gnss"])
    return path


@dataclass(frozen=True, slots=True)
class _Raw:
    """A series as its file has it: components are east, north, up."""

    station: str
    lon: float | None
    lat: float | None
    times: Times
    position: Float
    sigma: Float

    def checked(self, lines: list[tuple[int, str]], label: str) -> xr.Dataset:
        """Return the data set; SpecError with the lines that are wrong."""
        if self.lon is None or self.lat is None:
            raise one_problem(
                label, None, "has no position of the station", "give lon and lat"
            )
        if not self.station.isprintable() or not 0 < len(self.station) <= LONGEST_NAME:
            raise one_problem(
                label, self.station, "is no name of a station", NAME_ADVICE
            )
        # some centres count longitudes from -360
        lon = (self.lon + 180.0) % 360.0 - 180.0
        if not abs(self.lat) <= 90.0:
            raise one_problem(label, self.lat, "is no latitude")
        if not np.isfinite(lon):
            raise one_problem(label, self.lon, "is no longitude")
        _refuse_far(np.hstack([self.position, self.sigma]), lines, label)
        wrong = np.flatnonzero((self.sigma <= 0).any(axis=1))
        problems = [
            Problem(
                f"{label} line {lines[row][0]}", None, "has a sigma of zero or less"
            )
            for row in wrong
        ]
        for row in np.flatnonzero(np.diff(self.times) <= np.timedelta64(0, "ns")):
            place = f"{label} line {lines[row + 1][0]}"
            problems.append(Problem(place, None, "is not later than the line before"))
        if problems:
            raise SpecError(shortened(problems, label))
        dims, metres = ("time", "component"), {"units": "m"}
        return xr.Dataset(
            {
                "position": (dims, self.position, metres),
                "sigma": (dims, self.sigma, metres),
            },
            {"time": self.times, "component": list(COMPONENTS)},
            {"station": self.station, "lon": lon, "lat": float(self.lat)},
        )


def _numbers(
    lines: list[tuple[int, str]], label: str, counts: tuple[int, ...], skip: int
) -> Float:
    """Return the fields of all lines; the first ``skip`` of each and words are 0."""
    if not lines:
        raise one_problem(label, None, "has no lines of data")
    count = len(lines[0][1].split())
    wanted = " or ".join(map(str, counts))
    if count not in counts:
        place = f"{label} line {lines[0][0]}"
        raise one_problem(place, None, f"has {count} fields, not {wanted}")
    rows = np.zeros((len(lines), count))
    problems: list[Problem] = []
    for row, (number, text) in enumerate(lines):
        fields, place = text.split(), f"{label} line {number}"
        if len(fields) != count:
            message = f"has {len(fields)} fields, and the lines before have {count}"
            problems.append(Problem(place, None, message))
            continue
        # the last field of .pos is the kind of solution
        last = count - 1 if count == 25 else count
        for column in range(skip, last):
            try:
                rows[row, column] = float(fields[column])
            except ValueError:
                rows[row, column] = np.nan
            if not np.isfinite(rows[row, column]):
                message = f"field {column + 1} is not a finite number"
                problems.append(Problem(place, fields[column], message))
    if problems:
        raise SpecError(shortened(problems, label))
    return rows


def _refuse_far(metres: Float, lines: list[tuple[int, str]], label: str) -> None:
    """Refuse lines with a length (n_line, n) that no position on the Earth has."""
    problems = [
        Problem(f"{label} line {lines[row][0]}", None, "has a length of over 1e8 m")
        for row in np.flatnonzero((np.abs(metres) > _FARTHEST).any(axis=1))
    ]
    if problems:
        raise SpecError(shortened(problems, label))


def _refuse_times(
    values: Float,
    span: tuple[float, float],
    lines: list[tuple[int, str]],
    label: str,
) -> None:
    """Refuse years, days of the year or modified Julian days out of range."""
    wrong = np.flatnonzero((values < span[0]) | (values > span[1]))
    message = f"is a time that is not between {span[0]:g} and {span[1]:g}"
    problems = [
        Problem(f"{label} line {lines[row][0]}", f"{values[row]:g}", message)
        for row in wrong
    ]
    if problems:
        raise SpecError(shortened(problems, label))


def _timedelta(seconds: Float) -> NDArray[np.timedelta64]:
    """Return spans of time, to the millisecond."""
    return np.round(seconds * 1e3).astype("timedelta64[ms]").astype("timedelta64[ns]")


def _span(seconds: float) -> np.timedelta64:
    """Return a span of time, to the millisecond."""
    return np.timedelta64(round(seconds * 1e3), "ms")


def _from_mjd(days: Float) -> Times:
    return np.asarray(_MJD_ZERO + _timedelta(days * DAY))


def _event(event: str | float) -> np.datetime64:
    try:
        if isinstance(event, str):
            return np.datetime64(event.removesuffix("Z"), "ns")
        if not _YEARS[0] <= float(event) <= _YEARS[1]:
            raise ValueError
        return decimal_year(float(event))
    except (ValueError, OverflowError):
        raise one_problem(
            "event", event, "is not a time", 'write e.g. "2011-03-11T05:46:18"'
        ) from None


def _window(text: str) -> np.timedelta64:
    try:
        return _span(parse_time(text))
    except UnitError as error:
        raise one_problem("window", text, error.message, error.hint) from None
