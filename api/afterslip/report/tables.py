"""Tables of a result: as CSV files, and as rows for the page."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from afterslip.readers.cells import guarded
from afterslip.result import (
    TYPE_NAMES,
    datasets_of,
    facts,
    labels,
    normalised_residual,
    vectors,
)

Float = NDArray[np.float64]
_WORDS = ("east", "north", "up", "los")


def write_fit(result: xr.Dataset, path: str | Path) -> Path:
    """Write each datum as CSV: observed, predicted, residual, sigma (m).

    The last column names the data set where there are several.
    """
    names = labels(result, "station")
    datasets = datasets_of(result)
    several = len(set(datasets.tolist())) > 1
    station = np.asarray(result["obs_station"].values).astype(np.int64)
    component = np.asarray(result["obs_component"].values).astype(np.int64)
    word = np.array(_WORDS)
    path = Path(path)
    with path.open("w", newline="", encoding="utf-8") as file:
        out = csv.writer(file)
        out.writerow(
            ["station", "type", "component", "epoch_yr", "observed", "predicted",
             "residual", "sigma", *(["time_s"] if "obs_time" in result else []),
             *(["dataset"] if several else [])]
        )  # fmt: skip
        seconds = result.get("obs_time")
        after = [()] * result.sizes["obs"] if seconds is None else _seconds(seconds)
        for row in zip(
            names[station].tolist(),
            labels(result, "obs_type").tolist(),
            word[component].tolist(),
            result["obs_epoch"].values.tolist(),
            result["observed"].values.tolist(),
            result["predicted"].values.tolist(),
            (result["observed"].values - result["predicted"].values).tolist(),
            result["sigma"].values.tolist(),
            after,
            datasets.tolist(),
            strict=True,
        ):
            words = [guarded(str(word)) for word in row[:3]]
            numbers = (f"{v:.5f}" for v in row[4:8])
            last = [guarded(row[9])] if several else []
            out.writerow([*words, f"{row[3]:.6g}", *numbers, *row[8], *last])
    return path


def _seconds(times: xr.DataArray) -> list[tuple[str, ...]]:
    """Return the column of s after the event; empty for what stays."""
    return [(f"{t:.6g}" if np.isfinite(t) else "",) for t in times.values.tolist()]


def station_rows(
    result: xr.Dataset, most: int = 60
) -> tuple[list[dict[str, Any]], int]:
    """Rows of the page's table: one for each station, data set and epoch.

    Parameters
    ----------
    most : where there are more, those with the largest residual/sigma.

    Returns
    -------
    rows with name, kind, dataset, epoch, observed, predicted and z (texts, for east,
    north, up) and ``bad`` (some |z| above 3); and the number of all rows.
    """
    data = vectors(result)
    names = labels(result, "station")
    z = data.residual / data.sigma
    worst = np.nanmax(np.abs(z), axis=1) if len(z) else np.empty(0)
    keep = np.arange(len(z))
    if len(z) > most:
        keep = np.sort(np.argsort(-worst)[:most])
    rows = [
        {
            "name": str(names[data.station[i]]),
            "kind": TYPE_NAMES.get(str(data.kind[i]), str(data.kind[i])),
            "dataset": str(data.dataset[i]),
            "epoch": f"{data.epoch[i]:.4g}",
            "observed": _texts(data.observed[i], 3),
            "predicted": _texts(data.predicted[i], 3),
            "z": _texts(z[i], 1),
            "bad": bool(worst[i] > 3.0),
        }
        for i in keep.tolist()
    ]
    return rows, len(z)


def dataset_rows(result: xr.Dataset) -> list[dict[str, str]]:
    """Rows of the page's table of errors: where they came from, what was added."""
    rows = []
    for fact in facts(result, "datasets") or []:
        count, own = int(fact["count"]), int(fact["sigma_of_file"])
        source = f"{own} of {count} from the file"
        if own < count:
            source += f", {count - own} from sigma"
        asked = dict(fact.get("errors") or {})
        asked.pop("sigma", None)
        parts = [f"{key}: {_short(value)}" for key, value in asked.items()]
        made = fact.get("variogram")
        if made:
            parts.append(
                f"variogram: sigma {made['sigma']:.3g} m, length "
                f"{made['length'] / 1e3:.3g} km, nugget {made['nugget']:.3g} m"
            )
        rows.append(
            {"name": str(fact["name"]), "source": source, "added": "; ".join(parts)}
        )
    return rows


def _short(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {item:g}" for key, item in value.items())
    return f"{value:g}" if isinstance(value, float) else str(value).lower()


def beside_rows(result: xr.Dataset, most: int = 60) -> list[dict[str, str]]:
    """Rows of the page's table of what was estimated beside slip, the first ones."""
    if "unknown_value" not in result:
        return []
    stations = labels(result, "station")
    names, sets, units = (
        labels(result, f"unknown_{key}") for key in ("name", "dataset", "unit")
    )
    rows = []
    for i in range(min(most, result.sizes["unknown"])):
        station = int(result["unknown_station"].values[i])
        epoch = float(result["unknown_epoch"].values[i])
        rows.append(
            {
                "name": str(names[i]),
                "dataset": str(sets[i]),
                "station": str(stations[station]) if station >= 0 else "",
                "component": _WORDS[int(result["unknown_component"].values[i])],
                "epoch": f"{epoch:.4g}" if np.isfinite(epoch) else "",
                "value": f"{float(result['unknown_value'].values[i]):.4g} {units[i]}",
            }
        )
    return rows


def _texts(values: Float, digits: int) -> list[str]:
    # adding zero after rounding turns -0.0 into 0.0
    return [
        f"{round(v, digits) + 0.0:.{digits}f}".replace("-", "−")
        if np.isfinite(v)
        else ""
        for v in values.tolist()
    ]


def worst_stations(result: xr.Dataset, limit: float = 4.0) -> list[str]:
    """Names of stations with a residual beyond ``limit`` standard deviations."""
    z = np.abs(normalised_residual(result))
    station = np.asarray(result["obs_station"].values).astype(np.int64)
    order = np.argsort(-z)
    far = station[order][z[order] > limit]
    return list(dict.fromkeys(labels(result, "station")[far].tolist()))
