"""MiniSEED and SAC as a table of ground motion, through ObsPy."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from afterslip.errors import Problem, SpecError, one_problem
from afterslip.extras import require

Float = NDArray[np.float64]

# station → its columns of a position, such as {"lon": 142.1, "lat": 38.2}
Places = Mapping[str, Mapping[str, float]]

_AXES = "ENZ"
# of a sampling, by which components of a station may be apart
_TOGETHER = 0.01


def motion_table(
    files: Sequence[str | Path],
    begin: str,
    places: Places | None = None,
    end: float | None = None,
) -> str:
    """Return the CSV text of a data set with ``series``.

    Numbers stay as they are: instruments have to be corrected for, to m or m/s. The
    mean of what came before the event is taken off each trace.

    Parameters
    ----------
    files : MiniSEED or SAC, any number of stations and components in each.
    begin : time of the begin of slip, UTC, ISO 8601.
    places : of the stations, which MiniSEED does not hold; those of SAC's own headers
        where a station is not among them.
    end : s after the event, of the last samples; None: all.

    Raises
    ------
    SpecError
        With every trace that cannot be used.
    MissingExtraError
        ObsPy is not installed.
    """
    require("MiniSEED and SAC", "seismology", "obspy")
    start = _time(begin)
    found: dict[str, dict[str, Any]] = {}
    problems: list[Problem] = []
    for path in files:
        for trace in _read(path):
            problems += _add(found, trace, str(path))
    known, columns = _columns(found, places or {}, problems)
    lines = []
    for name, traces in found.items():
        try:
            lines += _lines(name, traces, start, end, known.get(name, []))
        except SpecError as error:
            problems += error.problems
    if problems:
        raise SpecError(problems)
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\n")
    table.writerow(["station", *columns, "time_s", "east", "north", "up"])
    table.writerows(lines)
    return out.getvalue()


def _time(begin: str) -> Any:
    from obspy import UTCDateTime

    try:
        return UTCDateTime(begin)
    except (TypeError, ValueError):
        hint = "write it as 2011-03-11T05:46:24"
        raise one_problem("begin", begin, "is no time", hint) from None


def _read(path: str | Path) -> Any:
    import obspy

    try:
        # a file object is neither searched as a pattern nor unpacked as an archive
        with Path(path).open("rb") as stream:
            return obspy.read(stream)
    except OSError as error:
        raise one_problem(str(path), None, f"cannot be read: {error}") from None
    except Exception as error:
        # whatever a reader of ObsPy raises
        text = f"is neither MiniSEED nor SAC: {' '.join(str(error).split())}"
        raise one_problem(str(path), None, text) from error


def _add(found: dict[str, dict[str, Any]], trace: Any, path: str) -> list[Problem]:
    """Take a trace; say why it cannot be used."""
    name, channel = str(trace.stats.station), str(trace.stats.channel)
    where = f"{path}, {trace.id}"
    axis = channel[-1:].upper()
    if axis not in _AXES:
        hint = "rotate it to E, N and Z first"
        return [Problem(where, channel, "is not east, north or up", hint)]
    own = found.setdefault(name, {})
    if axis in own:
        hint = "merge pieces first, and keep one instrument and location"
        return [Problem(where, channel, "is there twice", hint)]
    if np.ma.is_masked(trace.data) or not np.isfinite(trace.data).all():
        return [Problem(where, channel, "has gaps", "fill them, or cut it there")]
    own[axis] = trace
    return []


def _columns(
    found: Mapping[str, Mapping[str, Any]], places: Places, problems: list[Problem]
) -> tuple[dict[str, list[float]], list[str]]:
    """Return the position of each station, and the names of its columns."""
    columns = list(next(iter(places.values()), {"lon": 0.0, "lat": 0.0}))
    known: dict[str, list[float]] = {}
    for name, traces in found.items():
        place = dict(places.get(name, {}))
        header = getattr(next(iter(traces.values())).stats, "sac", {})
        if not place and {"stlo", "stla"} <= set(header) and "lon" in columns:
            place = {"lon": float(header["stlo"]), "lat": float(header["stla"])}
        if set(place) != set(columns):
            hint = "name it in the table of stations"
            problems.append(Problem("stations", name, "has no known place", hint))
            continue
        known[name] = [place[column] for column in columns]
    return known, columns


def _lines(
    name: str,
    traces: Mapping[str, Any],
    start: Any,
    end: float | None,
    place: list[float],
) -> list[list[Any]]:
    """Return the rows of a station from the event on."""
    first = next(iter(traces.values()))
    step = float(first.stats.delta)
    times = float(first.stats.starttime - start) + step * np.arange(first.stats.npts)
    values = np.full((len(times), 3), np.nan)
    for axis, trace in traces.items():
        late = abs(float(trace.stats.starttime - first.stats.starttime))
        same = trace.stats.npts == len(times) and trace.stats.delta == step
        if not same or late > _TOGETHER * step:
            text = "has other samples than the other components of its station"
            raise one_problem(trace.id, None, text, "cut and sample them alike")
        data = np.asarray(trace.data, dtype=np.float64)
        before = data[times < -0.5 * step]
        values[:, _AXES.index(axis)] = data - (before.mean() if len(before) else 0.0)
    # a sample that is meant to be at the event may miss it by rounding
    times = np.where(np.abs(times) < _TOGETHER * step, 0.0, times)
    left = np.flatnonzero((times >= 0.0) & (times <= (np.inf if end is None else end)))
    if not len(left):
        text = "has no samples after the event"
        raise one_problem(first.id, None, text, "check the time of the event")
    return [
        [name, *place, f"{times[k]:.6g}", *map(_text, values[k])] for k in left.tolist()
    ]


def _text(value: float) -> str:
    return f"{value:.6g}" if np.isfinite(value) else ""


def places_of(content: str, label: str) -> Places:
    """Return the places of a table of stations, in its own columns.

    Raises
    ------
    SpecError
        The table has no column ``station``, or none of a position.
    """
    rows = list(csv.DictReader(io.StringIO(content)))
    for columns in (("lon", "lat"), ("x_km", "y_km")):
        if rows and {"station", *columns} <= set(rows[0]):
            try:
                return {r["station"]: {c: float(r[c]) for c in columns} for r in rows}
            except (TypeError, ValueError) as error:
                raise one_problem(label, None, f"has a wrong number: {error}") from None
    hint = "write columns station,lon,lat or station,x_km,y_km"
    raise one_problem(label, None, "is no table of stations", hint)
