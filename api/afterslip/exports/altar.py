"""The linear problem of an inversion as the files that AlTar's static model reads.

Layout: AlTar 2.0, Static Slip Inversion, https://altar2.readthedocs.io.
"""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import xarray as xr

from afterslip.exports.linear import (
    independent_sigma,
    linear_problem,
    write_parameters,
)


def write_altar(
    result: xr.Dataset, greens: str | Path | xr.Dataset, folder: str | Path
) -> Path:
    """Write Green's functions, data and covariance of an inversion, and what is what.

    Parameters
    ----------
    greens : the campaign's ``greens.zarr``, of which the result is.
    folder : made if it is not there. ``static.gf.h5`` (observation, parameter; m per
        m), ``static.data.h5`` (observation; m, less what was estimated beside slip) and
        ``static.Cd.h5`` (observation, observation; m²) have one dataset each; data
        that weigh less in a robust inversion have as much larger variances.
        Parameters are first all strike slips, then all dip slips: the parameter sets
        ``strikeslip`` and ``dipslip``; ``parameters.csv`` has a line for each.

    Raises
    ------
    SpecError
        The store is of another campaign; the inversion has increments, or data whose
        errors are correlated: its result does not hold their covariance.
    """
    sigma = independent_sigma(result)
    matrix, beside = linear_problem(result, greens, "AlTar's static model")
    order = np.argsort(result["source_component"].values, kind="stable")
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name, values in (
        ("gf", matrix[:, order]),
        ("data", result["observed"].values - beside),
        ("Cd", np.diag(sigma**2)),
    ):
        with h5py.File(folder / f"static.{name}.h5", "w") as file:
            file.create_dataset(f"static.{name}", data=values)
    write_parameters(result, order, folder / "parameters.csv")
    return folder
