"""A campaign's unit sources as moment on voxels, in the order of its store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from afterslip.archive import SourceTable
from afterslip.schemas import fault as schema
from afterslip_common.terms import SLIP_COMPONENTS
from afterslip_solver.model import Float
from afterslip_solver.sources import (
    FREE,
    Edges,
    UnitSource,
    group_in_fours,
    list_sources,
)
from afterslip_solver.waves.fault import FaultPoints, shape_at
from afterslip_solver.waves.loads import Loads, moment_loads, rigidity_at, slip_moment
from afterslip_workers.engines.waves.model_file import WaveGround


@dataclass(frozen=True, slots=True)
class WaveSources:
    """Unit sources of a fault.

    Attributes
    ----------
    sources : in the order of the store.
    """

    fault: FaultPoints
    sources: list[UnitSource]

    @classmethod
    def of(
        cls,
        spec: schema.Sources,
        ground: WaveGround,
        order: Sequence[int] | None = None,
    ) -> WaveSources:
        """Return the sources that a spec asks for.

        Parameters
        ----------
        order : of a store that has an order of its own: for each place the number of
            the source in the spec.
        """
        fault = ground.faults[spec.fault]
        edges = FREE if spec.edges is None else Edges(**spec.edges.model_dump())
        counts = spec.along_strike, spec.down_dip
        made = list_sources(fault, *counts, spec.shape, spec.components, edges)
        own = [index for group in group_in_fours(made) for index in group]
        chosen = own if order is None else [own[index] for index in order]
        return cls(fault, [made[index] for index in chosen])

    def __len__(self) -> int:
        return len(self.sources)

    @property
    def groups(self) -> list[list[int]]:
        """Positions in the store of the sources that are solved together."""
        return group_in_fours(self.sources)

    def table(self, model: WaveGround) -> SourceTable:
        """Return what the store says of the sources."""
        names, fault = list(model.faults), self.fault
        mu = rigidity_at(model.grid, model.medium, fault.position)
        columns = np.column_stack([np.ones(len(mu)), mu, fault.position])
        weighted = columns * fault.area[:, None]
        sums = np.array([shape_at(source, fault) @ weighted for source in self.sources])
        return SourceTable(
            faults=names,
            fault=np.full(len(self), names.index(fault.name)),
            component=np.array(
                [SLIP_COMPONENTS.index(s.component) for s in self.sources]
            ),
            patch=np.array([s.patch for s in self.sources]),
            position=sums[:, 2:] / sums[:, :1],
            area=sums[:, 0],
            rigidity=sums[:, 1] / sums[:, 0],
        )

    def describe(self, table: SourceTable) -> list[dict[str, Any]]:
        """Say of each source what a person asks first."""
        return [
            {
                "fault": source.fault,
                "component": source.component,
                "patch": [int(k) for k in source.patch],
                "position_km": [round(float(v) / 1e3, 3) for v in place],
            }
            for source, place in zip(self.sources, table.position, strict=True)
        ]

    def notes(self) -> list[str]:
        """Say what grid the sources stand on."""
        n, m = self.sources[0].counts
        cell = np.array2string(self.fault.cell / 1e3, precision=3)
        return [
            f"sources on fault {self.fault.name}: {n} x {m} of shape "
            f"{self.sources[0].shape}, as moment in cells of {cell} km"
        ]

    def centre(self) -> tuple[float, float, float]:
        """Return the middle of the fault, m."""
        x, y, z = np.average(self.fault.position, axis=0, weights=self.fault.area)
        return float(x), float(y), float(z)

    def shape_of(self, index: int) -> Float:
        """(n, 3) slip of a source on the cells of the fault, m."""
        source = self.sources[index]
        axis = self.fault.strike if source.component == "strike" else self.fault.updip
        return self.share_of(index)[:, None] * axis

    def share_of(self, index: int) -> Float:
        """(n,) slip of a source on the cells of the fault along its own axis, m."""
        return shape_at(self.sources[index], self.fault)

    def patches(self) -> dict[tuple[int, int], int]:
        """Return of each patch, in the order of the store, its first source."""
        found: dict[tuple[int, int], int] = {}
        for index, source in enumerate(self.sources):
            found.setdefault(source.patch, index)
        return found

    def loads(self, ground: WaveGround, chosen: Sequence[int]) -> Loads:
        """Return the forces of some sources, one a lane."""
        fault = self.fault
        slip = np.stack([self.shape_of(index) for index in chosen], axis=1)
        moved = np.flatnonzero(np.abs(slip).max(axis=(1, 2)))
        at = fault.position[moved]
        mu = rigidity_at(ground.grid, ground.medium, at) * fault.area[moved]
        moment = slip_moment(mu, slip[moved], fault.normal[moved])
        return moment_loads(ground.grid, ground.medium, at, moment)
