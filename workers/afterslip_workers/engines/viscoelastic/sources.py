"""A campaign's unit sources on the model's fault, in the order of its store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from afterslip.archive import SourceTable
from afterslip.schemas import fault as schema
from afterslip_common.terms import SLIP_COMPONENTS
from afterslip_solver.model import FaultMesh, Float, Model
from afterslip_solver.sources import (
    UnitSource,
    group_in_fours,
    slip_of,
    slips_of,
    source_integrals,
    unit_sources,
)


@dataclass(frozen=True, slots=True)
class UnitSources:
    """Unit sources of a fault.

    Attributes
    ----------
    fault : the fault's mesh.
    sources : in the order of the store.
    """

    fault: FaultMesh
    sources: list[UnitSource]

    @classmethod
    def of(
        cls, spec: schema.Sources, model: Model, order: Sequence[int] | None = None
    ) -> UnitSources:
        """Return the sources that a spec asks for.

        Parameters
        ----------
        order : of a store that does not keep to the spec's own order: for each
            place the number of the source in the spec.
        """
        fault = model.faults[spec.fault]
        made = unit_sources(
            fault, spec.along_strike, spec.down_dip, spec.shape, spec.components
        )
        own = [index for group in group_in_fours(made) for index in group]
        chosen = own if order is None else [own[index] for index in order]
        return cls(fault, [made[index] for index in chosen])

    def __len__(self) -> int:
        return len(self.sources)

    @property
    def groups(self) -> list[list[int]]:
        """Positions in the store of the sources that are solved together."""
        return group_in_fours(self.sources)

    def table(self, model: Model) -> SourceTable:
        """Return what the store says of the sources."""
        mesh, materials, fault = model.mesh, model.materials, self.fault
        names = list(model.faults)
        found = source_integrals(self.sources, fault, mesh, materials)
        count = len(self.sources)
        return SourceTable(
            faults=names,
            fault=np.full(count, names.index(fault.name)),
            component=np.array(
                [SLIP_COMPONENTS.index(s.component) for s in self.sources]
            ),
            patch=np.array([s.patch for s in self.sources]),
            position=found.position,
            area=found.area,
            rigidity=found.rigidity,
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

    def spacing(self) -> tuple[float, float]:
        """Distance of neighbours along strike and down dip, m."""
        first = self.sources[0]
        (n, m), fault = first.counts, self.fault
        if first.shape == "patch":
            return fault.length / n, fault.width / m
        # B-splines that vanish at closed edges stand on three more intervals
        down = m + 1 if fault.open_top else m + 3
        return fault.length / (n + 3), fault.width / down


def unit_slip(units: UnitSources, chosen: Sequence[int]) -> dict[str, Float]:
    """Slip of some sources, one a lane.

    Returns
    -------
    fault name → (n_fault_node, 3, n_lane) float64, m.
    """
    sources = [units.sources[index] for index in chosen]
    return {units.fault.name: slips_of(sources, units.fault)}


def slip_on_nodes(units: UnitSources, coefficients: Float) -> dict[str, Float]:
    """Slip that coefficients make.

    Parameters
    ----------
    coefficients : (n_source,) float64, m.

    Returns
    -------
    fault name → (n_fault_node, 2) float64, m, strike and dip.
    """
    fault = units.fault
    total = np.zeros((len(fault.nodes), 3))
    for source, value in zip(units.sources, coefficients, strict=True):
        total += value * slip_of(source, fault)
    along = np.einsum("ij,ij->i", total, fault.strike)
    up = np.einsum("ij,ij->i", total, fault.updip)
    return {fault.name: np.column_stack([along, up])}


def unit_slip_on_nodes(units: UnitSources) -> Float:
    """(n_source, n_fault_node, 2) float64, strike and dip of each unit source."""
    fault = units.fault
    made = np.empty((len(units), len(fault.nodes), 2))
    for number, source in enumerate(units.sources):
        shape = slip_of(source, fault)
        made[number, :, 0] = np.einsum("ij,ij->i", shape, fault.strike)
        made[number, :, 1] = np.einsum("ij,ij->i", shape, fault.updip)
    return made
