"""The linear problem of an inversion, for exports that hand it to other programs."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import xarray as xr

from afterslip.archive import GreensStore
from afterslip.errors import one_problem
from afterslip.exports.vtu import check_greens
from afterslip.units import YEAR

Numbers = np.ndarray[tuple[int, ...], np.dtype[np.float64]]
Order = np.ndarray[tuple[int, ...], np.dtype[np.int64]]

# of the largest prediction, by which G times slip may miss what the result predicted
_AGREE = 1e-4
_ALONG = 3


def linear_problem(
    result: xr.Dataset, greens: str | Path | xr.Dataset, program: str
) -> tuple[Numbers, Numbers]:
    """Sample Green's functions where and when the data of a result are.

    Parameters
    ----------
    greens : the campaign's ``greens.zarr``, of which the result is.
    program : for which it is, to name in a refusal.

    Returns
    -------
    (n_obs, n_source) m per m, and (n_obs,) m, what was predicted beside slip.

    Raises
    ------
    SpecError
        The store is of another campaign; the inversion has increments.
    """
    if "increment_start" in result:
        raise one_problem("result", None, f"has slip through time; {program} has none")
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
    return matrix, beside


def _matrix(result: xr.Dataset, store: GreensStore) -> Numbers:
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


def write_parameters(result: xr.Dataset, order: Order, path: Path) -> None:
    """Write a line for each parameter, in the order of the sources that they are."""
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


def independent_sigma(result: xr.Dataset) -> Numbers:
    """Return the standard deviations with which data weigh as in the inversion.

    Returns
    -------
    (n_obs,) m.

    Raises
    ------
    SpecError
        The errors of some data are correlated.
    """
    _refuse_correlated(result)
    sigma = np.asarray(result["sigma"].values, dtype=np.float64)
    if "obs_weight" in result:
        # else a datum far off, which hardly weighed, would count in full elsewhere
        sigma = sigma / np.sqrt(result["obs_weight"].values)
    return sigma


def _refuse_correlated(result: xr.Dataset) -> None:
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
                "export an inversion of the other data sets alone",
            )
