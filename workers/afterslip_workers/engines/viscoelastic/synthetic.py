"""Synthetic observations: a forward run's displacement with random errors."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from afterslip.errors import one_problem
from afterslip_workers.store import durable

if TYPE_CHECKING:
    import xarray as xr

COLUMNS = ("east", "north", "up", "sigma_e", "sigma_n", "sigma_u", "type", "time")


def require_noise(noise: tuple[float, float]) -> None:
    """Refuse standard deviations, of `write_observations`, that are not positive.

    Raises
    ------
    SpecError
    """
    if not all(0 < value < np.inf for value in noise):
        hint = "give the deviations of the errors in m, such as 0.003,0.01"
        raise one_problem("--noise", list(noise), "must be more than zero", hint)


def write_observations(
    result: xr.Dataset, path: Path, noise: tuple[float, float], seed: int
) -> int:
    """Write a table of observations as campaigns read it, a line for each epoch.

    Parameters
    ----------
    result : of `run_forward`, at points of the ground.
    noise : standard deviation in m, horizontal and vertical, of independent normal
        errors that are added; it is written as the sigma of the data.
    seed : of the errors; the same one gives the same file.

    Returns
    -------
    Number of lines.

    Raises
    ------
    SpecError
        A deviation is not positive, or a point is below the ground.
    """
    require_noise(noise)
    deep = np.flatnonzero(result["depth"].values > 0)
    if len(deep):
        text = f"is {result['depth'].values[deep[0]]:.0f} m below the ground"
        hint = "observations are made on the ground: leave its depth out"
        raise one_problem(f"points[{deep[0]}]", None, text, hint)
    sigma = np.array([noise[0], noise[0], noise[1]])
    motion = result["displacement"].values
    motion = motion + np.random.default_rng(seed).normal(size=motion.shape) * sigma
    geographic = "lon" in result.coords
    places = ("lon", "lat") if geographic else ("x_km", "y_km")
    pair = (
        (result["lon"].values, result["lat"].values)
        if geographic
        else (result["x"].values / 1e3, result["y"].values / 1e3)
    )
    stream = io.StringIO()
    table = csv.writer(stream, lineterminator="\n")
    table.writerow(("station", *places, *COLUMNS))
    for row, name in enumerate(result["station"].values):
        for epoch, time in enumerate(result["time"].values):
            values = [f"{value:.6f}" for value in motion[epoch, row]]
            where = [f"{axis[row]:.6f}" for axis in pair]
            table.writerow([name, *where, *values, *sigma, "gnss", f"{time:.9g}"])
    durable.write_bytes(path, stream.getvalue().encode())
    return int(motion.shape[0] * motion.shape[1])
