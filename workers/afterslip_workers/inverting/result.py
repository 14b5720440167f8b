"""The result of an inversion as one data set; its layout is in ``docs/files.md``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from afterslip.frame import Frame
from afterslip.readers.rows import Rows
from afterslip_common.terms import YEAR
from afterslip_solver.inversion import InversionSolution, ModelError
from afterslip_solver.model import Float
from afterslip_workers.inverting.data import Unknown
from afterslip_workers.inverting.in_time import History

_SOURCE = (
    "source_fault",
    "source_component",
    "source_patch",
    "source_position",
    "source_area",
    "source_rigidity",
)


def source_variables(
    greens: xr.Dataset, solution: InversionSolution
) -> dict[str, xr.Variable]:
    """Coefficients, how well they are known, and what their sources are."""
    made = {name: greens[name].variable.load() for name in _SOURCE}
    made["slip"] = xr.Variable(("source",), solution.slip, {"units": "m"})
    made["resolution"] = xr.Variable(("source",), np.diag(solution.resolution).copy())
    made["detectable_slip"] = xr.Variable(
        ("source",), solution.detectable_slip, {"units": "m"}
    )
    return made


def data_variables(
    rows: Rows, solution: InversionSolution, frame: Frame
) -> dict[str, xr.Variable]:
    """Stations, data and their fit."""
    metres = {"units": "m"}
    made = {
        "station": xr.Variable(("station",), np.array(rows.stations, dtype=object)),
        "station_x": xr.Variable(("station",), rows.x, metres),
        "station_y": xr.Variable(("station",), rows.y, metres),
        "observed": xr.Variable(("obs",), rows.value, metres),
        "predicted": xr.Variable(("obs",), solution.predicted, metres),
        "residual": xr.Variable(("obs",), solution.residual, metres),
        "sigma": xr.Variable(("obs",), rows.sigma, metres),
        "obs_station": xr.Variable(("obs",), rows.station),
        "obs_component": xr.Variable(("obs",), rows.component),
        "obs_direction": xr.Variable(("obs", "component"), rows.direction),
        "obs_type": xr.Variable(("obs",), rows.kind.astype(object)),
        "obs_dataset": xr.Variable(("obs",), rows.dataset.astype(object)),
        "obs_epoch": xr.Variable(("obs",), rows.epoch / YEAR, {"units": "yr"}),
    }
    if solution.cross_validation is not None:
        made["obs_fold"] = xr.Variable(("obs",), solution.cross_validation.fold)
    if frame.geographic:
        lon, lat = frame.to_geographic(rows.x, rows.y)
        made["station_lon"] = xr.Variable(("station",), lon, {"units": "degrees_east"})
        made["station_lat"] = xr.Variable(("station",), lat, {"units": "degrees_north"})
    return made


def beside_variables(
    beside: Sequence[Unknown], solution: InversionSolution, weight: Float
) -> dict[str, xr.Variable]:
    """Unknowns beside slip, and the weights of data that are far off."""
    made = {}
    if (weight < 1.0).any():
        made["obs_weight"] = xr.Variable(("obs",), weight)
    if not beside:
        return made
    columns = np.column_stack([unknown.column for unknown in beside])
    made["predicted_beside"] = xr.Variable(
        ("obs",), columns @ solution.nuisance, {"units": "m"}
    )
    made["unknown_value"] = xr.Variable(("unknown",), solution.nuisance)
    for name in ("name", "dataset", "unit"):
        texts = np.array([getattr(item, name) for item in beside], dtype=object)
        made[f"unknown_{name}"] = xr.Variable(("unknown",), texts)
    for name in ("station", "component"):
        made[f"unknown_{name}"] = xr.Variable(
            ("unknown",), np.array([getattr(item, name) for item in beside])
        )
    epoch = np.array([item.epoch for item in beside]) / YEAR
    made["unknown_epoch"] = xr.Variable(("unknown",), epoch, {"units": "yr"})
    return made


def model_error_variables(error: ModelError | None) -> dict[str, xr.Variable]:
    """Errors of the predictions that the covariance of the data holds."""
    if error is None:
        return {}
    return {"model_sigma": xr.Variable(("obs",), error.total, {"units": "m"})}


def history_variables(
    history: History, fault_slip: Sequence[Float]
) -> dict[str, xr.Variable]:
    """Slip and moment through time.

    Parameters
    ----------
    fault_slip : of each block, (n_fault_node, 2) float64, m.
    """
    newton_metres = {"units": "N m"}
    starts = np.concatenate([[0.0], history.ends[:-1]])
    by_source, by_time = ("increment", "source"), ("increment",)
    made = {
        "increment_start": xr.Variable(by_time, starts / YEAR, {"units": "yr"}),
        "increment_end": xr.Variable(by_time, history.ends / YEAR, {"units": "yr"}),
        "slip_increment": xr.Variable(by_source, history.slip, {"units": "m"}),
        "slip_increment_sigma": xr.Variable(by_source, history.sigma, {"units": "m"}),
        "fault_slip_increment": xr.Variable(
            ("increment", "fault_node", "slip_component"),
            np.stack(fault_slip),
            {"units": "m"},
        ),
        "moment_history": xr.Variable(by_time, history.moment, newton_metres),
        "moment_history_elastic": xr.Variable(
            by_time, history.moment_elastic, newton_metres
        ),
    }
    if history.interval is not None:
        made["moment_history_interval"] = xr.Variable(
            ("increment", "limit"), history.interval.T, newton_metres
        )
    return made


def history_figures(history: History | None) -> dict[str, float]:
    """Numbers of slip through time that people quote."""
    if history is None:
        return {}
    return {
        "increment_smoothness": history.coupling,
        "increment_amplitude": history.amplitude,
        "variance_reduction_elastic": history.variance_reduction_elastic,
    }


def choice_variables(solution: InversionSolution) -> dict[str, xr.Variable]:
    """Every pair of weights that was tried; one point where none was."""
    table = solution.cross_validation
    if table is None:
        nothing = np.array([np.nan])
        columns = {
            "cv_smoothness": np.array([solution.smoothness]),
            "cv_sparsity": np.array([solution.sparsity]),
            "cv_score": nothing,
            "cv_score_se": nothing,
        }
        return {key: xr.Variable(("cv_point",), v) for key, v in columns.items()}
    made = {
        "cv_smoothness": xr.Variable(("cv_point",), table.smoothness),
        "cv_sparsity": xr.Variable(("cv_point",), table.sparsity),
        "cv_score": xr.Variable(("cv_point",), table.score),
        "cv_score_se": xr.Variable(("cv_point",), table.standard_error),
    }
    made["cv_fold_score"] = xr.Variable(("cv_point", "fold"), table.fold_scores)
    return made


def series_variables(times_s: Float, series: Float) -> dict[str, xr.Variable]:
    """Predicted motion of the stations.

    Parameters
    ----------
    times_s : (n_time,) float64, s.
    series : (n_time, n_station, 3) float64, m.
    """
    return {
        "time": xr.Variable(("time",), times_s / YEAR, {"units": "yr"}),
        "component": xr.Variable(
            ("component",), np.array(["east", "north", "up"], dtype=object)
        ),
        "series": xr.Variable(("time", "station", "component"), series, {"units": "m"}),
    }


def figures(result: xr.Dataset, solution: InversionSolution) -> dict[str, Any]:
    """Numbers that people quote."""
    slip = np.hypot(*result["fault_slip"].values.T)
    peak = int(np.argmax(slip))
    found: dict[str, Any] = {
        "moment": solution.moment,
        "magnitude": solution.magnitude,
        "peak_slip": float(slip[peak]),
        "peak_slip_x": float(result["fault_x"][peak]),
        "peak_slip_y": float(result["fault_y"][peak]),
        "peak_slip_depth": 0.0 - float(result["fault_z"][peak]),
        "variance_reduction": solution.fit.weighted_variance_reduction,
        "variance_reduction_unweighted": solution.fit.variance_reduction,
        "smoothness": solution.smoothness,
        "sparsity": solution.sparsity,
    }
    table = solution.cross_validation
    if table is not None:
        found["score"] = float(table.score[table.chosen])
        found["score_se"] = float(table.standard_error[table.chosen])
        found["folds"] = int(table.fold_scores.shape[1])
    return found


def write_netcdf(result: xr.Dataset, path: Path) -> None:
    """Write the result; numbers are compressed, names are not."""
    encoding = {
        str(name): {"zlib": True, "complevel": 4}
        for name, variable in result.variables.items()
        if variable.dtype.kind == "f" and variable.size > 256
    }
    result.to_netcdf(path, engine="h5netcdf", encoding=encoding)
