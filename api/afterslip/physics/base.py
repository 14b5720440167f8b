"""The client's half of a physics; the worker's half is its engine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    import xarray as xr

    from afterslip.archive.layout import StoreLayout
    from afterslip.errors import Problem
    from afterslip.readers.rows import Rows
    from afterslip.schemas.campaign import Campaign
    from afterslip.schemas.forward import Forward
    from afterslip.schemas.inversion import Inversion
    from afterslip.schemas.observation import Dataset
    from afterslip.spec.inputs import Inputs

Float = NDArray[np.float64]
# what stored numbers are good for, by the physics' own names; JSON
Quality = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Work:
    """How much a campaign asks for.

    Attributes
    ----------
    sources : unit sources.
    elements : about how many elements or cells its mesh has at least, by their
        cause; a cause ends a sentence that says what to make coarser. Empty where
        the files of the spec were not given.
    runs : where there are several ways to solve, by way how many solves of a group
        each takes. way : that will be taken.
    """

    sources: int
    elements: Mapping[str, float] = field(default_factory=dict)
    runs: Mapping[str, int] = field(default_factory=dict)
    way: str = ""


class Reader(Protocol):
    """Evaluates the Green's functions of an open store.

    `afterslip.archive.GreensStore` describes the arguments and the results.
    """

    @property
    def until(self) -> float:
        """Last time that can be asked for, s."""

    @property
    def stored(self) -> NDArray[np.bool_]:
        """(n_source,) bool, whether a source is stored already."""

    def evaluate(
        self,
        times: ArrayLike,
        nodes: ArrayLike | None = None,
        sources: ArrayLike | None = None,
    ) -> xr.DataArray:
        """Return (source, time, node, component) float64."""

    def sample(
        self,
        x: ArrayLike,
        y: ArrayLike,
        times: ArrayLike,
        names: Sequence[str] | None = None,
        sources: ArrayLike | None = None,
    ) -> xr.DataArray:
        """Return (source, time, station, component) float64."""


@runtime_checkable
class EstimatesError(Protocol):
    """A reader that knows how wrong its Green's functions are."""

    def space_error(
        self,
        x: ArrayLike,
        y: ArrayLike,
        times: ArrayLike,
        names: Sequence[str] | None = None,
        sources: ArrayLike | None = None,
    ) -> xr.DataArray:
        """Return (source, part, time, station) float64, NaN where not estimated.

        Parts are the elastic displacement and its change since, lengths of errors in
        the unit of the Green's functions.
        """

    def space_error_of_slip(self, slip: Float, times: ArrayLike) -> Float:
        """Return (time, node) bounds of the error of all sources together."""

    def largest_space_error(self) -> dict[str, float]:
        """Return the error of each part of the worst source, empty without any."""


@runtime_checkable
class RuptureReader(Protocol):
    """A reader of Green's functions through the seconds of a rupture."""

    def columns(self, rows: Rows, delay: Float) -> Float:
        """Return what each datum does per metre of slip that begins later.

        Parameters
        ----------
        rows : data, series of ground motion and displacements that stay.
        delay : (n_window, n_source) float64, s, of the begin of slip after the event.

        Returns
        -------
        (n_obs, n_window, n_source) float64, m per m, or m/s per m of velocities.
        """


@runtime_checkable
class FollowsRupture(Protocol):
    """A physics whose readers are `RuptureReader`."""

    def rupture_problems(
        self,
        spec: Any,
        request: Inversion,
        settings: Mapping[str, Dataset],
        tables: Mapping[str, Rows],
        inputs: Inputs,
    ) -> Iterator[Problem]:
        """Say why data and windows do not go with a campaign; paths as in a request.

        Parameters
        ----------
        settings, tables : by name, of the data sets of the request.
        inputs : of the campaign: faults, stations, frame.
        """


class Physics(Protocol):
    """A kind of Green's functions, found by the entry point ``afterslip.physics``."""

    @property
    def name(self) -> str:
        """Name of the entry point and of the spec's ``physics``."""

    @property
    def numerics(self) -> int:
        """Version of the numbers.

        Raised when a change makes Green's functions differ by more than their
        tolerance: what an earlier release stored is then no longer taken.
        """

    @property
    def group_size(self) -> int:
        """Unit sources that are solved, stored and tried again together, at most."""

    @property
    def inverts(self) -> bool:
        """Whether its Green's functions can be inverted for slip."""

    @property
    def unit(self) -> str:
        """Unit of what a reader evaluates, such as "m per m of slip"."""

    @property
    def spec(self) -> type[Campaign]:
        """The campaign's schema."""

    @property
    def forward(self) -> type[Forward] | None:
        """The schema of a forward run; None where there are no forward runs."""

    @property
    def parts(self) -> Mapping[str, tuple[str, ...]]:
        """Keys of the spec by the part of a source's key: model, slip, solver."""

    def gpus(self, canonical: Mapping[str, Any]) -> int:
        """Return how many GPUs of a machine share a group.

        Parameters
        ----------
        canonical : spec in canonical form, which leaves out what is as by default.
        """

    def quality(self, spec: Any) -> Quality:
        """Return what a campaign's numbers will be good for."""

    def worse(self, stored: Quality, wanted: Quality) -> list[str]:
        """Return the keys of the spec in which stored numbers are not good enough."""

    def serves(self, stored: Quality, wanted: Quality) -> bool:
        """Tell whether stored numbers of the same key are as good as those wanted."""

    def numbers(self, spec: Any) -> dict[str, Any]:
        """Return what changes the numbers, beside model and sources, as plain data."""

    def work(
        self, spec: Any, inputs: Inputs | None = None, mesh_bytes: int | None = None
    ) -> Work:
        """Return how much a campaign asks for.

        Parameters
        ----------
        inputs : the files of the spec, where they are read already.
        mesh_bytes : size of the mesh's file, where the mesh is imported.
        """

    def layout(self, facts: Mapping[str, Any]) -> StoreLayout:
        """Return the layout of a campaign's store.

        Parameters
        ----------
        facts : the campaign's ``model.json``, with what the engine said of the store.
        """

    def solved(
        self, stated: Mapping[str, Any], greens: xr.Dataset | None
    ) -> list[tuple[str, str]]:
        """Return (name, value) of how the numbers were solved, for people.

        Parameters
        ----------
        stated : what the engine said of it when it inverted them.
        greens : the store, where it is at hand.
        """

    def reader(self, dataset: xr.Dataset) -> Reader:
        """Return what evaluates an open store."""
