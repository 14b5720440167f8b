"""A result in the formats of other programs: one module and one function for each."""

from collections.abc import Callable
from pathlib import Path

import xarray as xr

from afterslip.exports.altar import write_altar
from afterslip.exports.beat import write_beat
from afterslip.exports.fsp import Event, write_fsp
from afterslip.exports.geojson import write_geojson
from afterslip.exports.gmt import write_csi, write_gmt
from afterslip.exports.pyrocko import write_pyrocko
from afterslip.exports.seismograms import write_seismograms
from afterslip.exports.table import write_slip
from afterslip.exports.vtu import write_surface, write_vtu

# what ``afterslip export --format`` writes from a result alone, as slip.FORMAT
FORMATS: dict[str, Callable[[xr.Dataset, Path], Path]] = {
    "csi": write_csi,
    "csv": write_slip,
    "geojson": write_geojson,
    "gmt": write_gmt,
    "vtu": write_vtu,
}

__all__ = [
    "FORMATS",
    "Event",
    "write_altar",
    "write_beat",
    "write_csi",
    "write_fsp",
    "write_geojson",
    "write_gmt",
    "write_pyrocko",
    "write_seismograms",
    "write_slip",
    "write_surface",
    "write_vtu",
]
