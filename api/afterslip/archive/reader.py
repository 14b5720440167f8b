"""Reading ``greens.zarr``: labelled arrays, and curves at any place and time."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray
from xarray.backends.zarr import ZarrArrayWrapper, ZarrStore
from xarray.core import indexing
from zarr.abc.store import Store
from zarr.storage import FsspecStore

from afterslip.archive.layout import GROUP
from afterslip.archive.surface import SurfaceInterpolator
from afterslip.archive.verified import VerifiedStore
from afterslip.errors import ArchiveError, DamagedError, one_problem
from afterslip.units import COMPONENTS, YEAR
from afterslip_common.curve import spectral_weights, step_weights

Float = NDArray[np.float64]
Int = NDArray[np.int64]

_HINT = "run `afterslip fsck --repair` where the store is"


def open_greens(
    where: str | Path | Store, headers: Mapping[str, str] | None = None
) -> xr.Dataset:
    """Open a store, lazily: values are read when they are asked for.

    Parameters
    ----------
    where : folder, ``http(s)://…/greens.zarr``, or a store that Zarr knows.
    headers : for a server that wants a token.

    Raises
    ------
    ArchiveError
        There is no store, or it is not one of Green's functions.
    DamagedError
        Here, and whenever values are read: a stored file is missing, or does not
        hold what was written.
    """
    text = str(where)
    try:
        found = xr.open_dataset(
            _Variables.open_group(_verified(where, headers), consolidated=True),
            chunks=None,
        )
    except (OSError, ValueError, KeyError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ArchiveError(f"{text} cannot be opened as a store: {reason}") from None
    if "response" not in found:
        raise ArchiveError(f"{text} holds no Green's functions")
    # plain strings: NumPy's variable-length ones cannot be written to NetCDF
    names = [name for name in ("station", "component") if name in found.coords]
    plain = {name: [str(text) for text in found[name].values] for name in names}
    return found.assign_coords(plain)


def _verified(
    where: str | Path | Store, headers: Mapping[str, str] | None
) -> VerifiedStore:
    if isinstance(where, VerifiedStore):
        return where
    if isinstance(where, Store):
        return VerifiedStore(where)
    text = str(where)
    if "://" not in text:
        return VerifiedStore.of_folder(Path(where))
    options = {"client_kwargs": {"headers": dict(headers)}} if headers else None
    inner = FsspecStore.from_url(text, storage_options=options, read_only=True)
    return VerifiedStore(inner, text)


class _Variables(ZarrStore):
    """Arrays of a store whose chunks that cannot be decoded are damaged."""

    __slots__ = ()

    def open_store_variable(self, name: str) -> xr.Variable:
        found = super().open_store_variable(name)  # type: ignore[no-untyped-call]
        chunks: Any = _Chunks(self.members[name])  # type: ignore[no-untyped-call]
        data = indexing.LazilyIndexedArray(chunks)
        return xr.Variable(found.dims, data, found.attrs, found.encoding)


class _Chunks(ZarrArrayWrapper):
    __slots__ = ()

    def __getitem__(self, key: Any) -> Any:
        try:
            return super().__getitem__(key)  # type: ignore[no-untyped-call]
        except (ValueError, RuntimeError) as error:
            array = self._array
            store = getattr(array.store, "name", str(array.store))
            what = f"has a chunk that cannot be decoded, {error}"
            raise DamagedError(store, array.basename, what, _HINT) from error


class GreensStore:
    """Green's functions, evaluated from their modes.

    Parameters
    ----------
    source : what `open_greens` takes or returned.
    headers : as for `open_greens`.

    Attributes
    ----------
    dataset : the whole store, lazily.
    """

    def __init__(
        self,
        source: str | Path | Store | xr.Dataset,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        if not isinstance(source, xr.Dataset):
            source = open_greens(source, headers)
        self.dataset: xr.Dataset = source

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
            raise _damaged("zarr.json", what) from None

    @property
    def spec(self) -> dict[str, Any]:
        """The campaign's spec."""
        try:
            found: dict[str, Any] = json.loads(self.dataset.attrs["spec"])
        except (KeyError, TypeError, ValueError):
            raise _damaged("zarr.json", "has no spec") from None
        return found

    @cached_property
    def mode_count(self) -> Int:
        """(n_source,) int64 modes of each source, 0 where it is not stored yet."""
        return self._values("mode_count").astype(np.int64)

    @cached_property
    def interpolator(self) -> SurfaceInterpolator:
        """Interpolation between the surface's nodes."""
        nodes = [self._values(f"node_{axis}") for axis in "xy"]
        faces = self._values("face_node_connectivity")
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
        for place, coefficients, modes in self._curves(rows, t):
            part = modes[:, chosen]
            found[place] = np.tensordot(coefficients, part, axes=1)
        return self._labelled(found, rows, t, "node").assign_coords(
            node=("node", chosen)
        )

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
        nodes, weights = self.interpolator.weights(x, y, names)
        rows = self._positions("source", sources)
        found = np.full((len(rows), len(t), len(nodes), 3), np.nan)
        for place, coefficients, modes in self._curves(rows, t):
            at_places = np.einsum("sk,mskc->msc", weights, modes[:, nodes])
            found[place] = np.tensordot(coefficients, at_places, axes=1)
        labels = list(names) if names is not None else np.arange(len(nodes))
        return self._labelled(found, rows, t, "station").assign_coords(
            station=("station", labels)
        )

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
        pairs, norms, shifts = (self._values(name) for name in names)
        return pairs, norms, shifts

    @cached_property
    def _step_times(self) -> Float:
        return np.asarray(self._values("step_time") * YEAR)

    def _values(self, name: str) -> NDArray[Any]:
        if name not in self.dataset.variables:
            raise _damaged(f"{name}/zarr.json", "is missing")
        found: NDArray[Any] = self.dataset[name].values
        return found

    def _curves(self, rows: Int, t: Float) -> Iterator[tuple[int, Float, Float]]:
        """Yield place in ``rows``, coefficients and modes of each stored source.

        Sources of a group are read together: they are one file.
        """
        for group in np.unique(rows // GROUP):
            places = np.flatnonzero(
                (rows // GROUP == group) & (self.mode_count[rows] > 0)
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
                coefficients = self.coefficients(source, t)
                yield (
                    int(place),
                    coefficients,
                    responses[source - start, : coefficients.shape[1]],
                )

    def _positions(self, dim: str, chosen: ArrayLike | None) -> Int:
        size = self.dataset.sizes[dim]
        if chosen is None:
            return np.arange(size, dtype=np.int64)
        positions = np.atleast_1d(np.asarray(chosen, dtype=np.int64))
        if len(positions) and (positions.min() < 0 or positions.max() >= size):
            raise ArchiveError(f"the store has only {size} of dimension {dim}")
        return positions

    def _times(self, times: ArrayLike) -> Float:
        t = np.atleast_1d(np.asarray(times, dtype=np.float64))
        if not np.isfinite(t).all() or (t < 0).any():
            raise one_problem("times", None, "must be zero or more, after the event")
        if (t > self.until * (1 + 1e-9)).any():
            end = f"{self.until / YEAR:g} yr"
            value = f"{t.max() / YEAR:g} yr"
            raise one_problem("times", value, f"is after the end of the curve, {end}")
        return t

    def _labelled(self, values: Float, rows: Int, t: Float, dim: str) -> xr.DataArray:
        return xr.DataArray(
            values,
            dims=("source", "time", dim, "component"),
            coords={
                "source": rows,
                "time": ("time", t / YEAR, {"units": "yr"}),
                "component": list(COMPONENTS),
            },
            name="displacement",
            attrs={"units": "m m-1"},
        )


def _damaged(file: str, what: str) -> DamagedError:
    """Return the error of a store that lacks what every store has."""
    return DamagedError("the store of Green's functions", file, what, _HINT)
