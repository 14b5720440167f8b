"""When stored series serve, and how much a campaign asks for.

Stores are imported late: who submits a spec does not need them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from afterslip.identity import plain
from afterslip.physics.base import Quality, Work
from afterslip.physics.waves.forward import WaveForward
from afterslip.physics.waves.spec import WaveCampaign
from afterslip_common.terms import GROUP_SIZE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import xarray as xr

    from afterslip.archive.layout import StoreLayout
    from afterslip.errors import Problem
    from afterslip.physics.waves.reader import SeriesReader
    from afterslip.readers.rows import Rows
    from afterslip.schemas.inversion import Inversion
    from afterslip.schemas.observation import Dataset
    from afterslip.spec.inputs import Inputs

# what may differ between campaigns whose numbers are the same
_QUALITY = frozenset({"duration", "backend", "gpus", "solve"})


class Waves:
    """See `afterslip.physics.base.Physics`."""

    name = "waves"
    numerics = 1
    group_size = GROUP_SIZE
    inverts = True
    unit = "m per m of slip"
    spec = WaveCampaign
    forward = WaveForward
    parts: ClassVar[dict[str, tuple[str, ...]]] = {
        "model": ("model",),
        "slip": ("sources",),
        "solver": ("waves", "stations"),
    }

    def gpus(self, canonical: Mapping[str, Any]) -> int:
        """Return how many GPUs share a group."""
        return int((canonical.get("waves") or {}).get("gpus") or 1)

    def quality(self, spec: WaveCampaign) -> Quality:
        """Return {"duration"}: end of the series, s."""
        return {"duration": float(spec.waves.duration)}

    def worse(self, stored: Quality, wanted: Quality) -> list[str]:
        """Return the keys of the spec in which stored numbers are not good enough."""
        return [] if self.serves(stored, wanted) else ["waves.duration"]

    def serves(self, stored: Quality, wanted: Quality) -> bool:
        """Tell whether a series is as long as the one that is wanted."""
        return stored["duration"] >= wanted["duration"]

    def settings(self, spec: WaveCampaign) -> dict[str, Any]:
        """Return what changes a source's numbers beyond their end, as plain data."""
        found = plain(spec.waves)
        return {key: value for key, value in found.items() if key not in _QUALITY}

    def numbers(self, spec: WaveCampaign) -> dict[str, Any]:
        """Return settings, end of the series and stations."""
        duration = {"duration": plain(spec.waves.duration)}
        return {
            "waves": self.settings(spec) | duration,
            "stations": plain(spec.stations),
        }

    def work(
        self,
        spec: WaveCampaign,
        inputs: Inputs | None = None,
        mesh_bytes: int | None = None,  # noqa: ARG002 - voxels have no mesh
    ) -> Work:
        """Return the number of unit sources and of voxels.

        Raises
        ------
        SpecError
            The files do not fit the voxels.
        """
        from afterslip.physics.waves.checks import check

        if inputs is None:
            return Work(spec.sources.count)
        cause = "in the box: lower waves.frequency or make the domain smaller"
        stations = 0 if inputs.stations is None else len(inputs.stations)
        return Work(
            spec.sources.count,
            {cause: check(spec, inputs).count},
            runs=spec.runs(stations),
            way=spec.way(stations),
        )

    def layout(self, facts: Mapping[str, Any]) -> StoreLayout:
        """Return the layout from {"sizes"} of the facts."""
        from afterslip.physics.waves.store import Sizes, layout_of

        return layout_of(Sizes(**facts["sizes"]))

    def rupture_problems(
        self,
        spec: WaveCampaign,
        request: Inversion,
        settings: Mapping[str, Dataset],
        tables: Mapping[str, Rows],
        inputs: Inputs,
    ) -> Iterator[Problem]:
        """Say why data and windows do not go with a campaign."""
        from afterslip.physics.waves.rupture import rupture_problems

        return rupture_problems(spec, request, settings, tables, inputs)

    def solved(
        self,
        stated: Mapping[str, Any],
        greens: xr.Dataset | None,  # noqa: ARG002 - all of it is stated
    ) -> list[tuple[str, str]]:
        """Return frequency, voxel and source-time function."""
        if not stated:
            return []
        return [
            ("Highest frequency", f"{stated['frequency_hz']:g} Hz"),
            ("Voxel", f"{stated['voxel_m'] / 1e3:.3g} km"),
            ("Source-time function of a window", str(stated["source_time"])),
        ]

    def reader(self, dataset: xr.Dataset) -> SeriesReader:
        """Return what evaluates series."""
        from afterslip.physics.waves.reader import SeriesReader

        return SeriesReader(dataset)
