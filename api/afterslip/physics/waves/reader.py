"""Displacement of the ground at any time of the series."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray
from scipy.interpolate import CubicSpline

from afterslip.archive.lacking import values
from afterslip.archive.requests import displacement, positions, times_until
from afterslip.errors import ArchiveError, one_problem
from afterslip.physics.waves.columns import rupture_columns
from afterslip.readers.observations import SAME_PLACE
from afterslip.readers.rows import Rows
from afterslip.units import KM

Float = NDArray[np.float64]
Int = NDArray[np.int64]


class SeriesReader:
    """See `afterslip.physics.base.Reader`.

    Between samples series are cubic splines, between points of the ground cubic.

    Parameters
    ----------
    dataset : the whole store, lazily.
    """

    def __init__(self, dataset: xr.Dataset) -> None:
        self.dataset = dataset

    @cached_property
    def samples(self) -> Float:
        """(n_sample,) s."""
        return np.asarray(values(self.dataset, "sample"), dtype=np.float64)

    @property
    def until(self) -> float:
        """End of the series, s."""
        return float(self.samples[-1])

    @property
    def stored(self) -> NDArray[np.bool_]:
        """(n_source,) bool, whether a source is stored already."""
        return np.asarray(values(self.dataset, "steps") > 0)

    def evaluate(
        self,
        times: ArrayLike,
        nodes: ArrayLike | None = None,
        sources: ArrayLike | None = None,
    ) -> xr.DataArray:
        """Return (source, time, node, component) float64 at points of the ground.

        Parameters
        ----------
        nodes : numbers of points, row by row.

        Raises
        ------
        ArchiveError
            The store has stations alone.
        """
        field = self._wavefield()
        rows, t = self._sources(sources), self._times(times)
        count = field.sizes["row"] * field.sizes["column"]
        chosen = positions(count, nodes, "points of the ground")
        found = np.empty((len(rows), len(t), len(chosen), 3))
        for place, row in enumerate(rows):
            flat = field.isel(source=row).values.reshape(count, 3, -1)[chosen]
            found[place] = self._at(flat, t)
        return displacement(found, rows, t, "node")

    def sample(
        self,
        x: ArrayLike,
        y: ArrayLike,
        times: ArrayLike,
        names: Sequence[str] | None = None,
        sources: ArrayLike | None = None,
    ) -> xr.DataArray:
        """Return (source, time, station, component) float64.

        Raises
        ------
        SpecError
            A place is outside the points, or no station where only those are stored.
        """
        at = np.atleast_1d(np.asarray(x, float)), np.atleast_1d(np.asarray(y, float))
        rows, t = self._sources(sources), self._times(times)
        labels = list(names) if names is not None else list(range(len(at[0])))
        found = np.empty((len(rows), len(t), len(at[0]), 3))
        read = self._between if "wavefield" in self.dataset else self._stations
        take = read(*at, [str(label) for label in labels])
        for place, row in enumerate(rows):
            found[place] = self._at(take(int(row)), t)
        array = displacement(found, rows, t, "station")
        return array.assign_coords(station=("station", labels))

    def columns(self, rows: Rows, delay: Float) -> Float:
        """Return (n_obs, n_window, n_source) float64; see `base.RuptureReader`.

        Raises
        ------
        SpecError
            As for `sample`.
        """
        return rupture_columns(self, rows, delay)

    def motion(
        self, x: Float, y: Float, names: list[str], quantity: str
    ) -> Callable[[int], Callable[[Float], Float]]:
        """Return what makes functions of time of sources.

        Parameters
        ----------
        quantity : displacement or velocity.

        Returns
        -------
        From a source to a function from (...) s to (n_station, 3, ...) float64.
        """
        if "wavefield" in self.dataset:
            inside, order = self._between(x, y, names), int(quantity == "velocity")
            return lambda row: self._spline(inside(row), order)
        stored = "seismogram" if quantity == "velocity" else "displacement"
        take = self._stations(x, y, names, stored)
        return lambda row: self._spline(take(row), 0)

    def _spline(self, series: Float, order: int) -> Callable[[Float], Float]:
        found = CubicSpline(self.samples, series, axis=-1)
        return lambda times: np.asarray(found(times, order))

    def offsets(self, x: Float, y: Float, names: list[str]) -> Callable[[int], Float]:
        """Return what reads (n_station, 3) displacements that stay, of a source."""
        if "wavefield" in self.dataset:
            inside = self._between(x, y, names)
            return lambda row: np.asarray(inside(row)[..., -1])
        return self._stations(x, y, names, "offset")

    def _stations(
        self, x: Float, y: Float, names: list[str], stored: str = "displacement"
    ) -> Callable[[int], Float]:
        """Return what reads an array of stations at these places, of a source."""
        if stored not in self.dataset:
            raise ArchiveError(
                "the store has neither stations nor points of the ground"
            )
        own = [values(self.dataset, f"station_{axis}") for axis in "xy"]
        distance = np.hypot(x[:, None] - own[0], y[:, None] - own[1])
        nearest = distance.argmin(axis=1)
        for row in np.flatnonzero(distance.min(axis=1) > SAME_PLACE):
            away = distance[row].min() / KM
            raise one_problem(
                f"stations.{names[row]}",
                None,
                f"is {away:.3g} km from the next station, and only those are stored",
                "give waves.surface to have series everywhere",
            )
        series = self.dataset[stored]
        return lambda row: series.isel(source=row).values[nearest].astype(float)

    def _between(self, x: Float, y: Float, names: list[str]) -> Any:
        """Return what reads (n, 3, n_sample) between points of the ground."""
        field = self._wavefield()
        parts = []
        for axis, place in (("column", x), ("row", y)):
            grid = np.asarray(values(self.dataset, axis), dtype=np.float64)
            outside = np.flatnonzero((place < grid[0]) | (place > grid[-1]))
            if len(outside):
                raise one_problem(
                    f"stations.{names[outside[0]]}",
                    None,
                    "is outside the points of the ground, "
                    f"{grid[0] / KM:g} to {grid[-1] / KM:g} km along "
                    f"{'x' if axis == 'column' else 'y'}",
                )
            parts.append(_cubic(place, grid))
        (columns, across), (rows, along) = parts

        def take(source: int) -> Float:
            block = field.isel(source=source).values.astype(float)
            near = block[rows[:, :, None], columns[:, None, :]]
            return np.asarray(np.einsum("nr,nc,nrcks->nks", along, across, near))

        return take

    def _wavefield(self) -> xr.DataArray:
        if "wavefield" not in self.dataset:
            raise ArchiveError(
                "the store has series of its stations alone: give waves.surface to "
                "have them of the whole ground"
            )
        return self.dataset["wavefield"]

    def _at(self, series: NDArray[Any], t: Float) -> Float:
        """(n_time, n, 3) from (n, 3, n_sample)."""
        if np.isnan(series).any():
            return np.full((len(t), *series.shape[:2]), np.nan)
        found = CubicSpline(self.samples, series, axis=-1)(t)
        return np.asarray(np.moveaxis(found, -1, 0))

    def _sources(self, chosen: ArrayLike | None) -> Int:
        return positions(self.dataset.sizes["source"], chosen, "sources")

    def _times(self, times: ArrayLike) -> Float:
        return times_until(times, self.until, "series", "s")


def _cubic(place: Float, grid: Float) -> tuple[Int, Float]:
    """(n, 4) positions in an even grid and weights of Lagrange's polynomials."""
    count = min(4, len(grid))
    t = (place - grid[0]) / (grid[1] - grid[0])
    first = np.clip(np.floor(t).astype(np.int64) - 1, 0, len(grid) - count)
    at = t - first
    weights = np.ones((len(place), count))
    for a in range(count):
        for b in set(range(count)) - {a}:
            weights[:, a] *= (at - b) / (a - b)
    return first[:, None] + np.arange(count), weights
