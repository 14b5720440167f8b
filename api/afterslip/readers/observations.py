"""Displacements with their uncertainties."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from afterslip.errors import Problem, one_problem
from afterslip.frame import Frame
from afterslip.readers.correlation import COLUMNS as CORRELATIONS
from afterslip.readers.correlation import correlations
from afterslip.readers.delimited import Bool, Float, Int, Table, read_table
from afterslip.readers.kinds import kinds
from afterslip.readers.misspelt import refuse_misspelt
from afterslip.readers.places import header, positions, station_names
from afterslip.readers.rows import Rows, Sampled
from afterslip.readers.series_format import is_series
from afterslip.readers.times import COLUMNS as TIMES
from afterslip.readers.times import LIKE_TIME, times
from afterslip.schemas.observation import Sigma

COMPONENT_COLUMNS = (("east", "sigma_e"), ("north", "sigma_n"), ("up", "sigma_u"))
_SIGMAS = {**dict(COMPONENT_COLUMNS), "los": "sigma_los"}
_KNOWN = {
    "station", "lon", "lat", "x_km", "y_km", "type", "los_e", "los_n", "los_u",
    *_SIGMAS, *_SIGMAS.values(), *CORRELATIONS, *TIMES,
}  # fmt: skip

# no displacement of an earthquake reached this, so the file is in millimetres
LARGEST = 100.0
# m; its weight 1/sigma² is still far from overflow
SMALLEST_SIGMA = 1e-9
SAME_PLACE = 50.0  # m; rounded coordinates of one station differ by less


@dataclass(frozen=True, slots=True)
class Observations:
    """A data set: one entry per line of the file.

    Attributes
    ----------
    name : n names of stations, repeated where a station has several epochs.
    lon, lat : (n,) degrees; NaN where the frame is local.
    x, y : (n,) m, local.
    kind : (n,) gnss, gnssa, obp, insar, or of ground motion, see `rows.MOTIONS`.
    displacement, sigma : (n, 3) m, east, north, up; NaN where there are no data.
    los, los_sigma : (n,) m along ``look``; NaN where there are no data.
    look : (n, 3) unit vectors from the ground to the satellite; NaN where none.
    time : (n,) s after the event.
    line : (n,) int64 line numbers in the file.
    given : (n, 4) bool, the file gave the sigma of east, north, up, los.
    correlation : (n, 3) of the errors of east-north, east-up, north-up; zero where
        the file says nothing.
    sampled : of series of ground motion; None: of displacements.
    unnamed : the file has no names; those here are made of line numbers.
    """

    name: tuple[str, ...]
    lon: Float
    lat: Float
    x: Float
    y: Float
    kind: NDArray[np.str_]
    displacement: Float
    sigma: Float
    los: Float
    los_sigma: Float
    look: Float
    time: Float
    line: Int
    given: Bool
    correlation: Float
    label: str = "observations"
    sampled: Sampled | None = None
    unnamed: bool = False

    def __len__(self) -> int:
        return len(self.name)

    def place(self, row: int) -> str:
        """Return where an entry stands, for messages."""
        return f"{self.label} line {self.line[row]}"

    def rows(self, dataset: str = "") -> Rows:
        """Return the data that are there, one number each, line by line.

        Lines without names are called by their data set, too: the same line of another
        one is another place.
        """
        values = np.column_stack([self.displacement, self.los])
        sigmas = np.column_stack([self.sigma, self.los_sigma])
        entry, component = np.nonzero(np.isfinite(values))
        axes = np.vstack([np.eye(3), np.zeros((1, 3))])
        along = (component == 3)[:, None]
        number = {name: i for i, name in enumerate(dict.fromkeys(self.name))}
        station = np.array([number[name] for name in self.name], dtype=np.int64)
        first = np.unique(station, return_index=True)[1]
        of = f"{dataset} " if self.unnamed and dataset else ""
        return Rows(
            stations=tuple(f"{of}{name}" for name in number),
            x=self.x[first],
            y=self.y[first],
            station=station[entry],
            component=component.astype(np.int64),
            direction=np.where(along, self.look[entry], axes[component]),
            value=values[entry, component],
            sigma=sigmas[entry, component],
            kind=self.kind[entry],
            dataset=np.full(len(entry), dataset),
            epoch=self.time[entry],
            line=self.line[entry],
            given=self.given[entry, component],
            blocks=tuple(self._blocks(entry, component, sigmas)),
            sampled={dataset: self.sampled} if self.sampled else {},
        )

    def _blocks(
        self, entry: Int, component: Int, sigmas: Float
    ) -> Iterator[tuple[Int, Float]]:
        """Yield rows and covariance of each line whose components share errors."""
        for line in np.flatnonzero((self.correlation != 0).any(axis=1)):
            mine = np.arange(*np.searchsorted(entry, (line, line + 1)))
            mine = mine[component[mine] < 3]
            c = component[mine]
            en, eu, nu = self.correlation[line]
            full = np.array([[1.0, en, eu], [en, 1.0, nu], [eu, nu, 1.0]])
            scale = sigmas[line, c]
            if len(mine) > 1:
                yield mine, full[np.ix_(c, c)] * np.outer(scale, scale)


def read_observations(
    content: bytes,
    frame: Frame,
    sigma: Sigma | None = None,
    epoch: float = 0.0,
    label: str = "observations",
    types: Mapping[str, str] | None = None,
) -> Observations:
    """Read a table of displacements.

    Columns: ``station``, a position, ``east,north,up`` and ``sigma_e,sigma_n,sigma_u``
    in m, ``corr_en,corr_eu,corr_nu`` (correlations of their errors), ``type`` (gnss
    where there is no such column), for insar ``los,sigma_los,los_e,los_n,los_u``, and
    ``time`` (yr, or with its unit), ``time_yr``, ``time_d`` or ``time_s``. An empty
    field is missing data. Of ``obp`` only ``up`` is taken. A table with ``los`` and
    neither ``east`` nor ``up`` needs no ``station`` and no ``type``: its lines are
    pixels.

    Parameters
    ----------
    sigma : standard deviations for fields that the file leaves empty.
    epoch : s, for lines without a time.
    types : the user's tag of the column ``type`` → kind.

    Raises
    ------
    SpecError
        With the line of everything wrong.
    """
    if is_series(content):
        raise one_problem(
            label,
            None,
            "is a series of daily positions, not of displacements",
            "make offsets of it with afterslip.readers.series",
        )
    columns = "east,north,up,sigma_e,sigma_n,sigma_u,type"
    table = read_table(content, label, f"station,{header(frame)},{columns}")
    names = _names(table)
    lon, lat, x, y = positions(table, frame)
    kind = kinds(table, types or {}, "insar" if _of_pixels(table) else "gnss")
    displacement = _components(table, kind)
    los, look = _line_of_sight(table, kind)
    if not np.isfinite(displacement).any() and not np.isfinite(los).any():
        table.problems.append(Problem(label, None, "has no displacements", columns))
    _same_place(table, names, x, y)
    along = sigma.los if sigma is not None else None
    _refuse_misspelt(table)
    observations = Observations(
        names,
        lon,
        lat,
        x,
        y,
        kind,
        displacement,
        _sigmas(table, displacement, sigma),
        los,
        _deviation(table, "sigma_los", np.isfinite(los), along, "los"),
        look,
        times(table, epoch),
        table.lines,
        np.column_stack([_filled(table, column) for column in _SIGMAS.values()]),
        correlations(table, displacement),
        label,
        unnamed=not table.has("station"),
    )
    table.check()
    return observations


def _refuse_misspelt(table: Table) -> None:
    """Note misspelt columns that a table may do without."""
    sigmas = [sigma for data, sigma in _SIGMAS.items() if table.has(data)]
    optional = ["east", "north", "up", "type", *sigmas, *CORRELATIONS]
    known = set(_KNOWN)
    if not any(table.has(name) for name in TIMES):
        optional += TIMES
        # these are refused with the times
        known.update(filter(LIKE_TIME.fullmatch, table.columns))
    meant = {name: name for name in optional if not table.has(name)}
    for sigma in sigmas:
        if sigma in meant:
            meant.setdefault("sigma", sigma)
    refuse_misspelt(table, known, meant)


def _of_pixels(table: Table) -> bool:
    return table.has("los") and not (table.has("east") or table.has("up"))


def _names(table: Table) -> tuple[str, ...]:
    """Return names of stations; pixels without one are called by their lines."""
    if not table.has("station") and _of_pixels(table):
        return tuple(f"pixel {line}" for line in table.lines)
    table.require("station")
    return station_names(table)


def _metres(table: Table, column: str) -> Float:
    values = table.numbers(column)
    large = np.abs(values) > LARGEST
    table.refuse(
        large, column, "is more than 100 m", "this looks like millimetres: write metres"
    )
    return np.where(large, np.nan, values)


def _components(table: Table, kind: NDArray[np.str_]) -> Float:
    values = np.column_stack([_metres(table, name) for name, _ in COMPONENT_COLUMNS])
    # pressure gauges feel depth only; InSAR has its own column
    values[kind == "obp", :2] = np.nan
    values[kind == "insar"] = np.nan
    return values


def _sigmas(table: Table, displacement: Float, sigma: Sigma | None) -> Float:
    fallback: list[Any] = [None] * 3
    if sigma is not None:
        fallback = [sigma.horizontal, sigma.horizontal, sigma.vertical]
    words = ("horizontal", "horizontal", "vertical")
    there = np.isfinite(displacement)
    return np.column_stack(
        [
            _deviation(table, column, there[:, i], fallback[i], words[i])
            for i, (_, column) in enumerate(COMPONENT_COLUMNS)
        ]
    )


def _filled(table: Table, column: str) -> Bool:
    """(n_row,) bool, the field of a column that may be missing holds something."""
    if not table.has(column):
        return np.zeros(len(table), bool)
    return np.array([bool(text) for text in table.texts(column)], bool)


def _deviation(
    table: Table, column: str, there: Bool, fallback: float | None, word: str
) -> Float:
    """Return standard deviations (m) of a column where there are data."""
    values = table.numbers(column)
    table.refuse(values <= 0, column, "must be more than zero", "or leave it empty")
    table.refuse(
        (values > 0) & (values < SMALLEST_SIGMA),
        column,
        f"is less than {SMALLEST_SIGMA:g} m",
        "write the sigma in metres",
    )
    table.refuse(
        values > LARGEST, column, "is more than 100 m", "write the sigma in metres"
    )
    empty = there & np.isnan(values)
    if fallback is not None:
        values = np.where(empty, fallback, values)
    else:
        # fields that are not empty were refused already
        rows = np.flatnonzero(empty & ~_filled(table, column))
        if len(rows):
            more = f" and {len(rows) - 1} more lines" if len(rows) > 1 else ""
            table.problems.append(
                Problem(
                    table.place(int(rows[0]), column) + more,
                    None,
                    "has no standard deviation",
                    f"fill it in, or give the data set sigma: {{{word}: ...}} in m",
                )
            )
    return np.where(there, values, np.nan)


def _line_of_sight(table: Table, kind: NDArray[np.str_]) -> tuple[Float, Float]:
    insar = kind == "insar"
    if not insar.any():
        return np.full(len(table), np.nan), np.full((len(table), 3), np.nan)
    names = ("los_e", "los_n", "los_u")
    if not table.require("los", *names):
        return np.full(len(table), np.nan), np.full((len(table), 3), np.nan)
    los = np.where(insar, _metres(table, "los"), np.nan)
    look = np.column_stack([table.numbers(name) for name in names])
    # no part of a unit vector; its square may overflow
    look = np.clip(look, -10.0, 10.0)
    length = np.linalg.norm(look, axis=1)
    there = np.isfinite(los)
    table.refuse(
        there & np.isnan(length),
        "los_e",
        "is needed for insar",
        "give los_e,los_n,los_u",
    )
    table.refuse(
        there & (np.abs(length - 1) > 0.02),
        "los_e",
        "must be part of a unit vector from the ground to the satellite",
        "los_e, los_n, los_u must have length 1",
    )
    unit = look / np.where(length > 0, length, np.nan)[:, None]
    return los, np.where(there[:, None], unit, np.nan)


def _same_place(table: Table, names: tuple[str, ...], x: Float, y: Float) -> None:
    first: dict[str, int] = {}
    for row, name in enumerate(names):
        start = first.setdefault(name, row)
        if np.hypot(x[row] - x[start], y[row] - y[start]) > SAME_PLACE:
            table.problems.append(
                Problem(
                    table.place(row, "station"),
                    name,
                    f"is at another place than in line {table.lines[start]}",
                    "stations of one name must have one position",
                )
            )
