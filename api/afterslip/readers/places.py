"""Stations and points: where the motion is wanted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from afterslip.errors import Problem
from afterslip.frame import Frame
from afterslip.readers.cells import LONGEST_NAME, NAME_ADVICE, restored
from afterslip.readers.delimited import Float, Int, Table, read_table
from afterslip.readers.misspelt import refuse_misspelt
from afterslip.units import KM

FARTHEST_KM = 20000.0
SWAPPED = "lon and lat look swapped in the file, or lon0 and lat0 in model.frame"


@dataclass(frozen=True, slots=True)
class Stations:
    """Named places on the surface.

    Attributes
    ----------
    name : n names.
    lon, lat : (n,) degrees; NaN where the frame is local.
    x, y : (n,) m, local.
    line : (n,) int64 line numbers in the file.
    label : the file, for messages.
    """

    name: tuple[str, ...]
    lon: Float
    lat: Float
    x: Float
    y: Float
    line: Int
    label: str = "stations"

    def __len__(self) -> int:
        return len(self.name)

    def place(self, row: int) -> str:
        """Return where an entry stands, for messages."""
        return f"{self.label} line {self.line[row]}"


@dataclass(frozen=True, slots=True)
class Points:
    """Places on the surface or below it.

    Attributes
    ----------
    x, y, depth : (n,) m, local; depth positive down.
    lon, lat : (n,) degrees; NaN where the frame is local.
    line : (n,) int64 line numbers in the file; 0 for points of the spec's own list.
    name : n names, of the file's column ``station``, or ``point 0``, ``point 1``, ….
    """

    x: Float
    y: Float
    depth: Float
    lon: Float
    lat: Float
    line: Int
    name: tuple[str, ...]
    label: str = "points"

    def __len__(self) -> int:
        return len(self.x)

    @property
    def xyz(self) -> Float:
        """(n, 3) m, z up."""
        return np.column_stack([self.x, self.y, -self.depth])

    def place(self, row: int) -> str:
        """Return where a point stands, for messages."""
        if self.line[row] == 0:
            return f"{self.label}[{row}]"
        return f"{self.label} line {self.line[row]}"


def header(frame: Frame) -> str:
    """Return the names of the columns of a position."""
    return "lon,lat" if frame.geographic else "x_km,y_km"


def positions(table: Table, frame: Frame) -> tuple[Float, Float, Float, Float]:
    """Return lon, lat (degrees, NaN where local) and x, y (m) of a table's rows.

    A geographic frame takes ``lon,lat``, or ``x_km,y_km`` where these are missing;
    a local frame takes ``x_km,y_km`` only. Problems are noted in the table.
    """
    nothing = np.full(len(table), np.nan)
    if frame.geographic and table.has("lon", "lat"):
        lon, lat = _degrees(table)
        return lon, lat, *frame.to_local(lon, lat)
    if table.has("x_km", "y_km"):
        x, y = _kilometres(table, "x_km"), _kilometres(table, "y_km")
        if frame.geographic:
            return *frame.to_geographic(x, y), x, y
        return nothing, nothing, x, y
    if not frame.geographic and table.has("lon", "lat"):
        table.problems.append(
            Problem(
                table.label,
                None,
                "has lon, lat, but the model's frame is local",
                "give x_km,y_km or use frame: {kind: geographic, lon0: ..., lat0: ...}",
            )
        )
    else:
        table.require(*header(frame).split(","))
    return nothing, nothing, nothing, nothing


def _degrees(table: Table) -> tuple[Float, Float]:
    lon, lat = table.numbers("lon", needed=True), table.numbers("lat", needed=True)
    wrong_lat = np.abs(lat) > 90
    swapped = wrong_lat & (np.abs(lat) <= 360) & (np.abs(lon) <= 90)
    table.refuse(
        swapped,
        "lat",
        "must be between -90 and 90",
        "lon and lat look swapped",
        one_cause=True,
    )
    table.refuse(wrong_lat & ~swapped, "lat", "must be between -90 and 90 degrees")
    wrong_lon = (lon < -180) | (lon > 360)
    table.refuse(wrong_lon, "lon", "must be between -180 and 360 degrees")
    wrong = wrong_lat | wrong_lon
    return np.where(wrong, np.nan, lon), np.where(wrong, np.nan, lat)


def _kilometres(table: Table, column: str) -> Float:
    values = table.numbers(column, needed=True)
    far = np.abs(values) > FARTHEST_KM
    table.refuse(far, column, "is farther than any place on the Earth", "write km")
    return np.where(far, np.nan, values) * KM


def depths(table: Table, column: str = "depth_km", needed: bool = True) -> Float:
    """Return depths in m, positive down, of a column in km; note wrong ones."""
    values = table.numbers(column, needed=needed)
    high, deep = values < 0, values > 6371
    table.refuse(high, column, "is above the ground", "depth is positive down, in km")
    table.refuse(deep, column, "is below the centre of the Earth", "write km")
    return np.where(high | deep, np.nan, values) * KM


def read_stations(content: bytes, frame: Frame, label: str = "stations") -> Stations:
    """Read ``station,lon,lat`` or ``station,x_km,y_km``.

    Raises
    ------
    SpecError
        With the line of everything wrong: missing or repeated names, positions that
        are not numbers or look swapped.
    """
    table = read_table(content, label, f"station,{header(frame)}")
    table.require("station")
    lon, lat, x, y = positions(table, frame)
    names = station_names(table)
    first: dict[str, int] = {}
    for row, name in enumerate(names):
        if name in first:
            message = f"is the name of the station in line {table.lines[first[name]]}"
            place = table.place(row, "station")
            table.problems.append(Problem(place, name, message, "name each once"))
        first.setdefault(name, row)
    table.check()
    return Stations(names, lon, lat, x, y, table.lines, label)


def station_names(table: Table) -> tuple[str, ...]:
    """Return the names of a table's stations; note the empty ones."""
    if not table.has("station"):
        return ("",) * len(table)
    names = [restored(name) for name in table.texts("station")]
    table.refuse(np.array([not n for n in names], bool), "station", "is missing")
    wrong = [len(n) > LONGEST_NAME or not n.isprintable() for n in names]
    table.refuse(
        np.array(wrong, bool), "station", "is no name of a station", NAME_ADVICE
    )
    return tuple(names)


def read_points(content: bytes, frame: Frame, label: str = "points") -> Points:
    """Read ``x_km,y_km`` or ``lon,lat``, ``depth_km`` and ``station`` if given.

    Raises
    ------
    SpecError
        With the line of everything wrong.
    """
    table = read_table(content, label, header(frame))
    lon, lat, x, y = positions(table, frame)
    if not table.has("depth_km"):  # all would be at the ground
        meant = dict.fromkeys(("depth_km", "depth"), "depth_km")
        refuse_misspelt(table, ("station", "lon", "lat", "x_km", "y_km"), meant)
    depth = depths(table, needed=False)
    names = station_names(table) if table.has("station") else _numbered(len(table))
    table.check()
    return Points(x, y, np.nan_to_num(depth), lon, lat, table.lines, names, label)


def list_points(numbers: list[tuple[float, ...]], frame: Frame) -> Points:
    """Return the points of a spec's list of [x, y] or [x, y, depth] in km."""
    full = np.array([(*p, 0.0)[:3] for p in numbers], dtype=np.float64) * KM
    x, y, depth = full.T.copy()
    lon = lat = np.full(len(x), np.nan)
    if frame.geographic:
        lon, lat = frame.to_geographic(x, y)
    lines, names = np.zeros(len(x), np.int64), _numbered(len(x))
    return Points(x, y, depth, lon, lat, lines, names)


def _numbered(count: int) -> tuple[str, ...]:
    return tuple(f"point {index}" for index in range(count))


__all__ = [
    "Points",
    "Stations",
    "depths",
    "header",
    "list_points",
    "positions",
    "read_points",
    "read_stations",
    "station_names",
]
