"""Green's functions of an inversion as the libraries that BEAT stacks to slip.

Layout: what ``beat.ffi.load_gf_library`` of BEAT 2.0 reads
(https://github.com/hvasbath/beat, ``beat/ffi/base.py``): an array (patch, datum) and a
description, for each component of slip.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import xarray as xr

from afterslip.exports.linear import (
    Numbers,
    independent_sigma,
    linear_problem,
    write_parameters,
)

# of a reference source with a rake of 90°: along it is reverse slip, at -90° from it
# left-lateral slip
NAMES = {"dip": "uparr", "strike": "uperp"}
KINDS = ("east", "north", "up", "los")
DESCRIPTION = """\
--- !beat.GeodeticGFLibraryConfig
component: {component}
crust_ind: 0
dimensions:
- {patches}
- {data}
datatype: geodetic
"""


def write_beat(
    result: xr.Dataset, greens: str | Path | xr.Dataset, folder: str | Path
) -> Path:
    """Write a library of Green's functions for each component of slip.

    Parameters
    ----------
    greens : the campaign's ``greens.zarr``, of which the result is.
    folder : made if it is not there. ``geodetic_uparr_static_0.traces.npy`` is
        (patch, datum) in m per m of reverse slip, ``geodetic_uperp_static_0`` of
        left-lateral slip, each with its ``.yaml``; ``uparr.csv`` and ``uperp.csv`` have
        a line for each patch, ``data.csv`` one for each datum: m, less what was
        estimated beside slip; data that weigh less in a robust inversion have a larger
        ``sigma_m``.

    Raises
    ------
    SpecError
        The store is of another campaign; the inversion has increments, or data whose
        errors are correlated: ``data.csv`` would call them independent.
    """
    sigma = independent_sigma(result)
    matrix, beside = linear_problem(result, greens, "BEAT's geodetic library")
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    components = result["source_component"].attrs["flag_meanings"].split()
    for number, component in enumerate(components):
        order = np.flatnonzero(result["source_component"].values == number)
        if not order.size:
            continue
        name = NAMES[component]
        path = folder / f"geodetic_{name}_static_0"
        np.save(f"{path}.traces.npy", np.ascontiguousarray(matrix[:, order].T))
        facts = {"patches": order.size, "data": matrix.shape[0]}
        path.with_suffix(".yaml").write_text(
            DESCRIPTION.format(component=name, **facts), encoding="utf-8"
        )
        write_parameters(result, order, folder / f"{name}.csv")
    values = result["observed"].values - beside
    _write_data(result, values, sigma, folder / "data.csv")
    return folder


def _write_data(
    result: xr.Dataset, values: Numbers, sigma: Numbers, path: Path
) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        lines = csv.writer(file)
        heads = ("datum", "dataset", "component", "x_km", "y_km", "epoch_yr", "value_m",
                 "sigma_m")  # fmt: skip
        lines.writerow(heads)
        for number, value in enumerate(values):
            station = int(result["obs_station"].values[number])
            lines.writerow(
                (
                    number,
                    str(result["obs_dataset"].values[number]),
                    KINDS[int(result["obs_component"].values[number])],
                    f"{float(result['station_x'].values[station]) / 1e3:.4f}",
                    f"{float(result['station_y'].values[station]) / 1e3:.4f}",
                    f"{float(result['obs_epoch'].values[number]):.6f}",
                    f"{value:.6e}",
                    f"{sigma[number]:.6e}",
                )
            )
