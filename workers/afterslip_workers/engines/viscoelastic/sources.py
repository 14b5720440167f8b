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
    FREE,
    Edges,
    UnitSource,
    element_width,
    group_in_fours,
    slip_of,
    slips_of,
    source_integrals,
    spacing,
    unit_sources,
)

EDGES = ("top", "bottom", "start", "end")
CONDITIONS = {
    "free": "slip may have any value",
    "zero": "slip is zero",
    "clamped": "slip and its gradient are zero",
}


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
            fault,
            spec.along_strike,
            spec.down_dip,
            spec.shape,
            spec.components,
            edges_of(spec),
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
        return spacing(self.sources[0], self.fault)

    def notes(self) -> list[str]:
        """Say what grid the sources stand on, and what slip does at its edges."""
        first, fault = self.sources[0], self.fault
        a, b = (step / 1e3 for step in self.spacing())
        count = f"{first.counts[0]} x {first.counts[1]}"
        if first.shape == "patch":
            kind = f"{count} patches of {a:.3g} x {b:.3g} km"
        else:
            kind = f"{count} B-splines with knots {a:.3g} x {b:.3g} km apart"
        by_condition: dict[str, list[str]] = {}
        for edge, condition in self.edges().items():
            by_condition.setdefault(condition, []).append(edge)
        edges = "; ".join(
            f"{CONDITIONS[condition]} at {', '.join(names)}"
            for condition, names in by_condition.items()
        )
        size = element_width(fault) / 1e3
        return [
            f"sources on fault {fault.name}: {kind}, elements of {size:.3g} km; {edges}"
        ]

    def edges(self) -> dict[str, str]:
        """Return what slip does at the top, the bottom, the start and the end."""
        edges = self.sources[0].edges
        conditions = (*edges.down(self.fault), *edges.along())
        return dict(zip(EDGES, conditions, strict=True))

    def slips_at_ground(self) -> bool:
        """Whether slip may reach the free surface."""
        return self.fault.open_top and self.edges()["top"] == "free"


def edges_of(spec: schema.Sources) -> Edges:
    """Return what the slip of a spec's sources does at the edges of the fault."""
    return FREE if spec.edges is None else Edges(**spec.edges.model_dump())


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
