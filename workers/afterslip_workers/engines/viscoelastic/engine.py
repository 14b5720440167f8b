"""The engine of viscoelastic Green's functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, ClassVar

import numpy as np

from afterslip.archive import SourceTable, StationTable
from afterslip.archive.tables import Values
from afterslip.error_class import ErrorClass
from afterslip.frame import Frame
from afterslip.identity import model_digest
from afterslip.physics.viscoelastic import physics
from afterslip.physics.viscoelastic.spec import ViscoelasticCampaign
from afterslip.physics.viscoelastic.store import (
    Sizes,
    attributes,
    error_times,
    fixed_arrays,
)
from afterslip.spec.files import Files
from afterslip.spec.inputs import Inputs
from afterslip_solver.mesh.slit_surface import two_sided
from afterslip_solver.model import Model
from afterslip_workers.engines.base import (
    Arrays,
    Built,
    GroupWork,
    Phase,
    Solved,
    Units,
)
from afterslip_workers.engines.models import get_or_build, load_model
from afterslip_workers.engines.viscoelastic import (
    adopting,
    model_file,
    preflight,
    solving,
)
from afterslip_workers.engines.viscoelastic.accuracy import adapted
from afterslip_workers.engines.viscoelastic.building import build_model
from afterslip_workers.engines.viscoelastic.faults import FaultSlip
from afterslip_workers.engines.viscoelastic.forward import run_forward
from afterslip_workers.engines.viscoelastic.keys import reuse_facts
from afterslip_workers.engines.viscoelastic.modes import modes_of, steps_of
from afterslip_workers.engines.viscoelastic.planning import plan
from afterslip_workers.engines.viscoelastic.probes import of_sources, walls_of_sources
from afterslip_workers.engines.viscoelastic.settings import backend_of, settings_of
from afterslip_workers.engines.viscoelastic.sources import UnitSources
from afterslip_workers.engines.viscoelastic.summary import summary
from afterslip_workers.engines.viscoelastic.surface import hollow_surface, surface_of
from afterslip_workers.store.backend import StoreBackend


class ViscoelasticEngine:
    """See `afterslip_workers.engines.base.Engine`."""

    physics = physics
    # the solver's errors are known by name, see `afterslip_workers.errors`
    failures: ClassVar[dict[type[Exception], ErrorClass]] = {}
    # see `afterslip_workers.engines.base.ForwardEngine`
    forward = staticmethod(run_forward)
    summary = staticmethod(summary)

    def build(
        self,
        spec: ViscoelasticCampaign,
        inputs: Callable[[], Inputs],
        files: Files,
        store: StoreBackend,
        phase: Phase,
        max_elements: int | None = None,
    ) -> Built:
        """Mesh, materials and supports, unless another campaign has built them."""
        return get_or_build(
            store,
            model_digest(spec, files),
            model_file,
            lambda: _built(spec, inputs(), files, phase, max_elements),
        )

    def plan(
        self,
        spec: ViscoelasticCampaign,
        inputs: Inputs,
        files: Files,  # noqa: ARG002 a trial mesh is never one of a file
        mesh_bytes: int | None,
        backend: str,
        *,
        trial: bool = False,
    ) -> dict[str, Any]:
        """Say what a campaign will need."""
        chosen = backend_of(spec.solver, backend)
        return plan(spec, inputs, mesh_bytes, chosen, trial=trial)

    def units(
        self,
        spec: ViscoelasticCampaign,
        model: Model,
        order: Sequence[int] | None = None,
    ) -> UnitSources:
        """Return the unit sources on the model's fault."""
        return UnitSources.of(spec.grids, model, order)

    def keys(
        self, spec: ViscoelasticCampaign, model: Model, units: Units
    ) -> dict[str, Any]:
        """Return digests of what the solver is given, and the quality."""
        assert isinstance(units, UnitSources)  # noqa: S101 - made by `units`
        settings = settings_of(spec.times, spec.solver)
        frame = Frame.of(spec.model.frame)
        return reuse_facts(model, units, settings, physics.quality(spec), frame)

    def store_facts(
        self,
        spec: ViscoelasticCampaign,
        model: Model,
        units: Units,
        stations: StationTable | None,
    ) -> dict[str, Any]:
        """Return {"sizes", "integrator"}."""
        trace = two_sided(model)
        modes = modes_of(model, settings_of(spec.times, spec.solver))
        sizes = Sizes(
            source=len(units),
            mode=modes.count,
            node=len(trace.nodes),
            face=len(trace.faces),
            station=0 if stations is None else len(stations),
            time=len(spec.times.output),
            error_time=_error_times(spec, model, modes.count),
        )
        return {"sizes": asdict(sizes), "integrator": modes.integrator}

    def root(
        self, spec: ViscoelasticCampaign, facts: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return integrator and end of the curve."""
        return attributes(facts["integrator"], float(spec.times.until))

    def fixed_arrays(
        self,
        spec: ViscoelasticCampaign,
        facts: Mapping[str, Any],
        model: Model | None,
        sources: SourceTable,
        stations: StationTable | None,
    ) -> Values:
        """Yield coordinates of modes, times, sources, surface and stations."""
        frame, sizes = Frame.of(spec.model.frame), Sizes(**facts["sizes"])
        if model is None:
            surface = hollow_surface(sizes, frame)
        else:
            surface = surface_of(model, frame)
        steps = None
        if facts["integrator"] == "stepping":
            steps = steps_of(settings_of(spec.times, spec.solver)).step_times
        times = [float(time) for time in spec.times.output]
        errors_at = error_times(times)[: sizes.error_time - 1]
        return fixed_arrays(
            sources,
            surface,
            stations,
            times,
            sizes.mode,
            steps,
            errors_at if sizes.error_time else None,
        )

    def load(self, store: StoreBackend, digest: str) -> Model:
        """Read a model that was built before."""
        found: Model = load_model(store, digest, model_file)
        return found

    def solve(self, work: GroupWork) -> Solved:
        """Solve sources together, each a lane of the linear solver."""
        return self.begin(work)(work.phase)

    def begin(self, work: GroupWork) -> Callable[[Phase], Solved]:
        """Do the same, but for what needs no device."""
        return solving.begin(work)

    def adopt(self, stored: Any, row: int, work: GroupWork) -> Arrays | None:
        """Read a curve, and evaluate it at this campaign's stations and times."""
        times = work.spec.times
        wanted = adopting.Wanted(
            layout=physics.layout(work.facts),
            times=np.array([float(time) for time in times.output]),
            until=float(times.until),
            time_tolerance=work.spec.solver.time_tolerance,
            stations=work.stations,
        )
        return adopting.adopt(stored, row, wanted)

    def slip_model(
        self, spec: ViscoelasticCampaign, model: Model, order: Sequence[int] | None
    ) -> FaultSlip:
        """Return the faults of the mesh."""
        return FaultSlip(model, self.units(spec, model, order))


def _built(
    spec: ViscoelasticCampaign,
    inputs: Inputs,
    files: Files,
    phase: Phase,
    max_elements: int | None,
) -> tuple[Model, dict[str, Any]]:
    """Build the model, of the accuracy that its mesh is to have."""
    if spec.model.mesh.accuracy is None:
        return build_model(spec.model, inputs, files, phase)
    backend = backend_of(spec.solver, "auto")
    measure, walls = of_sources(spec, backend), walls_of_sources(spec, backend)
    settings = settings_of(spec.times, spec.solver)

    def room(model: Model) -> float:
        return preflight.room(model, settings, backend, spec.solver.gpus)

    return adapted(
        spec.model,
        inputs,
        files,
        phase,
        measure,
        spec.grids,
        room,
        walls,
        max_elements,
    )


def _error_times(spec: ViscoelasticCampaign, model: Model, modes: int) -> int:
    """Return how many times the mesh's error will be stored at; 0 without estimate."""
    mesh = spec.model.mesh
    # what has an accuracy was refined
    refined = mesh.refine > 0 or mesh.accuracy is not None
    comparable = model.coarser is not None or refined
    if not (spec.solver.space_error and comparable):
        return 0
    later = error_times([float(time) for time in spec.times.output])
    return 1 + (len(later) if modes > 1 else 0)


engine = ViscoelasticEngine()
