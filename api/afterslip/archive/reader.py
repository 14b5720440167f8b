"""Reading ``greens.zarr``: labelled arrays, and values at any place and time."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
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

from afterslip.archive.lacking import HINT, lacking
from afterslip.archive.verified import VerifiedStore
from afterslip.errors import ArchiveError, DamagedError, SpecError
from afterslip.physics.base import Reader
from afterslip.physics.registry import DEFAULT, find


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
    if "source" not in found.dims:
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
            raise DamagedError(store, array.basename, what, HINT) from error


class GreensStore:
    """Green's functions, evaluated as their physics does it.

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

    @cached_property
    def reader(self) -> Reader:
        """What evaluates this store.

        Raises
        ------
        ArchiveError
            Its physics is not installed here.
        """
        name = str(self.dataset.attrs.get("physics", DEFAULT))
        try:
            return find(name).reader(self.dataset)
        except SpecError as error:
            raise ArchiveError(f"the store cannot be evaluated: {error}") from None

    @property
    def until(self) -> float:
        """Last time that can be asked for, s.

        Raises
        ------
        DamagedError
            The store does not say it.
        """
        return self.reader.until

    @property
    def stored(self) -> NDArray[np.bool_]:
        """(n_source,) bool, whether a source is stored already."""
        return self.reader.stored

    @property
    def spec(self) -> dict[str, Any]:
        """The campaign's spec."""
        try:
            found: dict[str, Any] = json.loads(self.dataset.attrs["spec"])
        except (KeyError, TypeError, ValueError):
            raise lacking("zarr.json", "has no spec") from None
        return found

    def evaluate(
        self,
        times: ArrayLike,
        nodes: ArrayLike | None = None,
        sources: ArrayLike | None = None,
    ) -> xr.DataArray:
        """Return the response of surface nodes to unit sources.

        Parameters
        ----------
        times : (n_time,) s after the event, from 0 to `until`.
        nodes : (n_node,) positions of surface nodes; None: all.
        sources : (n_source,) positions of sources; None: all.

        Returns
        -------
        (source, time, node, component) float64, m per m where it is a displacement;
        NaN for sources that are not stored yet.
        """
        return self.reader.evaluate(times, nodes, sources)

    def sample(
        self,
        x: ArrayLike,
        y: ArrayLike,
        times: ArrayLike,
        names: Sequence[str] | None = None,
        sources: ArrayLike | None = None,
    ) -> xr.DataArray:
        """Return the response of places of the surface to unit sources.

        Parameters
        ----------
        x, y : (n_station,) m, local.
        times : (n_time,) s after the event, from 0 to `until`.
        names : of the places, as the coordinate ``station`` and for messages.
        sources : (n_source,) positions of sources; None: all.

        Returns
        -------
        (source, time, station, component) float64; as `evaluate`.

        Raises
        ------
        SpecError
            Places outside the surface, times that the store does not cover.
        """
        return self.reader.sample(x, y, times, names, sources)

    def sampler(self, x: ArrayLike, y: ArrayLike) -> Callable[[ArrayLike], Any]:
        """Return what evaluates the response of places at many times, one by one.

        The store is read once where the physics can do that. Memory: about 600 bytes
        a source and place.

        Parameters
        ----------
        x, y : (n_station,) m, local.

        Returns
        -------
        Function of (n_time,) s: (source, time, station, component) float64, m per m.
        """
        once = getattr(self.reader, "sampler", None)
        if once is not None:
            found: Callable[[ArrayLike], Any] = once(x, y)
            return found
        return lambda times: self.sample(x, y, times).values

    def sample_with_error(
        self, x: ArrayLike, y: ArrayLike, times: ArrayLike
    ) -> xr.DataArray:
        """Return `sample` with the error of the mesh beside each displacement.

        Returns
        -------
        As `sample`. The coordinate ``space_error`` (source, time, station) bounds the
        length of the error, of the elastic displacement and the change together; it is
        not there where the physics estimates none.
        """
        sampled = self.sample(x, y, times)
        estimate = getattr(self.reader, "space_error", None)
        if estimate is None:
            return sampled
        error = estimate(x, y, times).sum("part", skipna=False)
        return sampled.assign_coords(space_error=(error.dims, error.values))
