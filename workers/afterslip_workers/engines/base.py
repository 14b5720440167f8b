"""The worker's half of a physics; the client's half is `afterslip.physics`.

Tasks, store, reuse and supervision know an engine by these names alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from afterslip.archive import SourceTable, StationTable
from afterslip.archive.tables import Values
from afterslip.error_class import ErrorClass
from afterslip.frame import Frame
from afterslip.physics.base import Physics
from afterslip.spec.files import Files
from afterslip.spec.inputs import Inputs
from afterslip_workers.machine.model_cache import ModelCache
from afterslip_workers.store.backend import StoreBackend

if TYPE_CHECKING:
    import xarray as xr

Float = NDArray[np.float64]
# arrays of one source, or of a group with the sources first, by name
Arrays = dict[str, Any]
Phase = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Built:
    """A model that is in the store.

    Attributes
    ----------
    digest : of all that it was built from.
    facts : what people want to know of it, as plain values: {"n_unknowns",
        "n_elements", "n_node", "quality", "notes", ...}.
    cached : whether it was there already.
    """

    model: Any
    digest: str
    facts: dict[str, Any]
    cached: bool


class Units(Protocol):
    """The unit sources of a campaign, in the order of its store."""

    @property
    def groups(self) -> list[list[int]]:
        """Positions in the store of the sources that are solved together."""

    def __len__(self) -> int: ...

    def table(self, model: Any) -> SourceTable:
        """Return what the store says of the sources."""

    def describe(self, table: SourceTable) -> list[dict[str, Any]]:
        """Say of each source what a person asks first, as plain values."""

    def notes(self) -> list[str]:
        """Say what sources stand where and what they assume, in sentences."""


@dataclass(frozen=True, slots=True)
class GroupWork:
    """A group, as an engine gets it.

    Attributes
    ----------
    spec : the campaign, of the physics' own class.
    campaign : its identifier.
    facts : its ``model.json``.
    model : returns its model, built again where it is missing or damaged.
    sources : positions in the store of the sources to solve.
    stations : of the campaign; None where it has none.
    backend : "auto", "cpu" or "gpu".
    escalation : times that the group did not converge, or was not stable, before.
    warm : objects that outlive the attempt.
    phase : says what begins; raises CancelledError where the attempt has to stop.
    report : takes progress: {"solves_done", "solves_expected", "residual"}, any part.
    should_stop : becomes true when the attempt is cancelled.
    """

    spec: Any
    campaign: str
    facts: Mapping[str, Any]
    model: Callable[[], Any]
    sources: Sequence[int]
    stations: StationTable | None
    store: StoreBackend
    backend: str
    escalation: int
    warm: ModelCache
    phase: Phase
    report: Callable[[dict[str, Any]], None]
    should_stop: Callable[[], bool]


@dataclass(frozen=True, slots=True)
class Solved:
    """Sources as they will be stored.

    Attributes
    ----------
    values : the grouped arrays of the store's layout, sources first.
    stats : {"solves", "iterations", "residual", "device", ...}, plain values.
    history : of the convergence, plain values.
    """

    values: Arrays
    stats: dict[str, Any] = field(default_factory=dict)
    history: list[dict[str, Any]] = field(default_factory=list)


class SlipModel(Protocol):
    """What an inversion must know of the faults.

    Attributes
    ----------
    faults : their names.
    spacing : (n_fault, 2) m, distance of neighbouring sources along strike, down dip.
    open_top : (n_fault,) whether a fault reaches the ground.
    """

    faults: Sequence[str]
    spacing: Float
    open_top: NDArray[np.bool_]

    def variables(self, frame: Frame, slip: Float) -> dict[str, xr.Variable]:
        """Describe the faults and the slip that (n_source,) coefficients, m, make."""

    def unit_slip(self) -> Float:
        """(n_source, n_fault_node, 2) float64, strike and dip of each unit source."""

    def solver_facts(self, greens: xr.Dataset) -> dict[str, Any]:
        """Say how the Green's functions were solved, as plain values."""


@runtime_checkable
class RuptureModel(SlipModel, Protocol):
    """Faults whose unit sources take seconds to slip.

    Attributes
    ----------
    share : share of its slip that a source has done (...) s after its begin.
    rise : s, until nearly all of it is done.
    """

    share: Callable[[Float], Float]
    rise: float


@runtime_checkable
class PlanningEngine(Protocol):
    """An engine that can say what a campaign will need before it is built."""

    def plan(
        self,
        spec: Any,
        inputs: Inputs,
        files: Files,
        mesh_bytes: int | None,
        backend: str,
        *,
        trial: bool = False,
    ) -> dict[str, Any]:
        """Return sizes and memory; see `afterslip_workers.entry.plan`."""


class Engine(Protocol):
    """Builds and solves; found by the entry point ``afterslip.engines``."""

    @property
    def physics(self) -> Physics:
        """The client's half."""

    @property
    def failures(self) -> Mapping[type[Exception], ErrorClass]:
        """What its errors mean.

        Those that derive from `afterslip_common.errors` need not be named.
        """

    def build(
        self,
        spec: Any,
        inputs: Callable[[], Inputs],
        files: Files,
        store: StoreBackend,
        phase: Phase,
        max_elements: int | None = None,
    ) -> Built:
        """Build a campaign's model, or find it in the store.

        Parameters
        ----------
        inputs : reads the files of the spec.
        max_elements : that a mesh may have which the engine chooses; None: any.
        """

    def units(self, spec: Any, model: Any, order: Sequence[int] | None = None) -> Units:
        """Return the unit sources.

        Parameters
        ----------
        order : of a store that does not have the spec's own order: for each place
            the number of the source in the spec.
        """

    def keys(self, spec: Any, model: Any, units: Units) -> dict[str, Any]:
        """Return what changes the numbers of each source, and how good they will be.

        Returns
        -------
        {"model", "solver", "slips", "keys", "quality"}: digests of the parts, lists
        of digests in the order of ``units``; name and numerics of the physics are in
        the solver's.
        """

    def store_facts(
        self, spec: Any, model: Any, units: Units, stations: StationTable | None
    ) -> dict[str, Any]:
        """Return what ``physics.layout`` reads, as plain values."""

    def root(self, spec: Any, facts: Mapping[str, Any]) -> dict[str, Any]:
        """Return what the store's root says beside what all stores say."""

    def fixed_arrays(
        self,
        spec: Any,
        facts: Mapping[str, Any],
        model: Any,
        sources: SourceTable,
        stations: StationTable | None,
    ) -> Values:
        """Yield the arrays that are written when the store is created, with values.

        Parameters
        ----------
        model : None where it is lost; what depends on it is then hollow.
        """

    def load(self, store: StoreBackend, digest: str) -> Any:
        """Read a model that was built before."""

    def solve(self, work: GroupWork) -> Solved:
        """Solve sources together."""

    def adopt(self, stored: Any, row: int, work: GroupWork) -> Arrays | None:
        """Read a source from another campaign's store for this one.

        Parameters
        ----------
        stored : the other store, a Zarr group whose reads are verified.
        row : the source's position there.

        Returns
        -------
        Its arrays without their axis of sources; None where it is not good enough.
        """

    def slip_model(
        self, spec: Any, model: Any, order: Sequence[int] | None
    ) -> SlipModel | None:
        """Return what inversions need; None where this physics has none."""


@runtime_checkable
class EvaluatingEngine(Engine, Protocol):
    """An engine whose device is free again before a group has been evaluated."""

    def begin(self, work: GroupWork) -> Callable[[Phase], Solved]:
        """Solve sources together, in a thread that may be one of several.

        Returns
        -------
        Evaluates them on the host, while this device may solve other groups. It is
        called with what takes the name of each part that begins.
        """


@runtime_checkable
class ForwardEngine(Engine, Protocol):
    """An engine that also computes the motion of given slip, without a service."""

    def forward(
        self,
        spec: str | Path | Mapping[str, Any],
        out: str | Path | None = None,
        report: Callable[[dict[str, Any]], None] | None = None,
        backend: str | None = None,
        base: str | Path | None = None,
    ) -> xr.Dataset:
        """Run a forward spec.

        Parameters
        ----------
        spec : path of a YAML or JSON file, or its content.
        out : NetCDF file to write; None for none.
        report : called with {"phase", ...} and, while solving, with progress.
        backend : "auto", "cpu" or "gpu"; None for the spec's own.
        base : folder of the spec's files, where ``spec`` is its content.
        """

    def summary(self, result: xr.Dataset, seconds: float) -> list[str]:
        """Say in lines what a run found, and how."""
