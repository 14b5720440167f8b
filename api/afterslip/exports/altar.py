"""The linear problem of an inversion as the files that AlTar's static model reads.

Layout: AlTar 2.0, Static Slip Inversion, https://altar2.readthedocs.io.
"""

from __future__ import annotations

import csv
import json
from pathlib import Path

import h5py
import numpy as np
import xarray as xr

from afterslip.archive import GreensStore
from afterslip.errors import one_problem
from afterslip.exports.vtu import check_greens
from afterslip.units import YEAR

# of the largest prediction, by which G times slip may miss what the result predicted
_AGREE = 1e-4
_ALONG = 3


def write_altar(
    result: xr.Dataset, greens: str | Path | xr.Dataset, folder: str | Path
) -> Path:
    """Write Green's functions, data and covariance of an inversion, and what is what.

    Parameters
    ----------
    greens : the campaign's ``greens.zarr``, of which the result is.
    folder : made if it is not there. ``static.gf.h5`` (observation, parameter; m per
        m), ``static.data.h5`` (observation; m, less what was estimated beside slip) and
        ``static.Cd.h5`` (observation, observation; m²) have one dataset each.
        Parameters are first all strike slips, then all dip slips: the parameter sets
        ``strikeslip`` and ``dipslip``; ``parameters.csv`` has a line for each.

    Raises
    ------
    SpecError
        The store is of another campaign; the inversion has increments, or data whose
        errors are correlated: its result does not hold their covariance.
    """
    _refuse(result)
    store = GreensStore(greens)
    check_greens(result, store, result.sizes["source"])
    matrix = _matrix(result, store)
    slip = np.asarray(result["slip"].values, dtype=np.float64)
    predicted = np.asarray(result["predicted"].values, dtype=np.float64)
    beside = np.zeros(predicted.size)
    if "predicted_beside" in result:
        beside = np.asarray(result["predicted_beside"].values, dtype=np.float64)
    miss = np.abs(matrix @ slip + beside - predicted).max(initial=0.0)
    if miss > _AGREE * np.abs(predicted).max(initial=0.0):
        raise one_problem(
            "greens",
            None,
            f"miss the result's predictions by {miss:.2g} m",
            "give the store with which the inversion was made",
        )
    order = np.argsort(result["source_component"].values, kind="stable")
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    sigma = np.asarray(result["sigma"].values, dtype=np.float64)
    for name, values in (
        ("gf", matrix[:, order]),
        ("data", result["observed"].values - beside),
        ("Cd", np.diag(sigma**2)),
    ):
        with h5py.File(folder / f"static.{name}.h5", "w") as file:
            file.create_dataset(f"static.{name}", data=values)
    _write_parameters(result, order, folder / "parameters.csv")
    return folder


def _refuse(result: xr.Dataset) -> None:
    if "increment_start" in result:
        raise one_problem(
            "result", None, "has slip through time; AlTar's static model has none"
        )
    used = set(map(str, result["obs_dataset"].values))
    known = {d["name"]: d for d in json.loads(result.attrs.get("datasets", "[]"))}
    # results of before this was recorded: the campaign's own data sets alone
    spec = json.loads(result.attrs.get("spec", "{}")).get("datasets") or []
    old = {d["name"] for d in spec if d.get("covariance")}
    for name in sorted(used):
        if known.get(name, {}).get("correlated", name in old):
            raise one_problem(
                f"datasets {name}",
                None,
                "has correlated errors, whose covariance a result does not hold",
            )


def _matrix(
    result: xr.Dataset, store: GreensStore
) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """(n_obs, n_source) response of each datum to each source, m per m."""
    station = np.asarray(result["obs_station"].values, dtype=np.int64)
    component = np.asarray(result["obs_component"].values, dtype=np.int64)
    epoch = np.asarray(result["obs_epoch"].values, dtype=np.float64)
    along = np.eye(4, 3)[component]
    if "obs_direction" in result:
        view = component == _ALONG
        along[view] = result["obs_direction"].values[view]
    matrix = np.empty((station.size, result.sizes["source"]))
    for time in np.unique(epoch):
        rows = np.flatnonzero(epoch == time)
        places, which = np.unique(station[rows], return_inverse=True)
        x, y = (result[f"station_{axis}"].values[places] for axis in "xy")
        motion = store.sample(x, y, [time * YEAR]).values[:, 0]
        matrix[rows] = np.einsum("soc,oc->os", motion[:, which], along[rows])
    return matrix


def _write_parameters(
    result: xr.Dataset,
    order: np.ndarray[tuple[int, ...], np.dtype[np.int64]],
    path: Path,
) -> None:
    faults = result["source_fault"].attrs["flag_meanings"].split()
    components = result["source_component"].attrs["flag_meanings"].split()
    heads = ("parameter", "fault", "component", "along_strike", "down_dip", "x_km",
             "y_km", "z_km", "area_km2")  # fmt: skip
    with path.open("w", newline="", encoding="utf-8") as file:
        lines = csv.writer(file)
        lines.writerow(heads)
        for number, source in enumerate(order):
            patch = result["source_patch"].values[source]
            place = result["source_position"].values[source] / 1e3
            lines.writerow(
                (
                    number,
                    faults[int(result["source_fault"].values[source])],
                    components[int(result["source_component"].values[source])],
                    *map(int, patch),
                    *(f"{value:.4f}" for value in place),
                    f"{float(result['source_area'].values[source]) / 1e6:.4f}",
                )
            )
