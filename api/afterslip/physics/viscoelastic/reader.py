"""Curves of displacement from the arrays of their store."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from afterslip.archive.lacking import lacking, values
from afterslip.archive.requests import displacement, positions, times_until
from afterslip.archive.surface import SurfaceInterpolator
from afterslip.units import YEAR
from afterslip_common.curve import spectral_weights, step_weights
from afterslip_common.terms import GROUP_SIZE

Float = NDArray[np.float64]
Int = NDArray[np.int64]

# sources whose errors are summed up: each takes reading its modes
_ASKED = 16


@dataclass(frozen=True, slots=True)
class PlaceCurves:
    """Curves of some places, in memory.

    Attributes
    ----------
    reader : whose they are. rows : (n_source,) positions of sources.
    count : number of places.
    modes : place in ``rows`` and (mode, station, 3) modes of each stored source.
    """

    reader: CurveReader
    rows: Int
    count: int
    modes: list[tuple[int, Float]]

    def __call__(self, times: ArrayLike, stations: ArrayLike | None = None) -> Float:
        """(source, time, station, 3) m per m; NaN for sources not stored yet.

        Parameters
        ----------
        times : (n_time,) s. stations : positions of places; None: all.
        """
        t = times_until(times, self.reader.until, "curve", "yr")
        chosen = positions(self.count, stations, "stations")
        found = np.full((len(self.rows), len(t), len(chosen), 3), np.nan)
        for place, modes in self.modes:
            coefficients = self.reader.coefficients(int(self.rows[place]), t)
            found[place] = np.tensordot(coefficients, modes[:, chosen], axes=1)
        return found


class CurveReader:
    """See `afterslip.physics.base.Reader`.

    Parameters
    ----------
    dataset : the whole store, lazily.
    """

    def __init__(self, dataset: xr.Dataset) -> None:
        self.dataset = dataset

    @property
    def spectral(self) -> bool:
        """True where modes are Lanczos vectors, False where they are time steps."""
        return self.dataset.attrs.get("integrator") != "stepping"

    @property
    def until(self) -> float:
        """End of the curve, s.

        Raises
        ------
        DamagedError
            The store does not say it.
        """
        try:
            return float(self.dataset.attrs["until_yr"]) * YEAR
        except (KeyError, TypeError, ValueError):
            what = "has no number until_yr, the end of its times in years"
            raise lacking("zarr.json", what) from None

    @property
    def stored(self) -> NDArray[np.bool_]:
        """(n_source,) bool, whether a source is stored already."""
        return self.mode_count > 0

    @cached_property
    def mode_count(self) -> Int:
        """(n_source,) int64 modes of each source, 0 where it is not stored yet."""
        return values(self.dataset, "mode_count").astype(np.int64)

    @cached_property
    def interpolator(self) -> SurfaceInterpolator:
        """Interpolation between the surface's nodes."""
        nodes = [values(self.dataset, f"node_{axis}") for axis in "xy"]
        faces = values(self.dataset, "face_node_connectivity")
        return SurfaceInterpolator(np.column_stack(nodes), faces)

    def evaluate(
        self,
        times: ArrayLike,
        nodes: ArrayLike | None = None,
        sources: ArrayLike | None = None,
    ) -> xr.DataArray:
        """Return the displacement of nodes per metre of slip.

        Parameters
        ----------
        times : (n_time,) s after the event, from 0 to `until`.
        nodes : (n_node,) positions of surface nodes; None: all.
        sources : (n_source,) positions of sources; None: all.

        Returns
        -------
        (source, time, node, component) float64, m per m; NaN for sources that are
        not stored yet.
        """
        t = self._times(times)
        chosen = self._positions("node", nodes)
        rows = self._positions("source", sources)
        found = np.full((len(rows), len(t), len(chosen), 3), np.nan)
        for place, modes in self._modes(rows):
            coefficients = self.coefficients(int(rows[place]), t)
            found[place] = np.tensordot(coefficients, modes[:, chosen], axes=1)
        return displacement(found, rows, t, "node").assign_coords(node=("node", chosen))

    def sample(
        self,
        x: ArrayLike,
        y: ArrayLike,
        times: ArrayLike,
        names: Sequence[str] | None = None,
        sources: ArrayLike | None = None,
    ) -> xr.DataArray:
        """Return the displacement at places of the surface per metre of slip.

        Parameters
        ----------
        x, y : (n_station,) m, local.
        times : (n_time,) s after the event, from 0 to `until`.
        names : of the places, as the coordinate ``station`` and for messages.
        sources : (n_source,) positions of sources; None: all.

        Returns
        -------
        (source, time, station, component) float64, m per m; NaN for sources that
        are not stored yet.

        Raises
        ------
        SpecError
            Places outside the surface, times outside the curve.
        """
        t = self._times(times)
        at = self.sampler(x, y, names, sources)
        labels = list(names) if names is not None else np.arange(at.count)
        return displacement(at(t), at.rows, t, "station").assign_coords(
            station=("station", labels)
        )

    def sampler(
        self,
        x: ArrayLike,
        y: ArrayLike,
        names: Sequence[str] | None = None,
        sources: ArrayLike | None = None,
    ) -> PlaceCurves:
        """Read the curves of some places once, to be evaluated at many times.

        Parameters
        ----------
        x, y, names, sources : as of `sample`.
        """
        nodes, weights = self.interpolator.weights(x, y, names)
        rows = self._positions("source", sources)
        modes = [
            (place, np.einsum("sk,mskc->msc", weights, modes[:, nodes]))
            for place, modes in self._modes(rows)
        ]
        return PlaceCurves(self, rows, len(nodes), modes)

    def space_error(
        self,
        x: ArrayLike,
        y: ArrayLike,
        times: ArrayLike,
        names: Sequence[str] | None = None,
        sources: ArrayLike | None = None,
    ) -> xr.DataArray:
        """Return the estimated error of the mesh at places of the surface.

        Parameters
        ----------
        x, y, times, names, sources : as of `sample`.

        Returns
        -------
        (source, part, time, station) float64, m per m: length of the error of the
        elastic displacement, and of the change since (between the times for which it
        is stored linear, after them constant). NaN where nothing was estimated.
        """
        t = self._times(times)
        rows = self._positions("source", sources)
        nodes, weights = self.interpolator.weights(x, y, names)
        found = np.full((len(rows), 2, len(t), len(nodes)), np.nan)
        for place, between, stored in self._errors(rows, t):
            # a quadratic through errors may undershoot zero
            at = np.maximum(np.einsum("sk,tsk->ts", weights, stored[:, nodes]), 0.0)
            found[place, 0] = at[0]
            at[0] = 0.0
            found[place, 1] = between @ at
        labels = list(names) if names is not None else np.arange(len(nodes))
        return xr.DataArray(
            found,
            dims=("source", "part", "time", "station"),
            coords={
                "source": rows,
                "part": ["elastic", "change"],
                "time": ("time", t / YEAR, {"units": "yr"}),
                "station": ("station", labels),
            },
            name="space_error",
            attrs={"units": "m m-1"},
        )

    def space_error_of_slip(self, slip: Float, times: ArrayLike) -> Float:
        """Return a bound of the mesh's error under slip, over the whole surface.

        Parameters
        ----------
        slip : (n_source,) m, of all unit sources. times : (n_time,) s.

        Returns
        -------
        (time, node) float64, m: lengths of errors of the elastic displacements and the
        changes since, summed up over the sources. NaN where nothing was estimated.
        """
        t, size = self._times(times), np.abs(slip)
        total = np.zeros((len(t), self.dataset.sizes["node"]))
        if "space_error" not in self.dataset:
            return np.full_like(total, np.nan)
        for row, between, stored in self._errors(np.arange(len(size)), t):
            later = stored.copy()
            later[0] = 0.0
            total += size[row] * (stored[0] + between @ later)
        return total

    def _errors(self, rows: Int, t: Float) -> Iterator[tuple[int, Float, Float]]:
        """Yield place, (n_time, n_moment) weights in time, (n_moment, node) errors."""
        if "space_error" not in self.dataset:
            return
        moments = values(self.dataset, "error_time") * YEAR
        # linear between moments
        units = np.eye(len(moments))
        between = np.column_stack([np.interp(t, moments, unit) for unit in units])
        for place, row in enumerate(rows):
            stored = self.dataset["space_error"][int(row)].values
            yield place, between, stored.astype(np.float64)

    def largest_space_error(self) -> dict[str, float]:
        """Return the error of the mesh over the whole surface, of the worst source.

        Returns
        -------
        {"elastic", "change"}: root mean squares over those of the displacement, and of
        the change until the last time of the errors, among at most 16 sources evenly
        spread; without what was not estimated.
        """
        stored = np.flatnonzero(self.stored)
        if "space_error" not in self.dataset or not len(stored):
            return {}
        spread = np.linspace(0, len(stored) - 1, min(len(stored), _ASKED))
        last = float(values(self.dataset, "error_time")[-1]) * YEAR
        found: dict[str, float] = {}
        for row in stored[np.unique(spread.astype(np.int64))].tolist():
            error = self.dataset["space_error"][row].values
            motion = self.evaluate([0.0, last], sources=[row]).values[0]
            parts = {"elastic": (error[0], motion[0])}
            parts["change"] = error[-1], motion[1] - motion[0]
            for part, (length, vector) in parts.items():
                size = float(np.sqrt((vector**2).sum(axis=1).mean()))
                share = float(np.sqrt((length**2).mean())) / size if size else np.nan
                if np.isfinite(share):
                    found[part] = max(found.get(part, 0.0), share)
        return found

    def coefficients(self, source: int, times: ArrayLike) -> Float:
        """Return what each mode of a source contributes at given times.

        Returns
        -------
        (n_time, mode_count) float64.
        """
        count = int(self.mode_count[source])
        if self.spectral:
            pairs, norms, shifts = self._recurrence
            return spectral_weights(
                pairs[source, :count], norms[source], shifts[source], times
            )
        return step_weights(self._step_times[:count], times)

    @cached_property
    def _recurrence(self) -> tuple[Float, Float, Float]:
        names = ("recurrence", "start_norm", "shift")
        pairs, norms, shifts = (values(self.dataset, name) for name in names)
        return pairs, norms, shifts

    @cached_property
    def _step_times(self) -> Float:
        return np.asarray(values(self.dataset, "step_time") * YEAR)

    def _modes(self, rows: Int) -> Iterator[tuple[int, Float]]:
        """Yield place in ``rows`` and (mode, node, 3) modes of each stored source.

        Sources of a group are read together: they are one file.
        """
        for group in np.unique(rows // GROUP_SIZE):
            places = np.flatnonzero(
                (rows // GROUP_SIZE == group) & (self.mode_count[rows] > 0)
            )
            if not len(places):
                continue
            count = int(self.mode_count[rows[places]].max())
            members = np.unique(rows[places])
            start, stop = int(members[0]), int(members[-1]) + 1
            block = self.dataset["response"].isel(
                source=slice(start, stop), mode=slice(0, count)
            )
            responses = block.values.astype(np.float64)
            for place in places:
                source = int(rows[place])
                yield int(place), responses[source - start, : self.mode_count[source]]

    def _positions(self, dim: str, chosen: ArrayLike | None) -> Int:
        return positions(self.dataset.sizes[dim], chosen, f"{dim}s")

    def _times(self, times: ArrayLike) -> Float:
        return times_until(times, self.until, "curve", "yr")
