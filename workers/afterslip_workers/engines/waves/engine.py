"""The engine of elastic waves."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from afterslip.archive import SourceTable, StationTable
from afterslip.archive.tables import Values
from afterslip.error_class import ErrorClass
from afterslip.identity import digest
from afterslip.physics.waves import physics
from afterslip.physics.waves.checks import samples
from afterslip.physics.waves.spec import WaveCampaign
from afterslip.physics.waves.store import Sizes, fixed_arrays
from afterslip.spec.files import Files
from afterslip.spec.inputs import Inputs
from afterslip_solver.waves.grid import Medium
from afterslip_solver.waves.march import UnstableError
from afterslip_workers.engines.base import (
    Arrays,
    Built,
    GroupWork,
    Phase,
    Solved,
    Units,
)
from afterslip_workers.engines.models import get_or_build, load_model
from afterslip_workers.engines.waves import building, model_file, planning, solving
from afterslip_workers.engines.waves.forward import run_forward, summary
from afterslip_workers.engines.waves.model_file import WaveGround
from afterslip_workers.engines.waves.slip import WaveSlip
from afterslip_workers.engines.waves.sources import WaveSources
from afterslip_workers.store.backend import StoreBackend


class WaveEngine:
    """See `afterslip_workers.engines.base.Engine`."""

    physics = physics
    # see `afterslip_workers.engines.base.ForwardEngine`
    forward = staticmethod(run_forward)
    summary = staticmethod(summary)
    failures: ClassVar[dict[type[Exception], ErrorClass]] = {
        UnstableError: ErrorClass.UNSTABLE,
    }

    def build(
        self,
        spec: WaveCampaign,
        inputs: Callable[[], Inputs],
        files: Files,
        store: StoreBackend,
        phase: Phase,
        max_elements: int | None = None,  # noqa: ARG002 the spec says how many voxels
    ) -> Built:
        """Cut the domain into voxels, unless another campaign has done so."""
        read = inputs()
        return get_or_build(
            store,
            building.ground_digest(spec, read, files),
            model_file,
            lambda: building.build_ground(spec, read, files, phase),
        )

    def plan(
        self,
        spec: WaveCampaign,
        inputs: Inputs,
        files: Files,  # noqa: ARG002 voxels are never of a file
        mesh_bytes: int | None,  # noqa: ARG002
        backend: str,
        *,
        trial: bool = False,  # noqa: ARG002 voxels are counted as they are made
    ) -> dict[str, Any]:
        """Say what a campaign will need."""
        chosen = solving.backend_of(spec.waves.backend, backend)
        return planning.plan(spec, inputs, chosen)

    def units(
        self,
        spec: WaveCampaign,
        model: WaveGround,
        order: Sequence[int] | None = None,
    ) -> WaveSources:
        """Return the unit sources on the fault."""
        return WaveSources.of(spec.sources, model, order)

    def keys(
        self, spec: WaveCampaign, model: WaveGround, units: Units
    ) -> dict[str, Any]:
        """Return digests of what is solved, and the quality."""
        assert isinstance(units, WaveSources)  # noqa: S101 - made by `units`
        named = f"{physics.name} {physics.numerics}"
        settings = physics.settings(spec)
        # springs at the sides depend on where the fault is
        settings["centre"] = list(units.centre())
        # a file is known by its content
        if len(model.table):
            del settings["source_time"]
        grid = np.array([*model.grid.shape, *model.grid.origin, model.grid.h])
        medium = [getattr(model.medium, item.name) for item in fields(Medium)]
        parts = [grid, *medium, model.quality]
        if model.nodes is not None:
            parts += [model.fill, model.nodes.below, model.nodes.share]
        of_model = _digest(*parts)
        of_solver = digest(
            [named, settings, model.table.tolist(), model.stations.tolist()]
        )
        normal, area = units.fault.normal, units.fault.area
        where = units.fault.position, normal, area
        slips = [_digest(*where, units.shape_of(index)) for index in range(len(units))]
        return {
            "model": of_model,
            "solver": of_solver,
            "slips": slips,
            "keys": [digest([of_model, of_solver, slip]) for slip in slips],
            "quality": physics.quality(spec),
        }

    def store_facts(
        self,
        spec: WaveCampaign,
        model: WaveGround,
        units: Units,
        stations: StationTable | None,
    ) -> dict[str, Any]:
        """Return {"sizes", "surface"}."""
        x, y = solving.surface_axes(spec, model.grid)
        sizes = Sizes(
            source=len(units),
            sample=samples(spec),
            station=0 if stations is None else len(stations),
            row=len(y),
            column=len(x),
        )
        return {"sizes": asdict(sizes), "surface": {"x": x.tolist(), "y": y.tolist()}}

    def root(self, spec: WaveCampaign, facts: Mapping[str, Any]) -> dict[str, Any]:
        """Return how waves were followed."""
        waves = spec.waves
        quality = facts["quality"]
        return {
            "engine": "voxel",
            "scheme": waves.scheme,
            "precision": waves.precision,
            "frequency_hz": waves.frequency,
            "duration_s": float(waves.duration),
            "sampling_s": float(waves.sampling),
            "voxel_m": float(quality["h"]),
            "points_per_wavelength": quality["vs"] / (waves.frequency * quality["h"]),
            "source_time": waves.source_time.model_dump_json(exclude_none=True),
            "absorbing": waves.absorbing.kind,
            "attenuation": waves.attenuation is not None,
        }

    def fixed_arrays(
        self,
        spec: WaveCampaign,
        facts: Mapping[str, Any],
        model: WaveGround | None,  # noqa: ARG002 - all of it is in the facts
        sources: SourceTable,
        stations: StationTable | None,
    ) -> Values:
        """Yield coordinates of samples, sources, stations and points."""
        sizes, surface = Sizes(**facts["sizes"]), facts["surface"]
        sampling = float(spec.waves.sampling)
        axes = surface["x"], surface["y"]
        return fixed_arrays(sources, stations, sampling, sizes, *axes)

    def load(self, store: StoreBackend, digest: str) -> WaveGround:
        """Read a model that was built before."""
        found: WaveGround = load_model(store, digest, model_file)
        return found

    def solve(self, work: GroupWork) -> Solved:
        """March sources together, each a lane."""
        return solving.solve(work)

    def adopt(self, stored: Any, row: int, work: GroupWork) -> Arrays | None:
        """Read series, as many samples as this campaign has."""
        layout = physics.layout(work.facts)
        count = layout.of("sample")
        lane: Arrays = {}
        for variable in layout.grouped:
            values = np.asarray(stored[variable.name][row])
            whole = variable.dims[-1] != "sample"
            lane[variable.name] = values if whole else values[..., :count]
        longer = len(stored["sample"][:])
        if longer < count:
            return None
        if "offset" in lane and longer > count:
            end = lane["displacement"][..., -1].astype(np.float64)
            lane["offset"] = np.where(np.isnan(lane["offset"]), np.nan, end)
        return lane

    def slip_model(
        self,
        spec: WaveCampaign,
        model: WaveGround,
        order: Sequence[int] | None,
    ) -> WaveSlip:
        """Return the fault and the source-time function."""
        function = model.source_time or spec.waves.source_time.function
        assert function is not None  # noqa: S101 - a file's is in the model
        return WaveSlip(model, self.units(spec, model, order), function)


def _digest(*arrays: NDArray[Any]) -> str:
    total = hashlib.sha256()
    for array in arrays:
        total.update(f"{array.dtype.str}{array.shape}".encode())
        total.update(np.ascontiguousarray(array).data)
    return f"sha256:{total.hexdigest()}"


engine = WaveEngine()
