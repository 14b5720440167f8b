"""Displacements after the 2011 Tohoku-oki earthquake, from tables that others publish.

`write` makes the data sets of ``postseismic.py`` from the folder that AFTERSLIP_DATA
names. None of these tables may be passed on with this package.
"""

import csv
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import numpy as np
from pyproj import Geod

GEOD = Geod(ellps="WGS84")
EVENT = date(2011, 3, 11)
EVENT_YEAR = 2011 + (69 + 5.77 / 24) / 365  # 05:46 UTC
LAST = 1344.0  # days, of the fitted curves on land
DISPLACEMENT = ("east", "north", "up")
# farther away a flat earth means little; one site on land in each square of this size
REACH_KM, CELL_KM = 600.0, 90.0
# days after the event over which daily positions are averaged
WINDOWS = (
    (1, 5),
    (14, 24),
    (80, 100),
    (170, 195),
    (355, 375),
    (720, 740),
    (1334, 1354),
)
BEFORE = date(2009, 1, 1), date(2011, 3, 8)  # from where the rate before the event is

# file, what it is, where it is from
SETS = {
    "coseismic_gnss_zhang.csv": "offsets on land, trajectory fits to positions of the "
    "Nevada Geodetic Laboratory: repository zy31415/viscojapan, "
    "agu-paper/azimuth_difference/share/co_obs",
    "postseismic_gnss_1344d_zhang.csv": "the same fits' motion through 1,344 days: "
    "post_1344_obs beside it",
    "coseismic_seafloor_sato2011.csv": "Sato et al. (2011), Science 332, 1395, "
    "doi:10.1126/science.1207401, with days_after_mainshock of each first survey",
    "postseismic_seafloor_watanabe2014.csv": "Watanabe et al. (2014), Geophys. Res. "
    "Lett. 41, 5789, doi:10.1002/2014GL061134",
    "daily_gnss_18.csv": "daily positions, CC BY 4.0: repository "
    "helmsman-sun/gnss-station-neu-timeseries, dataset/ (mm; north, east, up)",
    "daily_gnss_18_stations.csv": "station,lon,lat of these",
    "daily_J550_oshika_ngl.csv": "daily positions of J550, IGS08: Nevada Geodetic "
    "Laboratory",
}


class MissingDataError(Exception):
    """A table is not there; the message says where to get each."""


def folder_of(data: str | None) -> Path:
    """Folder of the tables.

    Parameters
    ----------
    data : value of AFTERSLIP_DATA.

    Raises
    ------
    MissingDataError
        It is not set, or a table is not there.
    """
    folder = Path(data or "") / "tohoku_gnss"
    missing = [name for name in SETS if not data or not (folder / name).is_file()]
    if not missing:
        return folder
    said = [
        "set AFTERSLIP_DATA to a folder whose tohoku_gnss/ holds these tables, with"
    ]
    said += ["columns station,lon,lat,east,north,up (m) and decimal_year or date:"]
    said += [f"  {name}: {SETS[name]}" for name in missing]
    raise MissingDataError("\n".join(said))


def _read(path: Path) -> list[dict[str, str]]:
    with path.open() as stream:
        return list(csv.DictReader(stream))


def _line(row: dict[str, str], value: np.ndarray, kind: str, days: float) -> str:
    place = [row[key] for key in ("station", "lon", "lat")]
    numbers = [f"{v:.5f}" for v in value]
    return ",".join([*place, *numbers, kind, f"{days / 365.25:.6f}"])


def _value(row: dict[str, str]) -> np.ndarray:
    return np.array([float(row[key] or "nan") for key in DISPLACEMENT])


def thinned(rows: list[dict[str, str]], origin: tuple[float, float]) -> list[str]:
    """Names of sites within reach, one in each square: the one nearest its middle."""
    best: dict[tuple[int, int], tuple[float, str]] = {}
    for row in rows:
        azimuth, _, distance = GEOD.inv(*origin, float(row["lon"]), float(row["lat"]))
        if distance > 1e3 * REACH_KM:
            continue
        angle = np.deg2rad(azimuth)
        at = distance / (1e3 * CELL_KM) * np.array([np.sin(angle), np.cos(angle)])
        cell = tuple(np.floor(at).astype(int).tolist())
        off = float(np.linalg.norm(at - np.floor(at) - 0.5))
        best[cell] = min(best.get(cell, (np.inf, "")), (off, row["station"]))
    return sorted(name for _, name in best.values())


def coseismic(folder: Path, chosen: list[str]) -> Iterator[str]:
    """Offsets on land, at once."""
    for row in _read(folder / "coseismic_gnss_zhang.csv"):
        if row["station"] in chosen:
            yield _line(row, _value(row), "gnss", 0.0)


def coseismic_sea(folder: Path) -> Iterator[str]:
    """Offsets of the sea floor, at the day of the first survey after the event."""
    for row in _read(folder / "coseismic_seafloor_sato2011.csv"):
        yield _line(row, _value(row), "gnssa", float(row["days_after_mainshock"]))


def totals(folder: Path, chosen: list[str]) -> Iterator[str]:
    """Motion on land through 1,344 days, relative to just after the event."""
    for row in _read(folder / "postseismic_gnss_1344d_zhang.csv"):
        if row["station"] in chosen:
            yield _line(row, np.zeros(3), "gnss", 0.0)
            yield _line(row, _value(row), "gnss", LAST)


def sea(folder: Path) -> Iterator[str]:
    """Positions of the sea floor, relative to the first survey after the event."""
    for row in _read(folder / "postseismic_seafloor_watanabe2014.csv"):
        days = (float(row["decimal_year"]) - EVENT_YEAR) * 365.25
        yield _line(row, _value(row), "gnssa", days)


def series(folder: Path, origin: tuple[float, float]) -> Iterator[str]:
    """Means of daily positions, less the rate before the event, from the first one."""
    places = {r["station"]: r for r in _read(folder / "daily_gnss_18_stations.csv")}
    daily: dict[str, list[tuple[date, np.ndarray]]] = {}
    for row in _read(folder / "daily_gnss_18.csv"):
        day = date.fromisoformat(row["date"])
        daily.setdefault(row["station"], []).append((day, _value(row)))
    for row in _read(folder / "daily_J550_oshika_ngl.csv"):
        places[row["station"]] = row
        day = date.fromordinal(date(1858, 11, 17).toordinal() + int(row["mjd"]))
        daily.setdefault(row["station"], []).append((day, _value(row)))
    for name, days in sorted(daily.items()):
        place = places[name]
        *_, distance = GEOD.inv(*origin, float(place["lon"]), float(place["lat"]))
        if distance < 1e3 * REACH_KM:
            yield from _windows(place, days)


def _windows(
    place: dict[str, str], days: list[tuple[date, np.ndarray]]
) -> Iterator[str]:
    time = np.array([(day - EVENT).days for day, _ in days], dtype=np.float64)
    value = np.array([moved for _, moved in days])
    first, last = ((day - EVENT).days for day in BEFORE)
    quiet = (time >= first) & (time <= last)
    if quiet.sum() < 365:
        return
    rate = np.polyfit(time[quiet], value[quiet], 1)[0]
    value = value - rate * time[:, None]
    start = None
    for low, high in WINDOWS:
        mine = (time >= low) & (time <= high)
        if mine.any():
            middle = np.median(value[mine], axis=0)  # outliers are common
            start = middle if start is None else start
            yield _line(place, middle - start, "gnss", float(time[mine].mean()) + 0.26)


def write(folder: Path, origin: tuple[float, float], out: Path) -> dict[str, int]:
    """Write the five data sets; return how many lines each has."""
    rows = _read(folder / "postseismic_gnss_1344d_zhang.csv")
    chosen = thinned(rows, origin)
    counted = {}
    made = {
        "land": coseismic(folder, chosen),
        "land-total": totals(folder, [name for name in chosen if name != "J550"]),
        "land-series": series(folder, origin),
        "sea": coseismic_sea(folder),
        "sea-series": sea(folder),
    }
    for name, lines in made.items():
        text = list(lines)
        head = "station,lon,lat,east,north,up,type,time"
        (out / f"{name}.csv").write_text("\n".join([head, *text]) + "\n", "utf-8")
        counted[name] = len(text)
    return counted
