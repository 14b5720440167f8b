"""Green's functions as stores that pyrocko's ``gf`` opens: one for each station.

A store of type C has one receiver and a grid of point sources without any symmetry, so
that it holds the response of a three-dimensional earth. Each point has the response to
six components of a moment tensor (``elastic18``). A unit source slips in at most two
directions, so that two tensors are known of each: the store is exact for those and
their sums, and pyrocko cannot know that it is not for others. ``sources.csv`` lists
them.

Layout: pyrocko, ``gf.meta.ConfigTypeC`` and ``gf.store``, https://pyrocko.org/docs.
"""

from __future__ import annotations

import csv
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from scipy.spatial.distance import pdist

from afterslip.archive import GreensStore
from afterslip.errors import one_problem
from afterslip.exports.vtu import check_greens
from afterslip.frame import Frame
from afterslip.result import labels
from afterslip.schemas import earth
from afterslip.units import YEAR

Float = NDArray[np.float64]

TERMS = ("mnn", "mee", "mdd", "mne", "mnd", "med")
_COMPONENTS = 18
_AXES = ("depth", "east_shift", "north_shift")
# of a store's index, 24 bytes each: 2.4 GB
_MOST_RECORDS = 100_000_000
_RECORD = np.dtype(
    [
        ("data_offset", "<u8"),
        ("itmin", "<i4"),
        ("nsamples", "<u4"),
        ("begin_value", "<f4"),
        ("end_value", "<f4"),
    ]
)
# a trace of at most two samples is in the index alone; this offset says so
_IN_INDEX = 2


_CONFIG = """\
--- !pf.ConfigTypeC
id: {id}
description: {description}
sample_rate: 1.0
component_scheme: elastic18
ncomponents: 18
receiver: !pf.Receiver
  lat: {lat}
  lon: {lon}
  north_shift: {north}
  east_shift: {east}
  depth: 0.0
source_origin: !pf.Location
  lat: {lat0}
  lon: {lon0}
  depth: 0.0
{grid}"""


@dataclass(frozen=True, slots=True)
class _Grid:
    """A regular grid with one unit source, or the two of one patch, at a node.

    Attributes
    ----------
    least, step : m, depth, east and north of the first node; spacing of all three.
    counts : number of nodes along each.
    node : (n_source, 3), of each source.
    """

    least: Float
    step: float
    counts: NDArray[np.int64]
    node: NDArray[np.int64]

    @property
    def record(self) -> NDArray[np.int64]:
        """(n_source,) number of the first record of each node."""
        flat = np.ravel_multi_index(tuple(self.node.T), tuple(self.counts))
        return np.asarray(flat * _COMPONENTS)

    @property
    def place(self) -> Float:
        """(n_source, 3) m."""
        return np.asarray(self.least + self.step * self.node)

    def lines(self) -> str:
        """Return the grid as a store's configuration has it."""
        text = ""
        most = self.least + self.step * (self.counts - 1)
        for name, low, high in zip(_AXES, self.least, most, strict=True):
            text += f"source_{name}_min: {low:.9e}\nsource_{name}_max: {high:.9e}\n"
            text += f"source_{name}_delta: {self.step:.9e}\n"
        return text


def write_pyrocko(
    result: xr.Dataset,
    greens: str | Path | xr.Dataset,
    folder: str | Path,
    time: float = 0.0,
) -> Path:
    """Write the static displacement of unit sources as pyrocko's stores.

    Parameters
    ----------
    greens : the campaign's ``greens.zarr``, of which the result is.
    folder : made if it is not there; a ``store_superdir`` of pyrocko's engine, with a
        store for each station of the result. ``stations.csv`` names the stores;
        ``sources.csv`` has the place (shifts from the origin, on a grid) and the
        moment tensor of 1 m of slip of each unit source, N m.
    time : s after the event.

    Raises
    ------
    SpecError
        The store is of another campaign, or sources are so close to each other that
        a regular grid which tells them apart would be too large.
    """
    store = GreensStore(greens)
    check_greens(result, store, result.sizes["source"])
    tensors = _tensors(result)
    grid = _grid(result)
    x, y = (np.asarray(result[f"station_{axis}"].values) for axis in "xy")
    motion = store.sample(x, y, [time]).values[:, 0]
    # east, north, up to pyrocko's north, east, down
    motion = motion[..., [1, 0, 2]] * [1.0, 1.0, -1.0]
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    frame = Frame.of(earth.Frame.model_validate_json(result.attrs["frame"]))
    about = f"afterslip, {time / YEAR:.6g} yr after the event; of sources.csv alone"
    names = labels(result, "station")
    for number in range(len(names)):
        lon, lat, east, north = frame.lon0, frame.lat0, x[number], y[number]
        if frame.geographic:
            lon, lat = (float(v) for v in frame.to_geographic(x[number], y[number]))
            east = north = 0.0
        config = _CONFIG.format(
            id=f"station_{number:04d}", description=about, lat=lat, lon=lon,
            north=north, east=east, lat0=frame.lat0, lon0=frame.lon0, grid=grid.lines(),
        )  # fmt: skip
        _write_store(
            folder / f"station_{number:04d}", config, grid, tensors, motion[:, number]
        )
    stores = [(f"station_{i:04d}", name) for i, name in enumerate(names)]
    _write_table(folder / "stations.csv", ("store", "station"), stores)
    _write_sources(folder / "sources.csv", result, grid, tensors)
    return folder


def _write_sources(path: Path, result: xr.Dataset, grid: _Grid, tensors: Float) -> None:
    """Write place and moment tensor of each unit source."""
    faults = result["source_fault"].attrs["flag_meanings"].split()
    components = result["source_component"].attrs["flag_meanings"].split()
    rows = [
        (
            source,
            faults[int(result["source_fault"].values[source])],
            components[int(result["source_component"].values[source])],
            *(f"{grid.place[source, i]:.3f}" for i in (2, 1, 0)),
            *(f"{value:.8e}" for value in tensors[source]),
        )
        for source in range(len(tensors))
    ]
    heads = ("source", "fault", "component", "north_shift", "east_shift", "depth")
    _write_table(path, (*heads, *TERMS), rows)


def _tensors(result: xr.Dataset) -> Float:
    """(n_source, 6) N m of 1 m of slip, as `TERMS`; the fault is as at its centre."""
    nodes = np.column_stack([result[f"fault_{axis}"].values for axis in "xyz"])
    near = cKDTree(nodes).query(result["source_position"].values)[1]
    strike, updip = (
        np.asarray(result[f"fault_{name}"].values)[near] for name in ("strike", "updip")
    )
    along = np.where(result["source_component"].values[:, None] == 0, strike, updip)
    # of the side above, which slips along strike and up dip
    normal = np.cross(strike, updip)
    slip, normal = (v[:, [1, 0, 2]] * [1.0, 1.0, -1.0] for v in (along, normal))
    size = result["source_rigidity"].values * result["source_area"].values
    first, second = np.array([0, 1, 2, 0, 0, 1]), np.array([0, 1, 2, 1, 2, 2])
    terms = slip[:, first] * normal[:, second] + slip[:, second] * normal[:, first]
    return np.asarray(size[:, None] * terms)


def _grid(result: xr.Dataset) -> _Grid:
    position = np.asarray(result["source_position"].values, dtype=np.float64)
    place = np.column_stack([-position[:, 2], position[:, 0], position[:, 1]])
    apart = pdist(np.unique(place.round(3), axis=0), "chebyshev")
    # two places that are further from each other than a step have nodes of their own
    step = 0.999 * float(apart.min()) if apart.size else 1e3
    node = np.rint((place - place.min(axis=0)) / step).astype(np.int64)
    counts = node.max(axis=0) + 1
    if counts.prod() * _COMPONENTS > _MOST_RECORDS:
        raise one_problem(
            "sources",
            f"{step:.0f} m apart",
            "are too close to each other for a regular grid of pyrocko's",
            "export a campaign of one fault, or with larger sources",
        )
    return _Grid(place.min(axis=0), step, counts, node)


def _write_store(
    folder: Path, config: str, grid: _Grid, tensors: Float, motion: Float
) -> None:
    """Write one store; its configuration comes last, so that one that opens is whole.

    Parameters
    ----------
    tensors, motion : (n_source, 6) N m and (n_source, 3) m of 1 m of each source.
    """
    folder.mkdir(exist_ok=True)
    (folder / "config").unlink(missing_ok=True)
    records = np.zeros(int(grid.counts.prod()) * _COMPONENTS, dtype=_RECORD)
    for first in np.unique(grid.record):
        own = grid.record == first
        # exact for the tensors of this node and their sums
        response = (np.linalg.pinv(tensors[own]) @ motion[own]).T.ravel()
        part = records[first : first + _COMPONENTS]
        part["data_offset"], part["nsamples"] = _IN_INDEX, 2
        part["begin_value"] = part["end_value"] = response
    with (folder / "index").open("wb") as file:
        file.write(struct.pack("<Qf", len(records), 1.0))
        file.write(records.tobytes())
    (folder / "traces").write_bytes(bytes(32))
    for name in ("decimated", "extra"):
        (folder / name).mkdir(exist_ok=True)
    (folder / "config").write_text(config, encoding="utf-8")


def _write_table(
    path: Path, heads: Sequence[str], rows: Sequence[Sequence[object]]
) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([heads, *rows])
