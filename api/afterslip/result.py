"""The result of an inversion as a data set, and the numbers that people quote from it.

The layout (names, dimensions, units) is written down in ``docs/files.md``.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import IO, Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from afterslip.errors import ArchiveError

Float = NDArray[np.float64]

LAYOUT: dict[str, tuple[str, ...]] = {
    "slip": ("source",),
    "resolution": ("source",),
    "source_fault": ("source",),
    "source_component": ("source",),
    "source_patch": ("source", "pair"),
    "source_position": ("source", "xyz"),
    "fault_slip": ("fault_node", "slip_component"),
    "fault_x": ("fault_node",),
    "fault_y": ("fault_node",),
    "fault_z": ("fault_node",),
    "fault_along": ("fault_node",),
    "fault_down": ("fault_node",),
    "fault_strike": ("fault_node", "component"),
    "fault_updip": ("fault_node", "component"),
    "fault_index": ("fault_node",),
    "fault_triangles": ("fault_triangle", "corner"),
    "station": ("station",),
    "station_x": ("station",),
    "station_y": ("station",),
    "observed": ("obs",),
    "predicted": ("obs",),
    "sigma": ("obs",),
    "obs_station": ("obs",),
    "obs_component": ("obs",),
    "obs_type": ("obs",),
    "obs_epoch": ("obs",),
    "time": ("time",),
    "series": ("time", "station", "component"),
    "cv_smoothness": ("cv_point",),
    "cv_sparsity": ("cv_point",),
    "cv_score": ("cv_point",),
    "cv_score_se": ("cv_point",),
}
ATTRIBUTES = ("moment", "magnitude", "peak_slip", "variance_reduction")


def check(result: xr.Dataset) -> xr.Dataset:
    """Make sure that a data set is an inversion's result.

    Raises
    ------
    ValueError
        naming every variable, dimension or attribute that is missing or wrong.
    """
    faults = []
    for name, dims in LAYOUT.items():
        if name not in result:
            faults.append(f"{name} is missing")
        elif len(result[name].dims) != len(dims):
            found = ", ".join(map(str, result[name].dims))
            faults.append(f"{name} has dimensions ({found}), not ({', '.join(dims)})")
    faults += [f"attribute {a} is missing" for a in ATTRIBUTES if a not in result.attrs]
    if faults:
        raise ValueError("not an inversion's result: " + "; ".join(faults))
    return result


def open_result(path: str | Path | IO[bytes]) -> xr.Dataset:
    """Read ``result.nc`` into memory, so that the file may go away.

    Raises
    ------
    FileNotFoundError, IsADirectoryError, PermissionError
        of the file.
    ArchiveError
        It is no NetCDF file, or a damaged one.
    ValueError
        It is not an inversion's result.
    """
    try:
        with xr.open_dataset(path, engine="h5netcdf", decode_times=False) as stored:
            found = stored.load()
    except (OSError, ValueError) as error:
        name = str(path) if isinstance(path, str | Path) else "the result"
        if code := getattr(error, "errno", None):
            # in the system's words instead of the library's
            raise OSError(code, os.strerror(code), name) from None
        raise ArchiveError(f"{name} is no NetCDF file, or a damaged one") from error
    return check(found)


def facts(result: xr.Dataset, name: str) -> Any:
    """Attribute that holds JSON, parsed; None where it is missing."""
    text = result.attrs.get(name)
    return json.loads(text) if isinstance(text, str) and text else None


def labels(result: xr.Dataset, name: str) -> NDArray[np.str_]:
    """Return a variable of strings, whichever way the file holds them."""
    values = np.asarray(result[name].values)
    if values.dtype.kind == "S":
        return np.char.decode(values, "utf-8")
    return values.astype(str)


def datasets_of(result: xr.Dataset) -> NDArray[np.str_]:
    """(n_obs,) name of each datum's data set; empty where the result has none."""
    if "obs_dataset" not in result:
        return np.full(result.sizes["obs"], "")
    return labels(result, "obs_dataset")


def is_geographic(result: xr.Dataset) -> bool:
    """Whether longitudes and latitudes are there to draw with."""
    return "fault_lon" in result and "station_lon" in result


def slip_magnitude(result: xr.Dataset) -> Float:
    """(n_fault_node,) float64, m, total slip at the fault's nodes."""
    slip = np.asarray(result["fault_slip"].values, dtype=np.float64)
    return np.asarray(np.hypot(slip[:, 0], slip[:, 1]))


def normalised_residual(result: xr.Dataset) -> Float:
    """(n_obs,) float64, (observed - predicted) / sigma."""
    observed = np.asarray(result["observed"].values, dtype=np.float64)
    predicted = np.asarray(result["predicted"].values, dtype=np.float64)
    return (observed - predicted) / np.asarray(result["sigma"].values, np.float64)


def variance_reduction(result: xr.Dataset, rows: Any = slice(None)) -> float:
    """1 - Σ(residual/sigma)² / Σ(observed/sigma)² over some rows.

    Parameters
    ----------
    rows : index into ``obs``; all by default.

    Returns
    -------
    float, 1 where the fit is exact; nan where the data are all zero.
    """
    sigma = np.asarray(result["sigma"].values, dtype=np.float64)[rows]
    observed = np.asarray(result["observed"].values, dtype=np.float64)[rows]
    power = float(np.sum((observed / sigma) ** 2))
    if power == 0.0:
        return float("nan")
    return 1.0 - float(np.sum(normalised_residual(result)[rows] ** 2)) / power


@dataclass(frozen=True, slots=True)
class FitRow:
    """How well some data are fitted.

    Attributes
    ----------
    name : what the data are.
    count : how many numbers.
    variance_reduction : see :func:`variance_reduction`.
    rms : root mean square residual, in ``unit``; nan where data have several.
    unit : "m", "m/s" of velocities, "" where data have both.
    chi : root mean square of residual / sigma; 1 is a fit to the errors.
    variance_reduction_unweighted : the same without sigma: 1 - Σr² / Σd²; nan where
        data have several units.
    """

    name: str
    count: int
    variance_reduction: float
    rms: float
    unit: str
    chi: float
    variance_reduction_unweighted: float


def _fit_row(result: xr.Dataset, name: str, rows: NDArray[np.bool_]) -> FitRow:
    z = normalised_residual(result)[rows]
    residual = z * np.asarray(result["sigma"].values, dtype=np.float64)[rows]
    observed = np.asarray(result["observed"].values, dtype=np.float64)[rows]
    power, left = float(np.sum(observed**2)), float(np.sum(residual**2))
    of_velocity = labels(result, "obs_type")[rows] == "velocity"
    unit = "m/s" if of_velocity.any() else "m"
    if of_velocity.any() and not of_velocity.all():
        unit, left = "", float("nan")
    return FitRow(
        name=name,
        count=int(rows.sum()),
        variance_reduction=variance_reduction(result, rows),
        rms=float(np.sqrt(left / rows.sum())),
        unit=unit,
        chi=float(np.sqrt(np.mean(z**2))),
        variance_reduction_unweighted=1.0 - left / power if power else float("nan"),
    )


TYPE_NAMES = {
    "gnss": "GNSS",
    "gnssa": "GNSS-acoustic",
    "obp": "ocean-bottom pressure",
    "insar": "InSAR",
    "displacement": "displacement through seconds",
    "velocity": "velocity through seconds",
}


def moving(result: xr.Dataset) -> NDArray[np.bool_]:
    """(n_obs,) bool, data of ground motion, which have ``obs_time``."""
    return np.isin(labels(result, "obs_type"), ("displacement", "velocity"))


def fit_by_type(result: xr.Dataset) -> list[FitRow]:
    """Fit of each data type, horizontals and verticals apart, and of all."""
    kinds = labels(result, "obs_type")
    component = np.asarray(result["obs_component"].values)
    rows = []
    for kind in dict.fromkeys(kinds.tolist()):
        mine = kinds == kind
        name = TYPE_NAMES.get(kind, kind)
        for part, which in (
            ("horizontal", component < 2),
            ("vertical", component == 2),
            ("line of sight", component == 3),
        ):
            if (mine & which).any():
                rows.append(_fit_row(result, f"{name}, {part}", mine & which))
    rows.append(_fit_row(result, "all", np.ones(kinds.size, dtype=bool)))
    return rows


def fit_by_dataset(result: xr.Dataset) -> list[FitRow]:
    """Fit of each data set; none where the result does not name them."""
    if "obs_dataset" not in result:
        return []
    names = labels(result, "obs_dataset")
    return [
        _fit_row(result, name, names == name) for name in dict.fromkeys(names.tolist())
    ]


@dataclass(frozen=True, slots=True)
class Vectors:
    """Data of one kind regrouped as one vector per station, data set and epoch.

    Attributes
    ----------
    station : (n,) position in the result's stations.
    kind : (n,) data type.
    dataset : (n,) name of the data set; empty where the result does not name it.
    epoch : (n,) yr.
    observed, predicted, sigma : (n, 3) m, east north up; nan where missing.
    model_sigma : the same, of the predictions for the mesh's sake; 0 where unknown.
    """

    station: NDArray[np.int64]
    kind: NDArray[np.str_]
    dataset: NDArray[np.str_]
    epoch: Float
    observed: Float
    predicted: Float
    sigma: Float
    model_sigma: Float

    def __getitem__(self, rows: Any) -> Vectors:
        """Return some of the vectors."""
        return Vectors(*(getattr(self, item.name)[rows] for item in fields(self)))

    @property
    def residual(self) -> Float:
        """(n, 3) m, observed - predicted."""
        return self.observed - self.predicted


def vectors(result: xr.Dataset) -> Vectors:
    """East, north and up of the data, one line per station, data set, epoch and type.

    Repeated solutions of a station have lines of their own. Line-of-sight data are left
    out: they have no such components. So are series of ground motion, which
    `afterslip.plot.motion_fit` draws.
    """
    component = np.asarray(result["obs_component"].values)
    keep = np.flatnonzero((component < 3) & ~moving(result))
    keys = list(_vector_keys(result, keep))
    place = {key: i for i, key in enumerate(dict.fromkeys(keys))}
    row = np.array([place[key] for key in keys], dtype=np.int64)
    tables = []
    for name in ("observed", "predicted", "sigma", "model_sigma"):
        table = np.full((len(place), 3), np.nan)
        values = result[name].values[keep] if name in result else 0.0
        table[row, component[keep].astype(np.int64)] = values
        tables.append(table)
    heads = list(place)
    return Vectors(
        np.array([k[0] for k in heads], dtype=np.int64),
        np.array([k[1] for k in heads], dtype=str),
        np.array([k[2] for k in heads], dtype=str),
        np.array([k[3] for k in heads], dtype=np.float64),
        *tables,
    )


def _vector_keys(
    result: xr.Dataset, rows: NDArray[np.int64]
) -> Iterator[tuple[int, str, str, float, int]]:
    """Yield of each datum the vector that it is part of.

    The last number counts solutions of one station, data set and epoch.
    """
    found: Counter[tuple[int, str, str, float, int]] = Counter()
    for station, kind, dataset, epoch, component in zip(
        np.asarray(result["obs_station"].values)[rows].tolist(),
        labels(result, "obs_type")[rows].tolist(),
        datasets_of(result)[rows].tolist(),
        np.asarray(result["obs_epoch"].values, dtype=np.float64)[rows].tolist(),
        np.asarray(result["obs_component"].values)[rows].tolist(),
        strict=True,
    ):
        datum = (int(station), kind, dataset, epoch, int(component))
        yield (*datum[:4], found[datum])
        found[datum] += 1


def mesh_error(result: xr.Dataset) -> str:
    """Say how wrong the mesh makes displacements; empty where it was not estimated."""
    shares = (facts(result, "solver") or {}).get("space_error") or {}
    return ", ".join(f"{part} {value:.1%}" for part, value in shares.items())
